"""The last step that may raise."""

from __future__ import annotations

from fusec.ir import Graph
from fusec.ops import get

from .call_plan import may_fail


def last_fallible(graph: Graph) -> int:
    """Position of the last step that may raise while it runs, -1: there is none."""
    fallible = (i for i, node in enumerate(graph.nodes) if get(node.op).may_raise or may_fail(node))
    return max(fallible, default=-1)
