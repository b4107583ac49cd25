"""Values that are kept in an array, an entry an iteration: they are computed where they are kept.

``kept[i] = f(x)`` of a native loop, as the loops that gradients read backwards have them, needs no
memory for ``f(x)`` and no copy of it, where nothing else reads ``kept`` in the iteration, and no
exception can come between.
"""

from __future__ import annotations

from fusec.ir import Node, Value
from fusec.ir.dims import is_static
from fusec.ops import get

from .graph_builder import GraphBuilder
from .memory import View
from .picks import part


def find_entries(graph: GraphBuilder) -> None:
    """Note where values are to be computed: `GraphBuilder.memory_for` asks."""
    roots = set(graph.graph.roots)
    for node in graph.nodes:
        if node.op == "PickUpdate" and node.inputs[1] not in roots and _is_entry(graph, node):
            graph.entries.setdefault(
                node.inputs[1], lambda node=node: _place(graph, node))  # type: ignore[misc]


def _is_entry(graph: GraphBuilder, node: Node) -> bool:
    whole, value, *indices = node.inputs
    return bool(value.shape) and is_static(value.shape) and value.node.op == "Fused" and (
        value.dtype == whole.dtype and whole.node.op == "Input"
        and len(graph.readers[whole]) == 1 and set(node.attrs["axes"]) == set(node.attrs["safe"])
        and all(map(_is_there, indices)) and _may_change(graph, whole)
        and not any(map(_may_leave, graph.nodes[graph.nodes.index(value.node):])))


def _may_leave(node: Node) -> bool:
    """Whether an early exit, which leaves arrays as they are, may be in the node's statements."""
    row = get(node.op)
    if node.op == "Fused":
        return any(get(inner.op).checks or get(inner.op).stateful or get(inner.op).may_raise
                   or get(inner.op).chooses for inner in node.attrs["body"].nodes)
    if row.picks:
        return set(node.attrs["axes"]) != set(node.attrs["safe"])
    return not (row.kind == "view" or row.is_given)


def _is_there(index: Value) -> bool:
    """Whether it is known before the first step."""
    return get(index.node.op).is_given


def _may_change(graph: GraphBuilder, whole: Value) -> bool:
    location = graph.env.get(whole)
    return isinstance(location, View) and location.memory in graph.owned and (
        not location.repeats and all(
            value is whole or not isinstance(other, View) or other.memory is not location.memory
            for value, other in graph.env.items()))


def _place(graph: GraphBuilder, node: Node) -> View:
    return part(graph, node, graph.array(node.inputs[0]), node.inputs[2:])
