"""Basic indexing with integers that only the run knows: views at run-time places."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.symbolic_sizes import position

from ..operands.index_uses import note_pick
from ..operands.operands import is_run_time_int
from ..operands.python_numbers import check_signed, interval
from ..values.array import TracedArray, from_value
from .basic_indexing import expanded, view

I64 = np.dtype(np.int64)


def has_open_index(array: TracedArray, key: Any) -> bool:
    """Whether an integer of the key is for an axis whose size only the run knows."""
    if array.type.is_static:
        return False
    entries = (e for e in expanded(array, key)[0] if e is not None)
    return any(isinstance(size, Dim) and not isinstance(e, slice) and hasattr(e, "__index__")
               for e, size in zip(entries, array.shape, strict=True))


def get(array: TracedArray, entries: Sequence[Any], dots: bool) -> Any:
    """``array[entries]``: a view, or a scalar where every axis has an integer."""
    if dots or any(e is None or isinstance(e, slice) for e in entries):
        _refuse_elements(array, entries)
        return part(array, entries)
    axes, indices = tuple(range(array.ndim)), _indices(array, entries, range(array.ndim))
    safe = _safe(array, axes, indices)
    note_pick(array.trace, array.shape, axes, indices, safe)
    value = array.trace.emit("Pick", array.value, *indices, axes=axes, safe=safe, kind="scalar")
    return from_value(array.trace, value)


def _refuse_elements(array: TracedArray, entries: Sequence[Any]) -> None:
    """``x[i, None]`` and ``x[i, ...]`` of a vector: NumPy's result shares the element's memory."""
    integers = sum(e is not None and not isinstance(e, slice) for e in entries)
    if not array.trace.in_region and integers == array.ndim:
        raise unsupported("a view of one element at a run-time index", loc=array.trace.loc,
                          cure="read the element, x[i], or a slice")


def part(array: TracedArray, entries: Sequence[Any]) -> TracedArray:
    """The view at the entries (one an axis, and ``None``)."""
    by_axis = [e for e in entries if e is not None]
    axes = tuple(i for i, e in enumerate(by_axis) if not isinstance(e, slice))
    indices = _indices(array, [by_axis[axis] for axis in axes], axes)
    kept = tuple(s for axis, s in enumerate(array.strides) if axis not in axes)
    safe = _safe(array, axes, indices)
    note_pick(array.trace, array.shape, axes, indices, safe)
    picked = array.view_through("Pick", kept, *indices, axes=axes, safe=safe)
    rest = [e for e in entries if e is None or isinstance(e, slice)]
    if all(e == slice(None) for e in rest):
        return picked
    return view(picked, (*rest, Ellipsis))


def _indices(array: TracedArray, entries: Sequence[Any], axes: Sequence[int]) -> list[Value]:
    return [_index(array, e, axis) for e, axis in zip(entries, axes, strict=True)]


def _index(array: TracedArray, entry: Any, axis: int) -> Value:
    trace = array.trace
    if is_run_time_int(entry):
        value = entry.value
        check_signed(trace, value, OverflowError("Python int too large to convert to C long"))
        return value if value.dtype == I64 else trace.emit(
            "Cast", value, dtype=I64, kind="weak" if value.type.is_weak else "scalar")
    size, index = array.shape[axis], operator.index(entry)
    if isinstance(size, Dim):
        return trace.builder.const(index)  # NumPy checks it at run time
    if not -size <= index < size:
        raise trace.error(IndexError(
            f"index {index} is out of bounds for axis {axis} with size {size}"), [array.value])
    return trace.builder.const(position(index, size))


def _safe(array: TracedArray, axes: Sequence[int], indices: Sequence[Value]) -> tuple[int, ...]:
    """The axes whose index cannot be negative or too large."""
    safe_axes = []
    for axis, index in zip(axes, indices, strict=True):
        bounds = interval(array.trace, index)
        size = array.shape[axis]
        if bounds is not None and not isinstance(size, Dim) and bounds[0] >= 0 and (
                bounds[1] < size):
            safe_axes.append(axis)
    return tuple(safe_axes)
