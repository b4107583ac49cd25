"""Functions whose answer for complex values is a matter of their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ops.complex_parts import PARTS

from ..facts.layout import Strides, contiguous, k_order
from ..operands.operands import as_traced, cast
from ..operands.python_numbers import check_number
from ..values.array import TracedArray, from_value
from ..values.trace import Trace


def _fresh(x: TracedArray, itemsize: int = 0) -> Strides | None:
    """The strides of a new array in the order of ``x``."""
    if not x.is_array:
        return None
    return contiguous(x.shape, itemsize or x.itemsize, k_order(x.shape, [x.strides]))


def imag(trace: Trace, val: Any) -> Any:
    """``np.imag``."""
    return as_traced(trace, val).imag


def conjugate(x: Any) -> Any:
    """``np.conjugate``: real numbers are their own, as a new array."""
    if x.dtype.kind != "c":
        return np.positive(x)
    return conjugated(x)


def conjugated(x: TracedArray) -> TracedArray:
    """``x.conjugate()`` of complex numbers."""
    return from_value(x.trace, x.trace.emit("Conj", x.value), _fresh(x))


def python_complex(trace: Trace, real: Any = 0.0, imag: Any = 0.0) -> TracedArray:
    """``complex(real, imag)`` as Python makes it: ``real + imag*1j``, part by part."""
    first, second = as_traced(trace, real), as_traced(trace, imag)
    for x in (first, second):
        check_number(trace, x)
    parts = (first, second)
    if "c" in (first.dtype.kind, second.dtype.kind):
        parts = _plus(*map(_split, parts))
    value = trace.builder.const(0j)
    for name, part in zip(PARTS, parts, strict=True):
        value = trace.emit(f"With{name}", value, _python_float(as_traced(trace, part)))
    return from_value(trace, value)


def _split(x: TracedArray) -> tuple[Any, Any]:
    return (x.real, x.imag) if x.dtype.kind == "c" else (x, 0.0)


def _plus(first: tuple[Any, Any], second: tuple[Any, Any]) -> tuple[Any, Any]:
    """The parts of ``first + second*1j``."""
    return first[0] - second[1], first[1] + second[0]


def _python_float(x: TracedArray) -> Any:
    value = x.value
    if x.ndim:
        value = x.trace.emit("Squeeze", value, axes=tuple(range(x.ndim)))
    return cast(x.trace, value, np.dtype(np.float64), "weak")


def squared_size(x: TracedArray) -> TracedArray:
    """re² + im², as a complex variance adds up."""
    real: Any = x.real
    imaginary: Any = x.imag
    return real * real + imaginary * imaginary


def by_parts(x: TracedArray, function: Callable[[Any], Any]) -> Any:
    """Complex values made of the function's answers for both parts; a scalar of rank 0."""
    if not x.ndim:
        x = from_value(x.trace, x.trace.emit("Squeeze", x.value, axes=(), kind="scalar")) if (
            x.is_array) else from_value(x.trace, cast(x.trace, x.value, x.dtype))
    real, imaginary = as_traced(x.trace, function(x.real)), as_traced(x.trace, function(x.imag))
    with_real = x.trace.emit("WithReal", x.value, real.value)
    value = x.trace.emit("WithImag", with_real, imaginary.value)
    return from_value(x.trace, value, _fresh(x))


def variance(
    x: TracedArray, axes: tuple[int, ...], ddof: Any, dtype: np.dtype, is_complex: bool
) -> Any:
    """The mean squared distance from the mean, axes kept; a sum of nothing over 0 is one of both
    parts where it is complex."""
    wide = from_value(x.trace, cast(x.trace, x.value, dtype), _fresh(x, dtype.itemsize))
    total = squared_size(wide - wide.mean(axis=axes, keepdims=True)).sum(axis=axes, keepdims=True)
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    if is_complex:
        total = from_value(x.trace, cast(x.trace, total.value, dtype))
    return total / max(count - ddof, 0)
