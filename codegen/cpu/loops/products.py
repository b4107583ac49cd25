"""Small products inside loops are open-coded: a dot product is a fused multiply and sum."""

from __future__ import annotations

from fusec.ir import Graph, Node, Value
from fusec.passes.rewrite import Replacement, Rewriter, rewrite


def open_products(graph: Graph) -> Graph:
    """``graph`` with products of a vector (by a vector or a matrix) as sums of products."""
    return rewrite(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op != "MatMul":
        return None
    a, b = node.inputs
    if a.type.rank > 2 or b.type.rank > 2 or a.type.rank + b.type.rank > 3:
        return None
    if a.type.rank == 1 and b.type.rank == 2:
        b = rewriter.emit("Transpose", b, perm=(1, 0))
    product = rewriter.emit("Mul", a, b)
    return (_kinded(rewriter, rewriter.emit(
        "Sum", product, axes=(product.type.rank - 1,)), node),)


def _kinded(rewriter: Rewriter, value: Value, node: Node) -> Value:
    if value.type == node.types[0]:
        return value
    return rewriter.emit("Cast", value, dtype=value.dtype, kind=node.types[0].kind)
