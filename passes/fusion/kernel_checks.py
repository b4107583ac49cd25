"""Checks become part of kernels.

does:   replaces ``Check`` by ``Verify``, which is fused, where nothing but checks has effects.
needs:  the graph of the whole call: where a check fails in a kernel, the call is repeated through
        NumPy, which raises the error; calls of the user's own functions cannot be repeated.
leaves: no ``Check`` outside of branches and loops, unless there are such calls.
"""

from __future__ import annotations

from fusec.ir import Graph, Node
from fusec.ops.registry import get

from ..rewrite import Rewriter, rebuilt


def kernel_checks(graph: Graph) -> Graph:
    """The graph with its outermost checks in kernels; itself when there are none."""
    if "Check" not in graph.ops or any(
            get(op).stateful and not get(op).checks for op in graph.ops):
        return graph
    rewriter = Rewriter(graph)
    for old in graph.nodes:
        rewriter.stand_for(old)
        rewriter.keep(_verified(rewriter.operands(old)))
    return rebuilt(graph, rewriter.nodes, rewriter.values)


def _verified(node: Node) -> Node:
    if node.op != "Check":
        return node
    return node.with_(op="Verify")
