"""Which step is the last to read a value, and the last that may raise."""

from __future__ import annotations

from fusec.ir import Graph, Value
from fusec.ops import get

from .schedule import may_fail


def last_readers(graph: Graph) -> dict[Value, int]:
    """Position of the last node that reads each value; results are read at the very end.

    Views share memory with what they show, so reading one reads that too.
    """
    last: dict[Value, int] = {}
    for position, node in enumerate(graph.nodes):
        for value in node.inputs:
            last[value] = position
    for value in graph.outputs:
        last[value] = len(graph.nodes)
    for node in reversed(graph.nodes):
        if get(node.op).kind == "view":
            source = node.inputs[0]
            last[source] = max(last[source], last.get(node.out(), -1))
    return last


def last_fallible(graph: Graph) -> int:
    """Position of the last step that may raise while it runs, -1: there is none."""
    fallible = (i for i, node in enumerate(graph.nodes) if get(node.op).may_raise or may_fail(node))
    return max(fallible, default=-1)
