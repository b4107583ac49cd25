"""The boxes of a family's blocks, most of them those of another block moved along the grid.

Where every node of a family reads at fixed distances (`Moved.of`), blocks whose roots have the same
lengths and lie the same way to each other have the same boxes but for where these begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ops.splitting import Box
from fusec.ops.splitting.protocol import SplitRule, rule_of, sizes_of

from .loops.region_boxes import effects_of, note_box, pull_region, region_key, whole_box
from .loops.regions import SplitRegion, inner_nodes
from .narrow_blocks import NarrowBlocks, Slices, kept_of, narrow_blocks
from .split_states import SplitStates
from .stages import BlockFamily, Root

Along = tuple[int | None, ...]  # by axis of a value: the axis of the grid that its box goes along
Block = Sequence[int]


@dataclass(frozen=True)
class Geometry:
    """The boxes of one block.  ``reads``: of the family's leaves that it reads; ``empty``: by root
    whether it has no elements there though it has some; ``key``: equal where the graph is the
    same.  ``moved``: how far along each axis of the grid it lies from the block of ``boxes``.
    ``made``: by root the box that the graph gives, ``kept``: what of it is the root's; None: all.
    """

    boxes: Mapping[Value, Box]
    roots: tuple[Box, ...]
    reads: tuple[tuple[Value, Box], ...]
    empty: tuple[bool, ...]
    key: int
    made: tuple[Box, ...]
    kept: tuple[Slices | None, ...]
    along: Mapping[Value, Along] = field(default_factory=dict)
    moved: tuple[int, ...] = ()

    def start(self, value: Value, axis: int) -> int:
        """Where the box of a value begins along an axis."""
        grid_axis = self.along[value][axis] if self.moved else None
        return self.boxes[value][axis][0] + (0 if grid_axis is None else self.moved[grid_axis])


def is_empty(box: Box, root: Root) -> bool:
    """Whether a block has no element of a root though the root has some."""
    return any(start >= stop and size > 0
               for (start, stop), size in zip(box, root.sizes, strict=True))


def operand_boxes(root: Root, box: Box) -> list[tuple[Value, Box]]:
    """The boxes of what a root is made of."""
    if root.barrier is None:
        return [(root.value, box)]
    rank = root.value.type.rank
    parts = root.barrier.boxes(box[:rank], box[rank:])
    return list(zip(root.barrier.operands, parts, strict=True))


class Geometries:
    """Makes the geometry of each block of a family."""

    def __init__(
        self, states: SplitStates, family: BlockFamily, has_neighbours: bool = True
    ) -> None:
        """``has_neighbours``: whether a block may read more of others than its program says."""
        self.family, self.states = family, states
        self._rules = {node: rule_of(node) for outer in family.nodes for node in (
            outer, *inner_nodes(outer, family.regions))}
        self._intervals = [root.intervals(states) for root in family.roots]
        self._keys: dict[Any, int] = {}
        self._known: dict[Any, tuple[Geometry, tuple[int, ...]]] = {}
        self._along = _Movements(family, self._rules).found()
        self._narrow = narrow_blocks(states, family, self._rules) if has_neighbours else (
            NarrowBlocks(family, frozenset()))

    def of(self, block: Block) -> Geometry | None:
        """The boxes of a block; None where none of its roots has elements there."""
        roots = tuple(
            tuple([part[0 if at is None else block[at]]
                   for part, at in zip(axes, root.along, strict=True)])
            for axes, root in zip(self._intervals, self.family.roots, strict=True))
        if self._along is None:
            return self._made(roots)
        starts = self._starts(roots)
        made = self._narrow.widened(roots)
        key = (self._relative(roots, starts), tuple([
            _is_first(root, box) for box, root in zip(roots, self.family.roots, strict=True)]),
            None if made == roots else self._relative(made, starts))
        known = self._known.get(key)
        if known is not None:
            return self._moved(known, roots, starts)
        geometry = self._made(roots)
        if geometry is not None and not any(stop <= start for box in roots for start, stop in box):
            self._known[key] = geometry, starts
        return geometry

    def _relative(self, roots: Sequence[Box], starts: Sequence[int]) -> tuple[Box, ...]:
        """Boxes of the roots as they are seen from where the block begins."""
        return tuple([tuple([
            (start, stop) if at is None else (start - starts[at], stop - starts[at])
            for (start, stop), at in zip(box, root.along, strict=True)])
            for box, root in zip(roots, self.family.roots, strict=True)])

    def _starts(self, roots: Sequence[Box]) -> tuple[int, ...]:
        """Where a block begins along each axis of the grid: where one of its roots does."""
        starts = [0] * len(self.family.grid)
        for box, root in zip(roots, self.family.roots, strict=True):
            for (start, _), at in zip(box, root.along, strict=True):
                if at is not None:
                    starts[at] = start
        return tuple(starts)

    def _moved(
        self, known: tuple[Geometry, tuple[int, ...]], roots: tuple[Box, ...],
        starts: tuple[int, ...],
    ) -> Geometry:
        other, begin = known
        by = tuple([a - b for a, b in zip(starts, begin, strict=True)])
        reads = tuple([(leaf, _shifted(box, other.along[leaf], by)) for leaf, box in other.reads])
        return Geometry(other.boxes, roots, reads, other.empty, other.key, other.made, other.kept,
                        other.along, by)

    def _made(self, roots: tuple[Box, ...]) -> Geometry | None:
        """The boxes, pulled back through the nodes."""
        family, boxes = self.family, dict[Value, Box]()
        empty = tuple(is_empty(box, root) for root, box in zip(family.roots, roots, strict=True))
        made = self._narrow.widened(roots)
        for root, box, is_none in zip(family.roots, made, empty, strict=True):
            if not is_none:
                for value, part in operand_boxes(root, box):
                    note_box(boxes, value, part)
        if not boxes:
            return None
        for node in reversed(family.nodes):
            self._pull(boxes, node)
        reads = tuple((leaf, boxes[leaf]) for leaf in family.leaves if leaf in boxes)
        kept = tuple(map(kept_of, made, roots))
        key = _key(family, self._rules, boxes, made), kept
        number = self._keys.setdefault(key, len(self._keys))
        return Geometry(boxes, roots, reads, empty, number, made, kept, self._along or {})

    def _pull(self, boxes: dict[Value, Box], node: Node) -> None:
        """Note the boxes of a node's operands, for those of its results."""
        if node in self.states.regions:
            pull_region(self.states, boxes, node, self._pull)
            return
        rule = self._rules[node]
        for value in node.outputs:
            if value not in boxes:
                continue
            boxes[value] = whole_box(value) if rule is None else rule.made_box(node, boxes[value])
            for number, operand in enumerate(node.inputs):
                box = whole_box(operand) if rule is None else rule.box_of(
                    node, number, boxes[value])
                if box is not None:
                    note_box(boxes, operand, box)


def _shifted(box: Box, along: Along, by: Sequence[int]) -> Box:
    return tuple([part if at is None else (part[0] + by[at], part[1] + by[at])
                  for part, at in zip(box, along, strict=True)])


def _is_first(root: Root, box: Box) -> bool:
    """Whether a partial is that of the first block, which is made in another way."""
    return root.barrier is not None and root.barrier.is_first_special and not any(
        start for start, _ in box[root.value.type.rank:])


# -------------------------------------------------------------------------------------------- keys


def _key(
    family: BlockFamily, rules: Mapping[Node, SplitRule | None], boxes: Mapping[Value, Box],
    roots: Sequence[Box],
) -> tuple[Any, ...]:
    """Whatever the graph of a block depends on: sizes, and how boxes lie in each other."""
    parts: list[Any] = [tuple(map(sizes_of, roots))]
    for value in family.leaves:
        parts.append(sizes_of(boxes[value]) if value in boxes else None)
    for node, rule in rules.items():
        if node in family.regions:
            parts.append(region_key(node, boxes))
        elif rule is not None and node.out() in boxes:
            parts.append(_node_key(node, rule, boxes))
    for root, box in zip(family.roots, roots, strict=True):
        if not is_empty(box, root):
            parts.append(_is_first(root, box))
            parts.append(tuple(tuple(a[0] - b[0] for a, b in zip(part, boxes[value], strict=True))
                               for value, part in operand_boxes(root, box)))
    return tuple(parts)


def _node_key(node: Node, rule: SplitRule, boxes: Mapping[Value, Box]) -> tuple[Any, ...]:
    box = boxes[node.out()]
    parts: list[Any] = [sizes_of(box)]
    is_pieces = rule.is_pieces(node)
    for number, operand in enumerate(node.inputs):
        part = rule.box_of(node, number, box)
        if part is None:
            parts.append(None)
            continue
        parts.append((sizes_of(part), tuple(a[0] - b[0] for a, b in zip(
            part, boxes[operand], strict=True))))
        if is_pieces and len(part) == len(box):
            parts.append(tuple(a[0] - b[0] for a, b in zip(part, box, strict=True)))
        elif rule.boxes is not None:  # a reshape: what it makes whole, to take a part of
            kept = {read.axis for read in rule.links(node, number) if read is not None}
            parts.append(tuple(x for axis, x in enumerate(box) if axis not in kept))
    return tuple(parts)


# ------------------------------------------------------------------------------- boxes that move


class _Mixed(Exception):
    """A box that does not move with one axis of the grid as a whole."""


class _Movements:
    """By value the axes of the grid that its box moves along."""

    def __init__(self, family: BlockFamily, rules: Mapping[Node, SplitRule | None]) -> None:
        self.family, self.rules = family, rules
        self.along: dict[Value, Along] = {}

    def found(self) -> dict[Value, Along] | None:
        """All of them; None where one moves otherwise."""
        try:
            for root in self.family.roots:
                for value, axes in _operands_along(root):
                    self._agree(value, axes)
            for node in reversed(self.family.nodes):
                self._follow(node)
        except _Mixed:
            return None
        return self.along

    def _agree(self, value: Value, axes: Along) -> None:
        if self.along.setdefault(value, axes) != axes:
            raise _Mixed

    def _follow(self, node: Node) -> None:
        """Note how the operands' boxes move where the results' do so."""
        if node in self.family.regions:
            self._follow_inside(node)
            return
        for value in node.outputs:
            if value in self.along:
                self._follow_one(node, self.along[value])

    def _follow_one(self, node: Node, axes: Along) -> None:
        rule = self.rules[node]
        if rule is not None and not (
                rule.moves(node) and all(axes[axis] is None for axis in rule.whole(node))):
            raise _Mixed
        for number, operand in enumerate(node.inputs):
            links = (None,) * operand.type.rank if rule is None else rule.links(node, number)
            self._agree(operand, tuple(None if r is None else axes[r.axis] for r in links))
        if rule is None and any(at is not None for at in axes):
            raise _Mixed

    def _follow_inside(self, node: Node) -> None:
        """Through a branch or loop; what a loop carries moves as its results do."""
        region, count = SplitRegion(node), -1
        if not any(v in self.along for v in node.outputs):
            return
        for graph in region.all_graphs:
            for inner in (*(v.node for v in (graph.outputs if graph is region.test else ())),
                          *effects_of(graph, self.family.regions)):
                for value in inner.outputs:
                    self._agree(value, (None,) * value.type.rank)
        while count < len(self.along):
            count = len(self.along)
            for graph in region.all_graphs:
                self._follow_graph(region, graph)
        if not region.is_loop:
            self._agree(node.inputs[0], ())

    def _follow_graph(self, region: SplitRegion, graph: Graph) -> None:
        if graph is not region.test:
            for value, own in zip(region.node.outputs, region.results(graph), strict=True):
                if value in self.along:
                    self._agree(own, self.along[value])
        for inner in reversed(graph.nodes):
            if inner.op != "Input":
                self._follow(inner)
        for number, (value, operand) in enumerate(
                zip(graph.inputs, region.operands, strict=True)):
            if region.is_loop and number < len(region.node.types):
                carried = self.along.get(region.node.out(number))
                if carried is not None:  # the result where there is no iteration, read or not
                    self._agree(value, carried)
            if value in self.along:
                self._agree(operand, self.along[value])
                if region.is_loop and number < len(region.node.types):
                    self._agree(region.node.out(number), self.along[value])


def _operands_along(root: Root) -> list[tuple[Value, Along]]:
    """By operand the axes of the grid: those along which its box moves where the root's does."""
    if root.barrier is None:
        return [(root.value, root.along)]
    if root.barrier.only:
        raise _Mixed
    rank, start = root.value.type.rank, [(0, 1)] * len(root.along)
    before = root.barrier.boxes(tuple(start[:rank]), start[rank:])
    found: list[list[int | None]] = [[None] * len(box) for box in before]
    for axis, at in enumerate(root.along):
        moved = [*start[:axis], (5, 6), *start[axis + 1:]]
        after = root.barrier.boxes(tuple(moved[:rank]), moved[rank:])
        for number, (box, other) in enumerate(zip(before, after, strict=True)):
            for k, (a, b) in enumerate(zip(box, other, strict=True)):
                if a != b:
                    found[number][k] = at
    return [(v, tuple(axes)) for v, axes in zip(root.barrier.operands, found, strict=True)]


__all__ = ["Geometries", "Geometry", "is_empty", "operand_boxes"]
