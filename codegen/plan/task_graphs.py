"""The graph of a task: nodes of one device that wait for the same."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Graph, Node, Value
from fusec.ops import Namer
from fusec.ops.calls.checks import has_effects
from fusec.ops.rows.windows import is_made_anywhere
from fusec.passes.placement.schedule_simulation import is_view


def task_graph(
    nodes: Sequence[Node], wanted: set[Value]
) -> tuple[Graph, list[Value], list[Value]]:
    """The nodes as a graph, the values that it reads, and those that it gives."""
    namer = Namer(n.name for n in nodes)
    inside = {n.id for n in nodes}
    reads: dict[Value, Value] = {}
    values: dict[Value, Value] = {}
    for value in _outside(nodes, inside):
        path = namer.fresh(value.node.name)
        attrs = {"index": len(reads), "path": path, "type": value.type}
        values[value] = reads[value] = Node(
            "Input", (), (value.type,), attrs, name=path, loc=value.node.loc).out()
    copies: dict[int, Node] = {}

    def here(value: Value) -> Value:
        if value not in values:
            node = value.node
            copy = node.with_(inputs=map(here, node.inputs), name=namer.fresh(node.name),
                              control_inputs=())
            values.update(zip(node.outputs, copy.outputs, strict=True))
        return values[value]

    for node in nodes:
        copy = node.with_(
            inputs=map(here, node.inputs),
            control_inputs=[copies[n.id] for n in node.control_inputs if n.id in copies])
        copies[node.id] = copy
        values.update(zip(node.outputs, copy.outputs, strict=True))
    gives = [v for n in nodes for v in n.outputs if v in wanted]
    effects = [c for c in copies.values() if has_effects(c)]
    graph = Graph.build(reads.values(), [values[v] for v in gives], (), nodes[-1].name,
                        effects)
    return graph, [*reads], gives


def _outside(nodes: Sequence[Node], inside: set[int]) -> list[Value]:
    """What the nodes read that they do not compute, through views and arrays that begin with
    nothing, which are made again, as constants are."""
    found: dict[Value, None] = {}
    for node in nodes:
        for value in node.inputs:
            while is_view(value.node) or (
                    is_made_anywhere(value.node) and value.node.id not in inside):
                value = value.node.inputs[0]
            if value.node.id not in inside and value.node.op != "Const":
                found[value] = None
    return [*found]
