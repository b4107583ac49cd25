"""The body of a ``Fused`` node as all nests of its kernel see it."""

from __future__ import annotations

import itertools

from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import Size
from fusec.ops import get
from fusec.ops.regions.cones import root_operands
from fusec.ops.rows.gather import kernel_checks

from .boxes import Writes
from .complex_pairs import buffer_layout
from .loop_ir import Buffer
from .scalar_rules import Constants


class FusedBody:
    """Its roots in order, their operands, and the buffers of its inputs and results."""

    def __init__(self, node: Node) -> None:
        self.graph: Graph = node.attrs["body"]
        self.domain: tuple[int, ...] = node.attrs["domain"]
        self.axes: tuple[int, ...] = node.attrs["axes"]
        parts = dict(node.attrs.get("unrolled", ()))
        self.unrolled = {n.out(): parts[n.name] for n in self.graph.nodes if n.name in parts}
        self.checks = {n: k for k, n in enumerate(kernel_checks(self.graph))}
        self.constants = Constants()
        self._writes: dict[Value, Writes] = {}
        self._ends: dict[int, list[Size]] = {}
        # Reductions and results, in topological order.
        reduced = (n.out() for n in self.graph.nodes if get(n.op).kind == "reduce")
        self.roots = sorted({*self.graph.outputs, *reduced}, key=lambda v: v.node.id)
        self.operands_of = {v: root_operands(v, self.unrolled.get(v)) for v in self.roots}
        values = (*self.graph.inputs, *self.graph.outputs)
        self.inputs = {v: i for i, v in enumerate(self.graph.inputs)}
        self.outputs = {v: len(self.inputs) + i for i, v in enumerate(self.graph.outputs)}
        self.buffers = tuple(
            Buffer(v.node.name, *buffer_layout(v.dtype, v.shape),
                   "in" if i < len(self.inputs) else "out")
            for i, v in enumerate(values)
        )

    def ends(self, node: Node) -> list[Size]:
        """Where each operand of a concatenation ends, along its axis."""
        if node.id not in self._ends:
            axis = node.attrs["axis"]
            self._ends[node.id] = [*itertools.accumulate(v.shape[axis] for v in node.inputs)]
        return self._ends[node.id]

    def writes(self, value: Value) -> Writes:
        """How the array came about, of an update of a part of it."""
        if value not in self._writes:
            self._writes[value] = Writes(value)
        return self._writes[value]
