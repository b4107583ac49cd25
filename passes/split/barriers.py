"""Values that need every block along a line: made of partial results, which are joined.

A `Barrier` has a partial for each block (of one or more arrays), a way to join two of them, and a
result for later stages.  Joining is associative up to rounding; the order in which blocks are
joined is stated in docs/distributed.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fusec.core.records import dataclass, field
from fusec.ir import Node, TensorType, Value
from fusec.ops import registry
from fusec.ops.rows.scans import IDENTITIES, start_of
from fusec.ops.splitting import BlockSite, Box, Interval, Read, links_of
from fusec.ops.splitting.gathers import own_rows
from fusec.ops.splitting.protocol import sizes_of
from fusec.ops.splitting.rules import REDUCTIONS, einsum_letters, product_axes


@dataclass(frozen=True)
class Reduced:
    """An axis of an operand that a barrier joins along, ``number`` of which operand it is."""

    number: int
    axis: int


@dataclass(frozen=True, eq=False)
class Barrier:
    """``value`` made of partials of ``operands``.

    ``reduced``: the axes that are joined along, the first of them for each line.  ``join``: the
    name of how partials are joined (`fusec.distributed.joins`).  ``width``: arrays of a partial.
    ``partial(site)``: the partial of a block.  ``boxes(box, inner)``: the operands' boxes for a box
    of the result and the intervals of ``reduced``.
    """

    value: Value
    operands: tuple[Value, ...]
    reduced: tuple[Reduced, ...]
    join: str
    partial: Callable[[BlockSite], Sequence[Value]]
    boxes: Callable[[Box, Sequence[Interval]], list[Box]]
    width: int = 1
    options: dict[str, Any] = field(default_factory=dict)  # plain data that joining needs
    elements: int = 0  # of a partial, besides those along ``reduced``; where joining counts them
    only: tuple[Interval, ...] = ()  # the positions along ``reduced`` that count; (): all
    is_first_special: bool = False  # whether the first block's partial is made in another way

    @property
    def node(self) -> Node:
        return self.value.node


def _boxes_along(
    operand: Value, axes: Sequence[int], reduced: Sequence[Reduced]
) -> Callable[[Box, Sequence[Interval]], list[Box]]:
    """Of a reduction over ``axes`` of one operand."""
    def boxes(box: Box, inner: Sequence[Interval]) -> list[Box]:
        along = {r.axis: part for r, part in zip(reduced, inner, strict=True)}
        kept = iter(box)
        return [tuple(along.get(axis, (0, int(size))) if axis in axes else next(kept)
                      for axis, size in enumerate(operand.shape))]

    return boxes


def reduction(node: Node, obstacles: Sequence[Reduced]) -> Barrier:
    """A reduction over axes in blocks: the same reduction of each block, joined."""
    row, axes = registry.get(node.op), tuple(node.attrs["axes"])
    operand = node.inputs[0]
    return Barrier(
        node.out(), (operand,), tuple(obstacles), registry.get(row.joins).scalar or "",
        lambda site: [site.emit(node.op, site.operand(0), **node.attrs)],
        _boxes_along(operand, axes, obstacles))


def first_extremum(node: Node, obstacles: Sequence[Reduced]) -> Barrier:
    """``argmax`` along one axis: each block's extremum and where in the whole array it is."""
    operand, (axis,) = node.inputs[0], node.attrs["axes"]
    of = "Max" if node.op == "ArgMax" else "Min"

    def partial(site: BlockSite) -> list[Value]:
        block = site.operand(0)
        where = site.emit(node.op, block, axes=(axis,))
        start = site.start(axis, where.dtype, operand=0)
        return [site.emit(of, block, axes=(axis,)), site.emit("Add", where, start)]

    return Barrier(node.out(), (operand,), tuple(obstacles), node.op.lower(), partial,
                   _boxes_along(operand, (axis,), obstacles), width=2)


def moments(
    value: Value, operand: Value, node: Node, obstacles: Sequence[Reduced]
) -> Barrier:
    """Variance: each block's mean and sum of squared distances from it; Chan, Golub and LeVeque,
    "Algorithms for Computing the Sample Variance", The American Statistician 37 (1983)."""
    axes = tuple(node.attrs["axes"])

    def partial(site: BlockSite) -> list[Value]:
        block = site.operand(0)
        mean = site.emit("Mean", block, axes=axes)
        centred = site.emit("Sub", block, site.emit("ExpandDims", mean, axes=axes))
        return [mean, site.emit("Sum", site.emit("Square", centred), axes=axes)]

    options = {"ddof": node.attrs.get("ddof", 0), "root": node.op == "Std"}
    reduced = {r.axis for r in obstacles}
    others = math.prod(int(operand.shape[axis]) for axis in axes if axis not in reduced)
    return Barrier(value, (operand,), tuple(obstacles), "moments", partial, _boxes_along(
        operand, axes, obstacles), width=2, options=options, elements=others)


def scan_totals(
    value: Value, operand: Value, node: Node, obstacles: Sequence[Reduced]
) -> Barrier:
    """What the elements before each block come to: each block gives the last element of its own
    scan, and those of the blocks before are combined in order."""
    (axis,), attrs = node.attrs["axes"], dict(node.attrs)
    options = {"combine": registry.get(attrs["combine"]).scalar, "axis": axis,
               "start": start_of(attrs["combine"], operand.dtype)}

    def partial(site: BlockSite) -> list[Value]:
        own = site.emit("Scan", site.operand(0), **attrs)
        sizes = [*sizes_of(site.box_of(0))]
        starts = [size - 1 if k == axis else 0 for k, size in enumerate(sizes)]
        sizes[axis] = 1
        return [site.emit("Slice", own, starts=tuple(starts), steps=(1,) * len(sizes),
                          sizes=tuple(sizes))]

    def boxes(box: Box, inner: Sequence[Interval]) -> list[Box]:
        return [(*box[:axis], inner[0], *box[axis + 1:])]

    return Barrier(value, (operand,), tuple(obstacles), "totals", partial, boxes, options=options)


def product(node: Node, obstacles: Sequence[Reduced]) -> Barrier:
    """A product of matrices whose summed axis is in blocks: a sum of products of blocks."""
    links = links_of(node)
    summed = product_axes(node)

    def boxes(box: Box, inner: Sequence[Interval]) -> list[Box]:
        def part(number: int, axis: int, read: Read | None, size: int) -> Interval:
            return inner[0] if axis == summed[number] else (
                (0, size) if read is None else box[read.axis])

        return [tuple(part(number, axis, read, int(size)) for axis, (read, size) in enumerate(
            zip(links[number], operand.shape, strict=True)))
            for number, operand in enumerate(node.inputs)]

    return Barrier(node.out(), node.inputs, tuple(obstacles)[:1], "add", lambda site: [
        site.emit("MatMul", site.operand(0), site.operand(1))], boxes)


def einsum(node: Node, obstacles: Sequence[Reduced]) -> Barrier | None:
    """An einsum whose sum along one letter is over blocks; None where it is along several."""
    found = einsum_letters(node)
    assert found is not None
    letters, after = found
    summed = {letters[r.number][r.axis] for r in obstacles}
    if len(summed) > 1:
        return None

    def boxes(box: Box, inner: Sequence[Interval]) -> list[Box]:
        return [tuple(inner[0] if c in summed else box[after.index(c)] if c in after else (
            0, int(size)) for c, size in zip(word, v.shape, strict=True))
            for word, v in zip(letters, node.inputs, strict=True)]

    type_, rank = node.types[0], node.types[0].rank

    def partial(site: BlockSite) -> list[Value]:
        own = TensorType(type_.dtype, sizes_of(site.box[:rank]), type_.kind)
        operands = (site.operand(k) for k in range(len(node.inputs)))
        return [site.emit("Einsum", *operands, **{**node.attrs, "results": (own,)})]

    return Barrier(node.out(), node.inputs, tuple(obstacles)[:1], "add", partial, boxes)


def counts(node: Node, obstacles: Sequence[Reduced]) -> Barrier:
    """A scatter of blocks into an array that is not in blocks: that of the first block into the
    array itself, those of others into one that changes nothing."""
    target, attrs = node.inputs[0], {k: v for k, v in node.attrs.items() if k != "chunk"}
    first = obstacles[0]
    along = line_axis(node, first)
    links = links_of(node)
    neutral = start_of(attrs["combine"], target.dtype)

    def partial(site: BlockSite) -> list[Value]:
        rest = [site.operand(k) for k in range(1, len(node.inputs))]
        if site.box_of(first.number)[first.axis][0] == 0:
            return [site.emit("Scatter", site.operand(0), *rest, **attrs)]
        start = site.emit("BroadcastTo", site.emit("Const", value=neutral, kind="scalar"),
                          shape=sizes_of(site.box_of(0)))
        return [site.emit("Scatter", start, *rest, **attrs)]

    def boxes(box: Box, inner: Sequence[Interval]) -> list[Box]:
        def part(k: int, axis: int, read: Read | None, size: int) -> Interval:
            if k and size != 1 and line_axis(node, Reduced(k, axis)) == along and (
                    _is_index_axis(node, k, axis)):
                return inner[0]
            return (0, size) if read is None else box[read.axis]

        return [tuple(part(k, axis, read, int(size)) for axis, (read, size) in enumerate(
            zip(links[k], v.shape, strict=True))) for k, v in enumerate(node.inputs)]

    return Barrier(node.out(), node.inputs, (first,), registry.get(attrs["combine"]).scalar or "",
                   partial, boxes, is_first_special=True)


def line_axis(node: Node, reduced: Reduced) -> int:
    """The axis of a scatter's indices that an axis of its value, or of an index, is."""
    if reduced.number == 1:
        return reduced.axis - int(node.attrs["at"])
    return reduced.axis + _index_rank(node) - int(node.inputs[reduced.number].type.rank)


def _index_rank(node: Node) -> int:
    return max(int(v.type.rank) for v in node.inputs[2:])


def _is_index_axis(node: Node, number: int, axis: int) -> bool:
    at = int(node.attrs["at"])
    return number > 1 or at <= axis < at + _index_rank(node)


def taken(node: Node, obstacles: Sequence[Reduced]) -> Barrier:
    """One position of an axis in blocks, which one block has."""
    operand, attrs = node.inputs[0], node.attrs

    def boxes(box: Box, inner: Sequence[Interval]) -> list[Box]:
        along = {r.axis: part for r, part in zip(obstacles, inner, strict=True)}
        return [tuple(along.get(axis, (start + first, stop + first)) for axis, (
            (start, stop), first) in enumerate(zip(box, attrs["starts"], strict=True)))]

    only = tuple((attrs["starts"][r.axis], attrs["starts"][r.axis] + 1) for r in obstacles)
    return Barrier(node.out(), (operand,), tuple(obstacles), "taken",
                   lambda site: [site.operand(0)], boxes, only=only)


JOINED = tuple(name for name in REDUCTIONS if registry.get(name).joins)
POSITIONS = tuple(name for name in REDUCTIONS if not registry.get(name).joins)


def barrier_of(node: Node, obstacles: Sequence[Reduced]) -> Barrier | None:
    """The barrier that makes the node's result; None where there is none for such a node."""
    if registry.get(node.op).kind == "composite":  # before it is cut out, or decomposed
        return moments(node.out(), node.inputs[0], node, obstacles)
    if node.op in JOINED:
        return reduction(node, obstacles)
    if node.op in POSITIONS and len(node.attrs["axes"]) == 1:
        return first_extremum(node, obstacles)
    if node.op == "MatMul":
        return product(node, obstacles)
    if node.op == "Einsum":
        return einsum(node, obstacles)
    if node.op == "Slice" and all(
            node.attrs["sizes"][r.axis] == 1 for r in obstacles):
        return taken(node, obstacles)
    if node.op == "Scatter" and _joins_counts(node, obstacles):
        return counts(node, obstacles)
    return None


def is_order_free(combine: str) -> bool:
    """Whether it does not matter, but for rounding, in which order elements are combined."""
    return combine in IDENTITIES and registry.get(combine).commutative


def _joins_counts(node: Node, obstacles: Sequence[Reduced]) -> bool:
    """Whether a scatter adds up (or takes extrema) along one axis of its indices alone."""
    return not own_rows(node) and is_order_free(node.attrs.get("combine", "")) and all(
        r.number and _is_index_axis(node, r.number, r.axis) for r in obstacles
    ) and len({line_axis(node, r) for r in obstacles}) == 1


__all__ = ["Barrier", "Reduced", "barrier_of", "moments", "scan_totals"]
