"""Products of a column and a row are elementwise.

does:   MatMul(a, b) of matrices [m, 1] and [1, n] -> Add(Mul(a, b), 0), which fuses with values
        added to it
needs:  nothing; a sum of one product begins with 0, as the library's does
leaves: products of booleans and of complex numbers
"""

from __future__ import annotations

from fusec.ir import Graph, Node

from ..rewrite import Replacement, Rewriter, rewrite


def outer_products(graph: Graph) -> Graph:
    """``graph`` with products over an axis of one element as products of elements."""
    return rewrite(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op != "MatMul" or node.types[0].dtype.kind not in "iuf":
        return None
    a, b = node.inputs
    if a.type.rank != 2 or b.type.rank != 2 or a.shape[1] != 1 or a.dtype != b.dtype:
        return None
    product = rewriter.emit("Mul", a, b)
    return (rewriter.emit("Add", product, rewriter.const(a.dtype.type(0))),)
