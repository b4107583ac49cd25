"""Divisions of the backward pass by values whose reciprocal it has anyway become multiplications.

does:   Div(x, d) -> Mul(x, Reciprocal(d)) where the graph has Reciprocal(d); there is one of each
needs:  the body of a loop that gradients made, whose cotangents need no bits of a quotient.
leaves: as they are, quotients that a comparison, or anything else that is not a float, is computed
        from: they decide as the program did, and have its bits.
"""

from __future__ import annotations

from fusec.ir import Graph, Node, Value

from ..rewrite import Replacement, Rewriter, rewrite
from .decisive_values import decisive_values


def shared_reciprocals(graph: Graph) -> Graph:
    """The graph with these divisions shared; itself where there are none."""
    shared = {node.inputs[0] for node in graph.nodes if node.op == "Reciprocal"}
    if not any(node.op == "Div" and node.inputs[1] in shared for node in graph.nodes):
        return graph
    decisive = decisive_values(graph)
    of: dict[Value, Value] = {}

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        old = rewriter.old
        if old.op != "Reciprocal" and old.op != "Div":
            return None
        *x, divisor = old.inputs
        if divisor not in shared or old.out() in decisive:
            return None
        if divisor not in of:
            of[divisor] = rewriter.emit("Reciprocal", node.inputs[-1])
        return [rewriter.emit("Mul", node.inputs[0], of[divisor]) if x else of[divisor]]

    return rewrite(graph, visit)
