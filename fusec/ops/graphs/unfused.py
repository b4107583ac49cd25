"""Puts the bodies of fused nodes in their place: graphs that travel have ops that are admitted.

does    replaces each ``Fused`` node by the nodes of its body, with their names where these are
        free, and ops that only passes make by those of programs, of which passes make them again
needs   nothing
leaves  nodes that are on no device; they are fused again where the graph runs, with the same bits
        except in sums whose operands lie in another order there
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.ir import Graph, Node, Value

from ..build import Namer


def unfused(graph: Graph, device: str = "") -> Graph:
    """See the module docstring.  ``device``: the constraint of its nodes instead of none."""
    return _Unfuser(graph, device).run()


def as_traced(node: Node) -> tuple[str, dict[str, Any]]:
    """The op and attributes that a program has in place of a node of passes."""
    attrs = dict(node.attrs)
    if node.op == "Fold":
        return attrs["of"], {"axes": attrs["axes"]}
    if node.op == "NumPy":
        return attrs["of"], dict(attrs["attrs"])
    return "Check" if node.op == "Verify" else node.op, {
        key: unfused(value) if isinstance(value, Graph) else value for key, value in attrs.items()}


class _Unfuser:
    def __init__(self, graph: Graph, device: str) -> None:
        self.graph, self.device = graph, device
        self.namer = Namer(n.name for n in graph.nodes if n.op != "Fused")
        self.values: dict[Value, Value] = {}
        self.nodes: list[Node] = []

    def run(self) -> Graph:
        copies: dict[int, Node] = {}
        for node in self.graph.nodes:
            if node.op == "Fused":
                self._inline(node)
                continue
            control = [copies[n.id] for n in node.control_inputs if n.id in copies]
            copies[node.id] = self._copy(node, self.values, node.name, control)
        graph, values = self.graph, self.values
        return Graph(
            tuple(values[v] for v in graph.inputs), tuple(values[v] for v in graph.outputs),
            tuple((i, values[v]) for i, v in graph.updates), tuple(self.nodes), graph.name)

    def _inline(self, fused: Node) -> None:
        body: Graph = fused.attrs["body"]
        inside = dict(zip(body.inputs, map(self.values.__getitem__, fused.inputs), strict=True))
        for node in body.nodes:
            if node.op != "Input":
                self._copy(node, inside, self.namer.fresh(node.name), ())
        self.values.update(zip(
            fused.outputs, (inside[v] for v in body.outputs), strict=True))

    def _copy(
        self, node: Node, values: dict[Value, Value], name: str, control: Sequence[Node],
    ) -> Node:
        device = "" if node.op in ("Input", "Const") else self.device
        op, attrs = as_traced(node)
        copy = node.with_(op=op, attrs=attrs, inputs=[values[v] for v in node.inputs], name=name,
                          control_inputs=[*control], device=device)
        self.nodes.append(copy)
        values.update(zip(node.outputs, copy.outputs, strict=True))
        return copy
