"""The graph of one block: the nodes of a family, for the parts that the block needs.

does:   makes each node of a family anew for the box that a block's roots need of it.
needs:  a family, and the boxes of a block.
leaves: a graph of known sizes whose parameters are the boxes of what the block reads, and numbers
        that differ from block to block.  Blocks that look alike have one graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ops import registry
from fusec.ops.splitting import BlockSite, Box, Interval
from fusec.ops.splitting.protocol import rule_of, sizes_of

from .geometries import Geometry, is_empty, operand_boxes
from .local_maker import BoxStart, LocalMaker
from .loops.region_boxes import whole_box
from .loops.region_graphs import make_region
from .narrow_blocks import Slices
from .split_states import SplitStates, shown_name
from .stages import BlockFamily, Root

_NUMBER = TensorType(np.dtype(np.int64), (), "weak")


class Halos:
    """How far the blocks of a family read into others, by leaf and axis of it."""

    def __init__(self, states: SplitStates, family: BlockFamily) -> None:
        self.states, self.family = states, family
        self.widest: dict[tuple[Value, int], int] = {}
        self._own = {leaf: list(self._axes(leaf)) for leaf in family.leaves}

    def _axes(self, leaf: Value) -> Iterator[tuple[int, int, list[Interval], int]]:
        """The axes of a leaf that are along one axis of the grid: with that, the leaf's own blocks
        and the length of the shortest."""
        lines, grid = self.states.lines, self.family.grid
        for axis, place in enumerate(self.states.of(leaf)):
            if place is not None and grid.count(place.line) == 1:
                own = lines.intervals(place, leaf.shape[axis])
                yield axis, grid.index(place.line), own, lines.shortest(place.line)

    def note(self, block: Sequence[int], geometry: Geometry) -> None:
        """Note how far a block reads.

        Raises ``UnsupportedError`` where that is further than one of the others is long; what is
        made for a neighbour's column does not count.
        """
        beside = any(part is not None for part in geometry.kept)
        for leaf, box in geometry.reads:
            for axis, at, own, shortest in self._own[leaf]:
                (start, stop), (first, last) = own[block[at]], box[axis]
                if first >= start and last <= stop:
                    continue
                halo = max(start - first, last - stop)
                self.widest[leaf, axis] = max(halo, self.widest.get((leaf, axis), 0))
                if halo - beside > shortest:
                    raise _too_wide(self.family, leaf, axis, shortest, halo)


def _too_wide(
    family: BlockFamily, leaf: Value, axis: int, shortest: int, halo: int
) -> UnsupportedError:
    found = [n for n in family.nodes if _moves(n) and n.loc is not None]
    node = found[-1] if found else leaf.node
    length = 4 * halo if 4 * halo < leaf.shape[axis] else -1
    return unsupported(
        f"reading {halo} elements beyond a block of {shown_name(leaf)} along axis "
        f"{axis}, of which the shortest has {shortest},", loc=node.loc,
        cure=f"make the blocks longer: x.rechunk({{{axis}: {length}}})")


def _moves(node: Node) -> bool:
    """Whether it reads elsewhere than its result lies."""
    return registry.get(node.op).kind == "piecewise" or "starts" in node.attrs


@dataclass(frozen=True)
class _LocalSite:
    """See `fusec.ops.splitting.BlockSite`."""

    maker: LocalMaker
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
        self.maker.starts.append(BoxStart(self.node.out(), self.root, operand, axis))
        return self.maker.cast(number, np.dtype(dtype))


@dataclass(frozen=True)
class LocalGraph:
    """A block's graph: its parameters are the parts that it reads, in order, then numbers; its
    outputs those of each root that has elements, by the root's number."""

    graph: Graph
    starts: tuple[BoxStart, ...]
    outputs: tuple[int | None, ...]  # by root: the number of its first output
    kept: tuple[Slices | None, ...]  # by root: what is kept of it, None: all

    def numbers(self, family: BlockFamily, geometry: Geometry) -> tuple[int, ...]:
        """The numbers of a block that has this graph."""
        return tuple(start.of(family, geometry) for start in self.starts)


def local_graph(family: BlockFamily, geometry: Geometry) -> LocalGraph:
    """The graph of a block of which these are the boxes."""
    maker = LocalMaker(family, geometry)
    for leaf, box in geometry.reads:
        type_ = leaf.type
        own = TensorType(type_.dtype, sizes_of(box), type_.kind)
        maker.made[leaf] = maker.parameter(_part_name(leaf.node), own)
    for node in family.nodes:
        if any(value in geometry.boxes for value in node.outputs):
            _make(maker, node, geometry.boxes)
    results: list[Value] = []
    outputs: list[int | None] = []
    for number, (root, box) in enumerate(zip(family.roots, geometry.made, strict=True)):
        if is_empty(box, root):
            outputs.append(None)
            continue
        outputs.append(len(results))
        results += _results(maker, number, root, box)
    graph = Graph.build(maker.inputs, results, name="stage")
    return LocalGraph(graph, tuple(maker.starts), tuple(outputs), geometry.kept)


def _part_name(node: Node) -> str:
    """The name of a part of its value: an argument's own, which errors name; else none that counts
    iterations or stages, so that those that are alike have one text."""
    return node.name if node.op == "Input" and node.loc is None else node.op


def _make(maker: LocalMaker, node: Node, boxes: Mapping[Value, Box]) -> None:
    maker.loc = node.loc
    if node in maker.family.regions:
        make_region(maker, node, boxes, _make)
        return
    rule = rule_of(node)
    if rule is None:
        operands = [maker.fetched(v, whole_box(v)) for v in node.inputs]
        copy = node.with_(inputs=operands, name=maker.namer.fresh(node.op), control_inputs=())
        maker.made.update(zip(node.outputs, copy.outputs, strict=True))
        return
    value = node.out()
    box = boxes[value]
    operands_ = tuple((v, rule.box_of(node, k, box)) for k, v in enumerate(node.inputs))
    site: BlockSite = _LocalSite(maker, node, box, operands_)
    maker.made[value] = rule.local(site)


def _results(maker: LocalMaker, number: int, root: Root, box: Box) -> Sequence[Value]:
    if root.barrier is None:
        return [maker.fetched(root.value, box)]
    maker.loc = root.barrier.node.loc
    operands = tuple(operand_boxes(root, box))
    return root.barrier.partial(_LocalSite(
        maker, root.barrier.node, box, operands, number))


__all__ = ["Halos", "LocalGraph", "LocalMaker", "local_graph"]
