"""Basic indexing: integers, slices, Ellipsis and newaxis as view steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import unsupported
from fusec.ir.sizes.dims import Size, is_static, maximum, minimum
from fusec.ir.sizes.symbolic_sizes import length_of_range, plain_int, position, slice_indices

from ..operands.sizes import as_size, check_bounds
from ..values.array import TracedArray


@dataclass
class BasicIndex:
    """A basic index: a slice per axis, then dropped axes, then inserted ones."""

    starts: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    inserted: list[int] = field(default_factory=list)
    has_ellipsis: bool = False

    @property
    def is_scalar(self) -> bool:
        """All integers: NumPy returns a scalar, not a view."""
        return len(self.dropped) == len(self.starts) and not self.has_ellipsis and (
            not self.inserted)


def expanded(array: TracedArray, key: Any) -> tuple[list[Any], bool]:
    """The key as one entry per axis (plus newaxis entries), Ellipsis filled in."""
    entries = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, (bool, np.bool_)) and type(k) is not TracedArray for k in entries):
        raise unsupported("indexing with a boolean", loc=array.trace.loc,
                          cure="index with slices, or select with np.where")
    used = sum(1 for k in entries if k is not None and k is not Ellipsis)
    dots = sum(1 for k in entries if k is Ellipsis)
    if dots > 1:
        raise array.trace.error(IndexError("an index can only have a single ellipsis ('...')"))
    if used > array.ndim:
        raise array.trace.error(IndexError(
            f"too many indices for array: array is {array.ndim}-dimensional, but {used} were "
            f"indexed"), [array.value])
    if not dots:
        entries.append(Ellipsis)
    at = next(i for i, k in enumerate(entries) if k is Ellipsis)
    entries[at: at + 1] = [slice(None)] * (array.ndim - used)
    return entries, bool(dots)


def parsed(array: TracedArray, key: Any) -> BasicIndex:
    entries, dots = expanded(array, key)
    plan, axis, out = BasicIndex(has_ellipsis=dots), 0, 0
    for entry in entries:
        if entry is None:
            plan.inserted.append(out)
            out += 1
            continue
        if isinstance(entry, slice):
            out += 1
        _add_axis(array, plan, axis, entry)
        axis += 1
    return plan


def _add_axis(array: TracedArray, plan: BasicIndex, axis: int, entry: Any) -> None:
    size = array.shape[axis]
    if isinstance(entry, slice):
        start, stop, step = _slice_indices(array, entry, size)
        plan.starts.append(start)
        plan.steps.append(step)
        plan.sizes.append(_length(start, stop, step, size))
        return
    index = _integer(array, entry)
    if not -size <= index < size:
        raise array.trace.error(IndexError(
            f"index {index} is out of bounds for axis {axis} with size {size}"), [array.value])
    plan.starts.append(position(index, size))
    plan.steps.append(1)
    plan.sizes.append(1)
    plan.dropped.append(axis)


def _length(start: Size, stop: Size, step: int, size: Size) -> Size:
    if is_static((start, stop)):
        return length_of_range(start, stop, step)
    if step == 1 and stop == size and start == minimum(1, size):
        return maximum(size - 1, 0)
    return maximum(-((start - stop) // step), 0)


def _slice_indices(array: TracedArray, entry: slice, size: Size) -> tuple[Size, Size, int]:
    check_bounds(array.trace, entry)
    try:
        bounds = [None if b is None else as_size(b) for b in (entry.start, entry.stop)]
        if not is_static((size, *bounds)):
            first, last = bounds
            return _clamped(first, last, 1 if entry.step is None else as_size(entry.step), size)
        step = as_size(entry.step) if type(entry.step) is TracedArray else entry.step
        return slice_indices(slice(bounds[0], bounds[1], step), size)
    except (ValueError, TypeError) as error:
        if type(entry.start) is TracedArray or type(entry.stop) is TracedArray:
            raise
        raise array.trace.error(error) from None


def _clamped(
    start: Size | None, stop: Size | None, step: Size, size: Size
) -> tuple[Size, Size, int]:
    """``slice.indices`` for a size that only the run knows."""
    if not isinstance(step, int) or step == 0:
        raise ValueError("slice step cannot be zero" if step == 0 else "slice step")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clamped(bound: Size) -> Size:
        is_negative = minimum(maximum(-bound, 0), 1)
        return minimum(maximum(bound + size * is_negative, low), high)

    first = (low if step > 0 else high) if start is None else clamped(start)
    last = (high if step > 0 else low) if stop is None else clamped(stop)
    return first, last, step


def _integer(array: TracedArray, entry: Any) -> int:
    if isinstance(entry, (int, np.integer)) and type(entry) is not TracedArray and not isinstance(
            entry, (bool, np.bool_)):
        return plain_int(entry)
    if type(entry) is TracedArray and entry.ndim == 0 and entry.dtype.kind in "iu":
        return as_size(entry)  # raises, unless no argument decides it
    if type(entry) is TracedArray and entry.ndim == 0 and entry.dtype.kind == "f":
        raise array.trace.error(IndexError(_INVALID_INDEX), [entry.value])
    if type(entry) is TracedArray or isinstance(entry, (np.ndarray, list)):
        raise unsupported(
            "this combination of arrays and other entries in an index", loc=array.trace.loc,
            cure="index with the arrays alone, and slice before or after: x[:, 1:][rows]")
    raise array.trace.error(IndexError(_INVALID_INDEX))


_INVALID_INDEX = ("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and "
                  "integer or boolean arrays are valid indices")


def view(array: TracedArray, key: Any) -> TracedArray:
    """The view that basic indexing gives."""
    return applied(array, parsed(array, key))


def applied(array: TracedArray, plan: BasicIndex) -> TracedArray:
    sizes, result = tuple(plan.sizes), array
    moved = tuple(s * k for s, k in zip(array.strides, plan.steps, strict=True))
    if any(s != 0 for s in plan.starts) or sizes != array.shape or any(s != 1 for s in plan.steps):
        result = result.view_through("Slice", moved, starts=tuple(plan.starts),
                                     steps=tuple(plan.steps), sizes=sizes)
    if plan.dropped:
        kept = tuple(s for axis, s in enumerate(result.strides) if axis not in plan.dropped)
        result = result.view_through("Squeeze", kept, axes=tuple(plan.dropped))
    if plan.inserted:
        strides = list(result.strides)
        for axis in plan.inserted:
            strides.insert(axis, 0)
        result = result.view_through("ExpandDims", tuple(strides), axes=tuple(plan.inserted))
    if result is array:
        result = TracedArray(array.trace, array.storage, array.steps)
    return result
