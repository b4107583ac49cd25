"""Values with a derivative of their own are plain values, once derivatives have been taken.

does:   readers of such a value read the program's own value (`fusec.custom_vjp`).
needs:  nothing; a trace has all of its derivatives.
leaves: no `GivenDerivative`, and no graph of its rule.
"""

from __future__ import annotations

from fusec.ir import Graph
from fusec.ops.calls.given_derivatives import GIVEN

from ..rewrite import Rewriter, rebuilt


def without_rules(graph: Graph) -> Graph:
    """The graph without rules of derivatives; itself where it has none."""
    if GIVEN not in graph.ops:
        return graph
    rewriter = Rewriter(graph)
    for old in graph.nodes:
        rewriter.visit(old)
        node = rewriter.operands(old)
        if node.op == GIVEN:
            rewriter.accept(node.inputs[: len(node.types)])
        else:
            rewriter.keep(node)
    return rebuilt(graph, rewriter.nodes, {**rewriter.values, **rewriter.results})
