"""Fences between iterations that are written out: taken out again when products are contracted."""

from __future__ import annotations

from fusec.ir import Graph, Value

from ..split_states import is_kept


def without_fences(graph: Graph, first: int, count: int) -> Graph:
    """The graph without its fences, but for those where values are stored in blocks, and without
    so many outputs that were there to be kept."""
    values: dict[Value, Value] = {}
    nodes = []
    for node in graph.nodes:
        copy = node.with_inputs([values.get(v, v) for v in node.inputs])
        if node.op == "Fence" and not is_kept(node):
            values[node.out()] = copy.inputs[0]
            continue
        nodes.append(copy)
        values.update((a, b) for a, b in zip(node.outputs, copy.outputs, strict=True) if a != b)
    outputs = (*graph.outputs[:first], *graph.outputs[first + count:])
    return Graph(graph.inputs, tuple(values.get(v, v) for v in outputs), (), tuple(nodes),
                 graph.name)


__all__ = ["without_fences"]
