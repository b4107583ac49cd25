"""``scipy.special``'s logsumexp, softmax and log_softmax, written with NumPy on traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.creation import astype
from ..operands.operands import as_traced, spread_scalar
from ..values.array import TracedArray
from ..values.trace import Trace


def _floating(trace: Trace, x: Any) -> TracedArray:
    """An array of floats: integers as float64."""
    array = spread_scalar(as_traced(trace, x))
    return array if array.dtype.kind == "f" else astype(trace, array, np.float64)


def _greatest(x: TracedArray, axis: Any) -> Any:
    """The maximum to shift by; 0 where it is infinite or NaN, so that x - max is no NaN."""
    top = np.max(x, axis=axis, keepdims=True)
    return np.where(np.isfinite(top), top, x.dtype.type(0))


def logsumexp(
    trace: Trace, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """``log(sum(b*exp(a)))``, shifted by the maximum; with ``return_sign`` of the absolute sum."""
    x: Any = _floating(trace, a)
    if b is None:
        top = _greatest(x, axis)
        total = np.sum(np.exp(x - top), axis=axis, keepdims=True)
    else:
        weights = _floating(trace, b)
        x = x + np.zeros(weights.shape, weights.dtype)
        used: Any = np.where(weights == 0, x.dtype.type(-np.inf), x)
        top = _greatest(used, axis)
        shifted = np.where((weights == 0) & np.isfinite(x), np.minimum(x - top, 80), used - top)
        total = np.sum(weights * np.exp(shifted), axis=axis, keepdims=True)
    size = np.abs(total) if return_sign else total
    none = size == 0  # has slopes of 0, as what is not used has
    logarithm = np.where(none, x.dtype.type(-np.inf), np.log(np.where(none, 1, size)))
    result, sign = logarithm + top, np.sign(total)
    if not keepdims:
        result, sign = np.squeeze(result, axis=axis), np.squeeze(sign, axis=axis)
    result, sign = (v if v.ndim else v[()] for v in (result, sign))
    return (result, sign) if return_sign else result


def softmax(trace: Trace, x: Any, axis: Any = None) -> Any:
    """``exp(x)/sum(exp(x))``, shifted by the maximum."""
    values = _floating(trace, x)
    shifted = np.exp(values - np.max(values, axis=axis, keepdims=True))
    return shifted / np.sum(shifted, axis=axis, keepdims=True)


def log_softmax(trace: Trace, x: Any, axis: Any = None) -> Any:
    """``x - log(sum(exp(x)))``, shifted by the maximum."""
    values = _floating(trace, x)
    shifted = values - _greatest(values, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
