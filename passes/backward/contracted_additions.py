"""Additions of the way back whose products kernels may round with them, once.

does:   Add(x, y), Sub(x, y) -> the same with ``contracts``
needs:  the body of a loop that gradients made, whose cotangents need no bits of a sum; products
        that stand next to a sum in the graph are in an Fma already.
leaves: sums that `lower_expression` joins with products that pads stand between: in
        the boxes that a kernel's domain is cut into they are next to each other.
"""

from __future__ import annotations

from fusec.ir import Graph, Node

from ..rewrite import Replacement, Rewriter, rewrite
from .decisive_values import decisive_values


def contracted_additions(graph: Graph) -> Graph:
    """The graph with such additions; itself where nothing is between a product and its sum."""
    if "SliceUpdate" not in graph.ops:
        return graph
    decisive = decisive_values(graph)

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        old = rewriter.old.out()
        if (node.op != "Add" and node.op != "Sub") or old in decisive or old.dtype.char not in "fd":
            return None
        return [rewriter.emit(node.op, *node.inputs, contracts=True)]

    return rewrite(graph, visit)
