"""Scans along axes in blocks: each block's own scan, and what the blocks before it add up to.

does:   makes of ``Scan(x)`` along an axis in blocks ``combine(own, before[block])``, where ``own``
        is a scan that begins anew in each block, ``before`` a parameter of the graph, of which each
        block gives its last element as its partial, and ``block`` the number of an element's block.
needs:  the states of the graph, which say where its scans' axes are cut.
leaves: a graph with as many more outputs and parameters, which are its last ones (`Cut`).

The parallel prefix sum of Blelloch, "Prefix Sums and Their Applications" (1990), with blocks as
processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ops import Builder, Namer
from fusec.ops.splitting import Interval

from .cuts import Cut
from .split_states import SplitStates
from .states import title_of

MOST_IRREGULAR = 32  # blocks of several lengths: a comparison for each finds an element's


def cut_scans(graph: Graph, states: SplitStates) -> tuple[Graph, list[Cut]]:
    """The graph without its scans along axes in blocks, and what was cut.

    Raises ``UnsupportedError`` for many blocks of several lengths.
    """
    if not states.scans:
        return graph, []
    cutter = _Cutter(graph, states)
    nodes: list[Node] = []
    for node in graph.nodes:
        copy = node.with_inputs([cutter.values.get(v, v) for v in node.inputs])
        made = cutter.cut(node, copy) if node in states.scans else None
        if made is not None:
            nodes += cutter.taken()
            cutter.values[node.out()] = made
        else:
            nodes.append(copy)
            cutter.values.update(zip(node.outputs, copy.outputs, strict=True))
    outputs = [*graph.outputs, *cutter.operands]
    return Graph(
        tuple(cutter.values.get(v, v) for v in cutter.inputs),
        tuple(cutter.values.get(v, v) for v in outputs), (), tuple(nodes), graph.name), cutter.cuts


def _are_regular(parts: Sequence[Interval]) -> bool:
    """Whether they have one length, but for the first and the last."""
    return len({stop - start for start, stop in parts[1:-1]}) <= 1


class _Cutter:
    """Makes the nodes in the place of scans."""

    def __init__(self, graph: Graph, states: SplitStates) -> None:
        self.states, self.inputs = states, list(graph.inputs)
        self.values: dict[Value, Value] = {}
        self.operands: list[Value] = []
        self.cuts: list[Cut] = []
        self._builder = Builder(Namer(node.name for node in graph.nodes))
        self._nodes: list[Node] = []
        self._first = len(graph.outputs)

    def taken(self) -> list[Node]:
        """The nodes that were made since the last call."""
        nodes, self._nodes = self._nodes, []
        return nodes

    def cut(self, node: Node, copy: Node) -> Value:
        """The result, of new nodes; ``copy``: the node of the new graph."""
        self._builder.stand_for(node)
        (axis,) = node.attrs["axes"]
        parts = self._parts(node, axis)
        own = self._noted(copy.with_(attrs={**node.attrs, "is_by_block": True}))
        before = self._before(node, axis, len(parts))
        self.operands.append(node.inputs[0])
        blocks = self._block_numbers(parts)
        offset = self._emit("Gather", before, blocks, axes=(axis,), at=axis)
        return self._emit(node.attrs["combine"], own, offset)

    def _parts(self, node: Node, axis: int) -> Sequence[Interval]:
        """The blocks along the axis.

        Raises ``UnsupportedError`` for many of several lengths, of which an element's could not be
        told by a division.
        """
        place = self.states.of(node.inputs[0])[axis]
        assert place is not None
        parts = self.states.lines.bounds(place, int(node.types[0].shape[axis]))
        if not _are_regular(parts) and len(parts) > MOST_IRREGULAR:
            longest = max(stop - start for start, stop in parts)
            raise unsupported(
                f"{title_of(node)} along axis {axis}, which is in {len(parts)} blocks of different "
                "lengths,", loc=node.loc,
                cure=f"give the blocks one length: x.rechunk({{{axis}: {longest}}})")
        return parts

    def _before(self, node: Node, axis: int, blocks: int) -> Value:
        """The parameter: what the elements before each block come to."""
        shape = tuple(blocks if k == axis else size for k, size in enumerate(node.types[0].shape))
        number, dtype = len(self.inputs), node.types[0].dtype
        path = self._builder.namer.fresh(f"{node.name}_before")
        type_ = TensorType(dtype, shape, "array")
        value = self._noted(Node("Input", (), (type_,), {
            "type": type_, "index": number, "path": path}, name=path, loc=node.loc))
        self.cuts.append(Cut(node, number, self._first + len(self.cuts)))
        self.inputs.append(value)
        return value

    def _block_numbers(self, parts: Sequence[Interval]) -> Value:
        """By position along the axis the number of its block."""
        positions = self._emit("Iota", size=parts[-1][1], dtype=np.dtype(np.int64))
        return self._divided(positions, parts) if _are_regular(parts) and len(parts) > 2 else (
            self._counted(positions, parts))

    def _divided(self, positions: Value, parts: Sequence[Interval]) -> Value:
        """Of blocks of one length, but for the first and the last."""
        (first, stop), last, size = parts[1], len(parts) - 1, parts[-1][1]
        length = stop - first
        numbers = self._emit("Add", self._emit("FloorDiv", self._emit(
            "Sub", positions, self._number(first)), self._number(length)), self._number(1))
        if first > length:
            numbers = self._emit("Maximum", numbers, self._number(0))
        if (size - 1 - first) // length + 1 > last:
            numbers = self._emit("Minimum", numbers, self._number(last))
        return numbers

    def _counted(self, positions: Value, parts: Sequence[Interval]) -> Value:
        """How many blocks but the first begin at a position or before."""
        numbers = self._emit("Mul", positions, self._number(0))
        for start, _ in parts[1:]:
            is_after = self._emit("GreaterEqual", positions, self._number(start))
            numbers = self._emit("Add", numbers, self._emit(
                "Cast", is_after, dtype=np.dtype(np.int64)))
        return numbers

    def _number(self, value: int) -> Value:
        return self._emit("Const", value=np.int64(value), kind="scalar")

    def _emit(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        value = self._builder.emit(op, *inputs, **attrs)
        self._nodes.append(value.node)
        return value

    def _noted(self, node: Node) -> Value:
        self._nodes.append(node)
        return node.out()


__all__ = ["cut_scans"]
