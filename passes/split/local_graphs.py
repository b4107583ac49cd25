"""The graph of one block: the nodes of a family, for the parts that the block needs.

does:   pulls the boxes of a family's roots back through its nodes, as the rules of their rows say,
        and makes each node anew for the box that is read of it.
needs:  a family, and the number of a block along each axis of its grid.
leaves: a graph of known sizes whose parameters are the boxes of what the block reads, and numbers
        that differ from block to block.  Blocks that look alike have one graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ops import Builder, registry
from fusec.ops.splitting import BlockSite, Box
from fusec.ops.splitting.protocol import rule_of, sizes_of

from .stages import BlockFamily, Root
from .states import SplitStates

_NUMBER = TensorType(np.dtype(np.int64), (), "weak")


@dataclass(frozen=True)
class Geometry:
    """The boxes of one block.  ``reads``: of the family's leaves that it reads; ``numbers``: what
    its parameters that are numbers are; ``key``: equal where the graph is the same."""

    boxes: dict[Value, Box]
    roots: tuple[Box, ...]
    reads: tuple[tuple[Value, Box], ...]
    key: tuple[Any, ...]


def geometry_of(states: SplitStates, family: BlockFamily, block: Sequence[int]) -> Geometry | None:
    """The boxes of a block; None where none of its roots has elements there."""
    roots = tuple(root.box(states, block) for root in family.roots)
    boxes: dict[Value, Box] = {}
    for root, box in zip(family.roots, roots, strict=True):
        if not is_empty(box, root):
            for value, part in _operand_boxes(root, box):
                _note(boxes, value, part)
    if not boxes:
        return None
    for node in reversed(family.nodes):
        _pull(boxes, node)
    reads = tuple((leaf, boxes[leaf]) for leaf in family.leaves if leaf in boxes)
    return Geometry(boxes, roots, reads, _key(family, boxes, roots))


def check_halos(
    states: SplitStates, family: BlockFamily, block: Sequence[int], geometry: Geometry,
    halos: dict[tuple[Value, int], int],
) -> None:
    """Note in ``halos`` how far a block reads into others.

    Raises ``UnsupportedError`` where that is further than one of them is long.
    """
    for leaf, box in geometry.reads:
        for axis, place in enumerate(states.of(leaf)):
            if place is None or family.grid.count(place.line) != 1:
                continue
            number = block[family.grid.index(place.line)]
            own = states.lines.interval(place, leaf.shape[axis], number)
            halo = max(own[0] - box[axis][0], box[axis][1] - own[1])
            if halo > 0:
                halos[leaf, axis] = max(halo, halos.get((leaf, axis), 0))
            if halo > 0 and halo > states.lines.shortest(place.line):
                raise _too_wide(states, family, leaf, axis, place.line, halo)


def _too_wide(
    states: SplitStates, family: BlockFamily, leaf: Value, axis: int, line: int, halo: int
) -> UnsupportedError:
    shortest = states.lines.shortest(line)
    found = [n for n in family.nodes if _moves(n) and n.loc is not None]
    node = found[-1] if found else leaf.node
    return unsupported(
        f"reading {halo} elements beyond a block of {leaf.name.removesuffix(':0')} along axis "
        f"{axis}, of which the shortest has {shortest},", loc=node.loc,
        cure=f"make the blocks longer: x.rechunk({{{axis}: {4 * halo}}})")


def _moves(node: Node) -> bool:
    """Whether it reads elsewhere than its result lies."""
    return registry.get(node.op).kind == "piecewise" or "starts" in node.attrs


def is_empty(box: Box, root: Root) -> bool:
    """Whether a block has no element of a root though the root has some."""
    return any(start >= stop and size > 0
               for (start, stop), size in zip(box, root.sizes, strict=True))


def _operand_boxes(root: Root, box: Box) -> list[tuple[Value, Box]]:
    if root.barrier is None:
        return [(root.value, box)]
    rank = root.value.type.rank
    parts = root.barrier.boxes(box[:rank], box[rank:])
    return list(zip(root.barrier.operands, parts, strict=True))


def _note(boxes: dict[Value, Box], value: Value, box: Box) -> None:
    """Widen the box of a value so that it holds this one."""
    known = boxes.get(value)
    boxes[value] = box if known is None else tuple(
        (min(a, c), max(b, d)) for (a, b), (c, d) in zip(known, box, strict=True))


def _whole(value: Value) -> Box:
    return tuple((0, size) for size in value.shape)


def _pull(boxes: dict[Value, Box], node: Node) -> None:
    rule = rule_of(node)
    for value in node.outputs:
        if value not in boxes:
            continue
        if rule is None:
            boxes[value] = _whole(value)
        for number, operand in enumerate(node.inputs):
            box = _whole(operand) if rule is None else rule.box_of(node, number, boxes[value])
            if box is not None:
                _note(boxes, operand, box)


def _key(family: BlockFamily, boxes: dict[Value, Box], roots: Sequence[Box]) -> tuple[Any, ...]:
    """Whatever the graph of a block depends on: sizes, and how boxes lie in each other."""
    parts: list[Any] = [tuple(map(sizes_of, roots))]
    for value in family.leaves:
        parts.append(sizes_of(boxes[value]) if value in boxes else None)
    for node in family.nodes:
        value, rule = node.out(), rule_of(node)
        if value not in boxes or rule is None:
            continue
        box = boxes[value]
        parts.append(sizes_of(box))
        is_pieces = registry.get(node.op).kind == "piecewise" or rule.boxes is not None
        for number, operand in enumerate(node.inputs):
            part = rule.box_of(node, number, box)
            if part is None:
                parts.append(None)
                continue
            outer = boxes[operand]
            parts.append((sizes_of(part), tuple(a[0] - b[0] for a, b in zip(
                part, outer, strict=True))))
            if is_pieces and len(part) == len(box):
                parts.append(tuple(a[0] - b[0] for a, b in zip(part, box, strict=True)))
            elif rule.boxes is not None:  # a reshape: what it makes whole, to take a part of
                kept = {read.axis for read in rule.links(node, number) if read is not None}
                parts.append(tuple(x for axis, x in enumerate(box) if axis not in kept))
    for root, box in zip(family.roots, roots, strict=True):
        if not is_empty(box, root):
            if root.barrier is not None and root.barrier.is_first_special:
                parts.append(not any(start for start, _ in box[root.value.type.rank:]))
            parts.append(tuple(tuple(a[0] - b[0] for a, b in zip(part, boxes[value], strict=True))
                               for value, part in _operand_boxes(root, box)))
    return tuple(parts)


@dataclass(frozen=True)
class _Start:
    """A parameter that is a number: where a value's box begins along an axis, or that of an operand
    of a root's barrier."""

    value: Value
    root: int
    operand: int | None
    axis: int

    def of(self, family: BlockFamily, geometry: Geometry) -> int:
        if self.operand is None:
            return int(geometry.boxes[self.value][self.axis][0])
        parts = _operand_boxes(family.roots[self.root], geometry.roots[self.root])
        return int(parts[self.operand][1][self.axis][0])


class _Maker(Builder):
    """Makes the graph of one block."""

    def __init__(self, family: BlockFamily, geometry: Geometry) -> None:
        super().__init__()
        self.family, self.boxes = family, geometry.boxes
        self.made: dict[Value, Value] = {}
        self.inputs: list[Value] = []
        self.starts: list[_Start] = []

    def parameter(self, name: str, type_: TensorType) -> Value:
        index = len(self.inputs)
        value = self.source("Input", name, type=type_, index=index, path=f"{name}_{index}")
        self.inputs.append(value)
        return value

    def fetched(self, value: Value, box: Box) -> Value:
        """A part of a value that was made, in a box of its own."""
        made, own = self.made[value], self.boxes[value]
        if own == box:
            return made
        return self.emit("Slice", made, steps=(1,) * len(box), sizes=sizes_of(box),
                         starts=tuple(a[0] - b[0] for a, b in zip(box, own, strict=True)))


@dataclass(frozen=True)
class _LocalSite:
    """See `fusec.ops.splitting.BlockSite`."""

    maker: _Maker
    node: Node
    box: Box
    operands: tuple[tuple[Value, Box | None], ...]
    root: int = -1  # the number of the root whose partial is made

    def operand(self, number: int) -> Value:
        value, box = self.operands[number]
        assert box is not None
        return self.maker.fetched(value, box)

    def box_of(self, number: int) -> Box:
        box = self.operands[number][1]
        assert box is not None
        return box

    def emit(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        return self.maker.emit(op, *inputs, **attrs)

    def start(self, axis: int, dtype: Any, operand: int | None = None) -> Value:
        number = self.maker.parameter("first", _NUMBER)
        self.maker.starts.append(_Start(self.node.out(), self.root, operand, axis))
        return self.maker.cast(number, np.dtype(dtype))


@dataclass(frozen=True)
class LocalGraph:
    """A block's graph: its parameters are the parts that it reads, in order, then numbers; its
    outputs those of each root that has elements, by the root's number."""

    graph: Graph
    starts: tuple[_Start, ...]
    outputs: tuple[int | None, ...]  # by root: the number of its first output

    def numbers(self, family: BlockFamily, geometry: Geometry) -> tuple[int, ...]:
        """The numbers of a block that has this graph."""
        return tuple(start.of(family, geometry) for start in self.starts)


def local_graph(states: SplitStates, family: BlockFamily, geometry: Geometry) -> LocalGraph:
    """The graph of a block of which these are the boxes."""
    maker = _Maker(family, geometry)
    for leaf, box in geometry.reads:
        type_ = leaf.type
        own = TensorType(type_.dtype, sizes_of(box), type_.kind)
        maker.made[leaf] = maker.parameter(leaf.node.name, own)
    for node in family.nodes:
        if any(value in geometry.boxes for value in node.outputs):
            _make(maker, node, geometry.boxes)
    results: list[Value] = []
    outputs: list[int | None] = []
    for number, (root, box) in enumerate(zip(family.roots, geometry.roots, strict=True)):
        if is_empty(box, root):
            outputs.append(None)
            continue
        outputs.append(len(results))
        results += _results(maker, number, root, box)
    graph = Graph.build(maker.inputs, results, name=f"stage_{family.stage}")
    return LocalGraph(graph, tuple(maker.starts), tuple(outputs))


def _make(maker: _Maker, node: Node, boxes: dict[Value, Box]) -> None:
    maker.loc = node.loc
    rule = rule_of(node)
    if rule is None:
        operands = [maker.fetched(v, _whole(v)) for v in node.inputs]
        copy = node.with_(inputs=operands, name=maker.namer.fresh(node.op), control_inputs=())
        maker.made.update(zip(node.outputs, copy.outputs, strict=True))
        return
    value = node.out()
    box = boxes[value]
    operands_ = tuple((v, rule.box_of(node, k, box)) for k, v in enumerate(node.inputs))
    site: BlockSite = _LocalSite(maker, node, box, operands_)
    maker.made[value] = rule.local(site)


def _results(maker: _Maker, number: int, root: Root, box: Box) -> Sequence[Value]:
    if root.barrier is None:
        return [maker.fetched(root.value, box)]
    maker.loc = root.barrier.node.loc
    operands = tuple(_operand_boxes(root, box))
    return root.barrier.partial(_LocalSite(
        maker, root.barrier.node, box, operands, number))


__all__ = ["Geometry", "LocalGraph", "geometry_of", "is_empty", "local_graph"]
