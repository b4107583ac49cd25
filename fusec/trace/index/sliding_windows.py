"""``sliding_window_view``: a read-only view of all windows of an array, in a graph a gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import is_static
from fusec.ir.sizes.symbolic_numbers import Symbolic, is_int
from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain_int

from ..operands.operands import as_traced
from ..operands.sizes import as_size
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
    given = window_shape if type(window_shape) is Symbolic or not np.iterable(window_shape) else (
        tuple(window_shape))
    shape, windows = array.shape, given
    if _fit(shape, given, axis):
        shape, windows = resolve((shape, given), {})
    stand_in = np.broadcast_to(np.zeros((), array.dtype), shape)
    try:
        _sliding(stand_in, windows, axis)
    except (ValueError, TypeError) as error:
        raise trace.error(error, [array.value]) from None
    sizes = given if type(given) is tuple else (given,)
    axes = range(array.ndim) if axis is None else axis if np.iterable(axis) else (axis,)
    axes = tuple(d % array.ndim for d in axes)
    strides = (*array.strides, *(array.strides[d] for d in axes))
    return array.view_through("Windows", strides, axes=axes, sizes=tuple(map(plain_int, sizes)))


def _fit(shape: tuple[Any, ...], window: Any, axis: Any) -> bool:
    """Whether windows are known to fit, where lengths follow from sizes."""
    windows = window if type(window) is tuple else (window,)
    axes = range(len(shape)) if axis is None else axis if type(axis) is tuple else (axis,)
    if not is_symbolic((*shape, *windows)) or not all(map(is_int, (*windows, *axes))) or (
            len(windows) != len(axes)):
        return False
    left = list(shape)
    for d, size in zip(axes, windows, strict=True):
        if not -len(left) <= d < len(left) or size < 1 or left[d] < size:
            return False
        left[d] -= size - 1
    return True


@when_called(np.lib.stride_tricks.as_strided)
def _as_strided(
    hooks: Any, x: Any, shape: Any = None, strides: Any = None, subok: bool = False,
    writeable: bool = True, **kwargs: Any,
) -> Any:
    """``as_strided`` for windows of the array, or every so many elements of it."""
    if not any_traced((x,), {}):
        return np.lib.stride_tricks.as_strided(
            x, shape, strides, subok=subok, writeable=writeable, **kwargs)
    array = as_traced(hooks.trace, x)
    sizes = array.shape if shape is None else tuple(map(as_size, shape))
    steps = array.strides if strides is None else tuple(map(as_size, strides))
    if any(n < 0 for n in sizes):
        raise hooks.trace.error(ValueError("negative dimensions are not allowed"))
    windows = _as_windows(array, sizes, steps) if is_static(array.shape) and not kwargs else None
    if windows is None:
        raise unsupported(
            "np.lib.stride_tricks.as_strided that is no window of its array", loc=hooks.trace.loc,
            values=[("array", array.type)],
            cure="use slices, np.lib.stride_tricks.sliding_window_view or np.broadcast_to")
    return windows


def _as_windows(
    x: TracedArray, shape: tuple[int, ...], strides: tuple[int, ...]
) -> TracedArray | None:
    """The view as windows, each so many elements after the last one; None where it is none."""
    rank, widths = x.ndim, shape[x.ndim:] or (1,) * x.ndim
    is_windows = len(shape) == len(strides) == 2 * rank and strides[rank:] == x.strides
    if not rank or not (is_windows or len(shape) == len(strides) == rank) or min(shape) < 1:
        return None
    steps = []
    for step, stride, count, width, size in zip(
            strides, x.strides, shape, widths, x.shape, strict=False):
        every = 1 if count == 1 else step // stride if stride and step % stride == 0 else 0
        if every < 1 or (count - 1) * every + width > size:
            return None
        steps.append(slice(0, (count - 1) * every + 1, every))
    if not is_windows:
        return x[tuple(steps)]
    return sliding_window_view(x.trace, x, widths, tuple(range(rank)))[tuple(steps)]
