"""``np.roll``: slices joined where the shift is known, else a gather."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.dims import is_static, maximum
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ir.sizes.symbolic_sizes import plain_int
from fusec.ops.shapes import normalise_axis

from ..arrays.joining import concatenate
from ..arrays.ranges import arange
from ..arrays.shaping import in_numpys_words, ravel, reshape
from ..facts.layout import contiguous, like_order
from ..operands.operands import as_traced, holds_traced, is_run_time_int
from ..operands.sizes import number
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.storage import Storage
from ..values.trace import Trace


@entry(np.roll)
def roll(trace: Trace, a: Any, shift: Any, axis: Any = None) -> Any:
    """``np.roll``: two slices joined, per axis; a gather where only the run knows the shift."""
    x = as_traced(trace, a)
    is_open = is_run_time_int(shift) or not is_static(x.shape)
    if is_open and (axis is None or isinstance(axis, int)) and np.ndim(shift) == 0:
        return _roll_by_data(trace, x, shift, axis)
    if axis is None:
        flat = roll(trace, ravel(trace, x), shift, 0)
        return reshape(trace, flat, x.shape)
    if is_run_time_int(shift) or holds_traced(shift) or (
            type(shift) is TracedArray and shift.is_array):
        return _roll_by_each(trace, x, as_traced(trace, shift), axis)
    shifts: dict[int, Any] = {}
    for amount, each in _pairs(trace, shift, axis):
        position = in_numpys_words(trace, normalise_axis, int(each), x.ndim)
        shifts[position] = shifts.get(position, 0) + plain_int(amount)
    for position, amount in shifts.items():
        x = _roll_axis(trace, x, amount, position)
    strides = contiguous(x.shape, x.itemsize, like_order(as_traced(trace, a).strides))
    return TracedArray(trace, Storage(x.value, strides))


def _pairs(trace: Trace, shift: Any, axis: Any) -> Iterable[tuple[Any, Any]]:
    """Shifts with their axes, as NumPy broadcasts them; those that follow from sizes as they are.
    """
    amounts = shift if type(shift) in (list, tuple) else (shift,)
    if not any(type(n) is Symbolic for n in amounts):
        return in_numpys_words(trace, np.broadcast, shift, axis)
    places = np.arange(len(amounts)) if amounts is shift else 0
    pairs = in_numpys_words(trace, np.broadcast, places, axis)
    return [(amounts[int(place)], each) for place, each in pairs]


def _roll_by_each(trace: Trace, x: TracedArray, shifts: TracedArray, axis: Any) -> Any:
    """By an array of integers of the run, one after the other."""
    if shifts.dtype.kind not in "iu" or not shifts.type.is_static:
        raise unsupported("np.roll by a shift that is only known when the code runs and is no "
                          "integer or array of integers of a known length", loc=trace.loc,
                          values=[("shift", shifts.type)], cure="convert the shift: .astype(int)")
    numbers = np.arange(shifts.size).reshape(shifts.shape)
    flat = ravel(trace, shifts)
    for place, each in in_numpys_words(trace, np.broadcast, numbers, axis):
        x = _roll_by_data(trace, x, flat[int(place)], int(each))
    return x


def _roll_by_data(trace: Trace, x: TracedArray, shift: Any, axis: int | None) -> Any:
    if axis is None:
        flat = _roll_by_data(trace, ravel(trace, x), shift, 0)
        return reshape(trace, flat, x.shape)
    axis = in_numpys_words(trace, normalise_axis, axis, x.ndim)
    least = as_traced(trace, number(trace, maximum(x.shape[axis], 1))).value
    size = from_value(trace, trace.emit("Cast", least, dtype=np.dtype(np.int64), kind="scalar"))
    places = np.mod(arange(trace, number(trace, x.shape[axis])) - shift % size, size)
    moved = np.take(x, places, axis=axis)
    strides = contiguous(x.shape, x.itemsize, like_order(x.strides))
    return TracedArray(trace, Storage(moved.value, strides))


def _roll_axis(trace: Trace, x: TracedArray, shift: int, axis: int) -> TracedArray:
    size = x.shape[axis]
    if size == 0 or shift % size == 0:
        return x
    cut = size - shift % maximum(size, 1)
    before = (slice(None),) * axis
    return concatenate(
        trace, [x[(*before, slice(cut, None))], x[(*before, slice(None, cut))]], axis)
