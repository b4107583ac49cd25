"""``sliding_window_view``: a read-only view of all windows of an array, in a graph a gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.dims import is_static

from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.handlers import any_traced, entry, when_called
from ..values.trace import Trace

_sliding: Any = np.lib.stride_tricks.sliding_window_view


@entry(_sliding)
def sliding_window_view(
    trace: Trace, x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False,
    writeable: bool = False,
) -> TracedArray:
    """Windows along one or several axes, whose elements are the last axes of the result."""
    array = as_traced(trace, x)
    if writeable:
        raise unsupported("a sliding window view that can be written to", loc=trace.loc,
                          cure="write to the array itself")
    if not is_static(array.shape):
        raise unsupported("windows of an array whose size only the run knows", loc=trace.loc)
    stand_in = np.broadcast_to(np.zeros((), array.dtype), array.shape)
    try:
        _sliding(stand_in, window_shape, axis)
    except (ValueError, TypeError) as error:
        raise trace.error(error, [array.value]) from None
    sizes = tuple(window_shape) if np.iterable(window_shape) else (int(window_shape),)
    axes = range(array.ndim) if axis is None else axis if np.iterable(axis) else (axis,)
    axes = tuple(d % array.ndim for d in axes)
    strides = (*array.strides, *(array.strides[d] for d in axes))
    return array.view_through("Windows", strides, axes=axes, sizes=tuple(map(int, sizes)))


@when_called(np.lib.stride_tricks.as_strided)
def _as_strided(hooks: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if any_traced((x,), {}):
        raise unsupported(
            "np.lib.stride_tricks.as_strided", loc=hooks.trace.loc,
            cure="use slices, np.lib.stride_tricks.sliding_window_view or np.broadcast_to")
    return np.lib.stride_tricks.as_strided(x, *args, **kwargs)
