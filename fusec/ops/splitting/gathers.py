"""Gathers and scatters.

Along an axis with indices all of it is read, or changed, except where its index counts the rows:
``x[np.arange(n), labels]`` and `np.take_along_axis` read row ``i`` for row ``i`` of the result.
"""

from __future__ import annotations

import itertools

import numpy as np

from fusec.ir import Node, Value

from .protocol import BlockSite, Links, Read, SplitRule, declare, sizes_of

# Ops through which an index goes unchanged: each row of the result has the number of its row.
_PASSED = ("ExpandDims", "Squeeze", "BroadcastTo", "CheckIndex", "Cast", "Reshape", "Transpose")


def first_index(node: Node) -> int:
    """The number of a gather's, or scatter's, first index among its operands."""
    return 1 if node.op == "Gather" else 2


def index_rank(node: Node) -> int:
    return max(int(v.type.rank) for v in node.inputs[first_index(node):])


def counted_axis(value: Value) -> int | None:
    """The axis along which an index is 0, 1, 2, ..., the same for all of the others; None where it
    is another index."""
    node = value.node
    if value.dtype.kind not in "iu" or value.type.size > np.iinfo(value.dtype).max:
        return None
    if node.op == "Iota":
        return 0
    if node.op not in _PASSED:
        return None
    before = counted_axis(node.inputs[0])
    if before is None:
        return None
    size, shape = node.inputs[0].shape[before], value.shape
    if node.op == "Transpose":
        return int(node.attrs["perm"].index(before))
    if node.op in ("BroadcastTo", "CheckIndex", "Cast"):
        after = before + len(shape) - node.inputs[0].type.rank
        return after if shape[after] == size else None
    long = [axis for axis, length in enumerate(shape) if length != 1]
    others = [axis for axis, length in enumerate(node.inputs[0].shape) if length != 1]
    return long[0] if others == [before] and len(long) == 1 else None


def own_rows(node: Node) -> dict[int, int]:
    """The axes of a gather's source, or a scatter's target, of which each row is read, or changed,
    for its own number, with the axis of the indices that it goes along."""
    found: dict[int, int] = {}
    first, rank = first_index(node), index_rank(node)
    for axis, index in zip(node.attrs["axes"], node.inputs[first:], strict=True):
        counted = counted_axis(index)
        if counted is None:
            continue
        size, along = index.shape[counted], counted + rank - index.type.rank
        if size > 1 and size == node.inputs[0].shape[axis] and along not in found.values():
            found[axis] = along
    return found


def _index(site: BlockSite, number: int, along: int | None) -> Value:
    """An index of a block; one that counts rows does so from the block's first."""
    if along is None:
        return site.operand(number)
    sizes = sizes_of(site.box_of(number))
    axis = along - index_rank(site.node) + len(sizes)
    own = site.emit("Iota", size=sizes[axis], dtype=site.node.inputs[number].dtype)
    others = tuple(k for k in range(len(sizes)) if k != axis)
    spread = site.emit("ExpandDims", own, axes=others) if others else own
    return spread if all(sizes[k] == 1 for k in others) else site.emit(
        "BroadcastTo", spread, shape=sizes)


def _again(site: BlockSite) -> Value:
    node, own = site.node, own_rows(site.node)
    first = first_index(node)
    indices = [_index(site, first + k, own.get(axis))
               for k, axis in enumerate(node.attrs["axes"])]
    # A block's elements are not those that a whole array's ``chunk`` was found for.
    attrs = {name: value for name, value in node.attrs.items() if name != "chunk" or not own}
    return site.emit(node.op, *map(site.operand, range(first)), *indices, **attrs)


def _gathered_links(node: Node, number: int) -> Links:
    """Of a source: the axes without indices, and those read row by row; of indices: their axes of
    the result."""
    axes, at, rank = node.attrs["axes"], node.attrs["at"], index_rank(node)
    if number:
        shape = node.inputs[number].shape
        return tuple(None if size == 1 else Read(at + rank - len(shape) + axis)
                     for axis, size in enumerate(shape))
    own = own_rows(node)
    rest = iter([d for d in range(node.types[0].rank) if not at <= d < at + rank])
    return tuple((Read(at + own[axis]) if axis in own else None) if axis in axes
                 else Read(next(rest)) for axis in range(node.inputs[0].type.rank))


def _scattered_links(node: Node, number: int) -> Links:
    """Along axes without indices, and those changed row by row, target and value go with the
    result."""
    at, rank, own = node.attrs["at"], index_rank(node), own_rows(node)
    changed = changed_axes(node)
    if number == 0:
        return tuple(None if axis in changed else Read(axis)
                     for axis in range(node.types[0].rank))
    rows = {along: axis for axis, along in own.items()}

    def of_index(along: int) -> Read | None:
        return Read(rows[along]) if along in rows else None

    if number == 1:
        rest = (axis for axis in range(node.types[0].rank) if axis not in node.attrs["axes"])
        return tuple(of_index(axis - at) if at <= axis < at + rank else Read(next(rest))
                     for axis in range(node.inputs[1].type.rank))
    shape = node.inputs[number].shape
    return tuple(None if size == 1 else of_index(axis + rank - len(shape))
                 for axis, size in enumerate(shape))


def changed_axes(node: Node) -> tuple[int, ...]:
    """The axes of a scatter's target of which any row may be changed."""
    own = own_rows(node)
    return tuple(axis for axis in node.attrs["axes"] if axis not in own)


def _picked_links(node: Node, number: int) -> Links:
    kept = itertools.count()
    return () if number else tuple(
        None if axis in node.attrs["axes"] else Read(next(kept))
        for axis in range(node.inputs[0].type.rank))


def _replaced_links(node: Node, number: int) -> Links:
    """Of the target: the axes without indices; of its new part: these."""
    axes = node.attrs["axes"]
    kept = [axis for axis in range(node.types[0].rank) if axis not in axes]
    if number == 0:
        return tuple(None if axis in axes else Read(axis) for axis in range(node.types[0].rank))
    return tuple(map(Read, kept)) if number == 1 else ()


def _picked(site: BlockSite) -> Value:
    return site.emit(site.node.op, *map(site.operand, range(len(site.node.inputs))),
                     **site.node.attrs)


declare(SplitRule(_gathered_links, _again), "Gather")
declare(SplitRule(_picked_links, _picked), "Pick")
declare(SplitRule(_replaced_links, _picked, whole=lambda node: node.attrs["axes"]), "PickUpdate")
declare(SplitRule(_scattered_links, _again, whole=changed_axes), "Scatter")

__all__ = ["changed_axes", "counted_axis", "own_rows"]
