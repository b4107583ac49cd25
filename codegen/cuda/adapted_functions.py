"""Functions of NumPy's made of several of CuPy's, where CuPy's own does something else.

Raises ``ValueError`` for arguments that they do not take: then NumPy computes the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

Function = Callable[..., Any]


def adapted(op: str, function: Function, cupy: Any) -> Function:
    """The function for an op, by CuPy's of that name."""
    adapt = _ADAPTED.get(op)
    return function if adapt is None else adapt(function, cupy)


def _with_nan(before_axis: int, function: Function, cupy: Any) -> Function:
    """The function, whose results are NaN where one is among the elements: CuPy sorts NaN behind
    the others.  ``before_axis``: arguments between the array and ``axis``."""

    def call(a: Any, *args: Any, **named: Any) -> Any:
        if len(args) > before_axis + 1:
            raise ValueError("arguments behind axis are taken by name")
        result = function(a, *args, **named)
        if a.dtype.kind != "f":
            return result
        axis = args[before_axis] if len(args) > before_axis else named.get("axis")
        has_nan = cupy.any(cupy.isnan(a), axis=axis, keepdims=named.get("keepdims", False))
        return cupy.where(has_nan, np.nan, result)

    return call


def _lexsort(function: Function, cupy: Any) -> Function:
    """Of keys of several dtypes, which CuPy's has as rows of one array: stable sorts, the last key
    being the first in rank."""

    def call(keys: Sequence[Any], *args: Any, **named: Any) -> Any:
        if args or named or not isinstance(keys, (tuple, list)) or any(
                len(k.shape) != 1 for k in keys):
            raise ValueError("keys are arrays of one axis")
        order = cupy.argsort(keys[0], kind="stable")
        for key in keys[1:]:
            among = cupy.argsort(cupy.take(key, order), kind="stable")
            order = cupy.take(order, among)
        return order

    return call


def _digitize(function: Function, cupy: Any) -> Function:
    """Of bins that fall, too; of others than monotonic ones NumPy raises."""

    def call(x: Any, bins: Any, right: bool = False) -> Any:
        if len(bins.shape) != 1 or x.dtype != bins.dtype:
            raise ValueError("bins of one axis, and of the elements' dtype")
        side, upward = "left" if right else "right", (bins[:-1], bins[1:])
        if _all(cupy, cupy.less_equal(*upward)):
            return cupy.searchsorted(bins, x, side=side)
        if not _all(cupy, cupy.greater_equal(*upward)):
            raise ValueError("bins must be monotonically increasing or decreasing")
        return cupy.subtract(bins.shape[0], cupy.searchsorted(cupy.flip(bins), x, side=side))

    return call


def _all(cupy: Any, array: Any) -> bool:
    """A look of the host's."""
    return bool(cupy.all(array).get())


_ADAPTED: Mapping[str, Callable[[Function, Any], Function]] = {
    "Median": partial(_with_nan, 0), "Percentile": partial(_with_nan, 1),
    "Quantile": partial(_with_nan, 1), "Lexsort": _lexsort, "Digitize": _digitize,
}
