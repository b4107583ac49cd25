"""Values of a backward pass whose bits decide: it must decide as the program did."""

from __future__ import annotations

from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.regions.loop_numbers import WAY_BACK


def decisive_values(graph: Graph) -> set[Value]:
    """Values from which something is computed that jumps: comparisons, and others that are no
    float; numbers that are rounded to whole ones; results of libraries and graphs inside."""
    found: set[Value] = set()
    for node in reversed(graph.nodes):
        if any(v in found for v in node.outputs):
            found.update(node.inputs)
        elif node.op == "Loop" and node.attrs["body"].name == WAY_BACK:
            found.update(_of_way_back(node))
        elif _jumps(node):
            found.update(node.inputs)
    return found


def _jumps(node: Node) -> bool:
    row = get(node.op)
    is_library = row.kind == "extern" and not row.picks  # which moves elements
    return row.jumps or is_library or bool(node.graphs) or any(
        v.dtype.kind not in "fc" for v in node.outputs)


def _of_way_back(node: Node) -> list[Value]:
    """The operands that decide in an iteration.  (Its carried values are cotangents, by which
    the program decided nothing.)"""
    body: Graph = node.attrs["body"]
    inside = decisive_values(body)
    return [v for v, parameter in zip(node.inputs, body.inputs, strict=True) if parameter in inside]
