"""Gives every result memory of its own.

does    puts a ``Copy`` node where a result or an update of an argument is itself an argument, the
        result of a library call or reshape that something else reads, a value returned twice, or
        a constant array
needs   nothing
leaves  outputs and updates that are distinct computed values, so that each can have its own buffer;
        updates of an argument with its own value are gone
"""

from __future__ import annotations

from fusec.ir import Graph, Value
from fusec.ops import Builder, Namer, get
from fusec.ops.calls.checks import has_effects
from fusec.ops.regions.cones import is_copied_whole


def separate_results(graph: Graph) -> Graph:
    """See the module docstring."""
    builder = Builder(Namer(n.name for n in graph.nodes))
    taken: set[Value] = set()

    def own(value: Value, is_update: bool) -> Value:
        kind = get(value.node.op).kind
        shared = value.node.op == "Input" or value in taken
        if is_update:
            shared = shared or kind in ("extern", "reduce") or value.node.op == "Reshape" or (
                is_copied_whole(value.node)) or (kind == "view" and not value.type.is_static)
        if value.node.op == "Const":
            shared = is_update or value.type.kind == "array"
        if shared:
            builder.loc, builder.device = value.node.loc, value.node.device
            value = builder.emit("Copy", value)
        taken.add(value)
        return value

    updates = [
        (i, own(v, True)) for i, v in graph.updates if v != graph.inputs[i]
    ]
    outputs = [own(v, False) for v in graph.outputs]
    if tuple(outputs) == graph.outputs and tuple(updates) == graph.updates:
        return graph
    effects = [n for n in graph.nodes if has_effects(n)]
    return _in_order_of(graph, Graph.build(graph.inputs, outputs, updates, graph.name, effects))


def _in_order_of(graph: Graph, copied: Graph) -> Graph:
    """The copied graph in the order of the other, then copies: of two checks the first raises."""
    order = {node: number for number, node in enumerate(graph.nodes)}
    nodes = sorted(copied.nodes, key=lambda node: order.get(node, len(order)))
    return Graph(copied.inputs, copied.outputs, copied.updates, tuple(nodes), copied.name)
