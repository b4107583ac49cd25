"""Arguments that share memory without being the same array: views of one input.

A trace has one storage for each piece of memory.  When a call writes to an argument that overlaps
another one, the call is traced again with their common memory as one flat input.  Both are then
views of it, made of slices, reshapes and a transposition, so that one sees the other's writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.ir import regions

from .flat_call import FlatCall


@dataclass(frozen=True)
class FlatView:
    """An array as a view of flat memory: offset and strides count elements."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def merged(call: FlatCall) -> FlatCall | None:
    """The call with overlapping arrays replaced by their memory; None if that cannot be done.

    It can if the arrays of a group have one dtype, are all writeable or all read-only, and slices
    and reshapes of the memory give each of them.
    """
    leaves, parts = list(call.leaves), list(call.key[1:])
    for group in _groups(leaves, call.is_static):
        memory = _memory([leaves[i] for i in group])
        if memory is None:
            return None
        for i in group:
            layout = _layout(leaves[i], memory)
            if view_of(memory, layout) is None:
                return None
            leaves[i], parts[i] = memory, (
                memory.dtype, memory.shape, memory.strides, memory.flags.writeable, group[0],
                layout)
    return replace(call, leaves=tuple(leaves), key=(call.key[0], *parts), separate=call)


def overlapping(call: FlatCall, written: frozenset[int]) -> tuple[int, int] | None:
    """Two different arrays of the call that may overlap, the first of them written; else None."""
    arrays = [(i, x) for i, x in enumerate(call.leaves)
              if type(x) is np.ndarray and x.size and not call.is_static[i]]
    return regions.overlapping(arrays, [(i, x) for i, x in arrays if i in written],
                               lambda i, j: call.key[i + 1][4] == call.key[j + 1][4])


def overlaps_itself(call: FlatCall, written: frozenset[int]) -> int | None:
    """A written array of the call whose elements overlap each other; else None.

    In NumPy a write to one element changes others, which no value of the graph expresses.
    """
    return next((i for i, x in enumerate(call.leaves)
                 if i in written and type(x) is np.ndarray and not call.is_static[i]
                 and regions.may_overlap_itself(x.shape, x.strides, x.itemsize)), None)


def _groups(leaves: Sequence[Any], is_static: Sequence[bool]) -> list[list[int]]:
    """Positions of arrays that overlap, directly or through others; groups of two or more."""
    arrays = [i for i, x in enumerate(leaves)
              if type(x) is np.ndarray and x.size and not is_static[i]]
    groups: list[list[int]] = []
    for i in arrays:
        touching = [g for g in groups if any(np.may_share_memory(leaves[i], leaves[j]) for j in g)]
        groups = [g for g in groups if g not in touching]
        groups.append(sorted([i, *(j for g in touching for j in g)]))
    return [_with_arrays_between(leaves, g, arrays) for g in groups if len(g) > 1]


def _with_arrays_between(leaves: Sequence[Any], group: list[int], arrays: list[int]) -> list[int]:
    """The group, with arrays that overlap none of it but lie in its memory."""
    memory = _memory([leaves[i] for i in group])
    return group if memory is None else [
        i for i in arrays if i in group or np.may_share_memory(leaves[i], memory)]


def _memory(arrays: list[np.ndarray]) -> np.ndarray | None:
    """A flat array of the memory of all: of their whole base where they have one."""
    first = arrays[0]
    if any(a.dtype != first.dtype or a.flags.writeable != first.flags.writeable for a in arrays):
        return None
    bounds = [np.lib.array_utils.byte_bounds(a) for a in arrays]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    size = first.itemsize
    if any((b[0] - low) % size or any(s % size for s in a.strides)
           for a, b in zip(arrays, bounds, strict=True)):
        return None
    memory = _part_of(_root(first), low, high, first.dtype)
    if memory is None:
        lowest = arrays[[b[0] for b in bounds].index(low)]
        corner = lowest[tuple(slice(None, None, -1 if s < 0 else 1) for s in lowest.strides)]
        memory = np.lib.stride_tricks.as_strided(corner, ((high - low) // size,), (size,))
    if memory.flags.writeable != first.flags.writeable:
        memory.flags.writeable = first.flags.writeable
    return memory


def _part_of(base: np.ndarray, low: int, high: int, dtype: np.dtype) -> np.ndarray | None:
    """``base`` as whole elements aligned with ``low``: all of it, so that last rows are full."""
    start, end = np.lib.array_utils.byte_bounds(base)
    if not base.flags.forc or low < start or end < high or base.dtype.hasobject:
        return None
    first = (low - start) % dtype.itemsize
    count = (end - start - first) // dtype.itemsize
    memory = base.ravel(order="K").view(np.uint8)
    return memory[first:first + count * dtype.itemsize].view(dtype)


def _root(array: np.ndarray) -> np.ndarray:
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def _layout(array: np.ndarray, memory: np.ndarray) -> FlatView:
    start = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    size = array.itemsize
    return FlatView(start // size, array.shape, tuple(s // size for s in array.strides))


def view_of(memory: Any, layout: FlatView) -> Any:
    """The view of this layout of flat memory, which is an ndarray or a traced array; None if slices
    and reshapes do not give it."""
    axes = [i for i, n in enumerate(layout.shape) if n > 1]
    order = sorted(axes, key=lambda i: -abs(layout.strides[i]))
    lows = sum((layout.shape[i] - 1) * min(layout.strides[i], 0) for i in axes)
    sizes = [(layout.shape[i], abs(layout.strides[i])) for i in order]
    cuts = _cuts(layout.offset + lows, sizes, memory.shape[0])
    if cuts is None:
        return None
    view = memory
    for begin, end, shape, step in cuts:
        view = view[..., begin:end:step]
        view = view.reshape(*view.shape[:-1], *shape) if shape else view
    flips = tuple(slice(None, None, -1 if layout.strides[i] < 0 else 1) for i in order)
    view = view.reshape(()) if not axes else view[flips] if any(
        layout.strides[i] < 0 for i in order) else view
    view = view.transpose(*(order.index(i) for i in axes)) if len(axes) > 1 else view
    return view.reshape(layout.shape) if len(axes) < len(layout.shape) else view


def _cuts(
    offset: int, sizes: list[tuple[int, int]], length: int
) -> list[tuple[int, int, tuple[int, ...], int]] | None:
    """Steps (begin, end, split, stride): cut the last axis, then split it in rows."""
    result: list[tuple[int, int, tuple[int, ...], int]] = []
    for number, (count, stride) in enumerate(sizes[:-1]):
        extent = sum((n - 1) * s for n, s in sizes[number + 1:]) + 1
        begin = min(offset, length - count * stride)  # the last row may be cut off
        offset -= begin
        if begin < 0 or offset + extent > stride:
            return None
        result.append((begin, begin + count * stride, (count, stride), 1))
        length = stride
    count, stride = sizes[-1] if sizes else (1, 1)
    return [*result, (offset, offset + (count - 1) * stride + 1, (), stride)]
