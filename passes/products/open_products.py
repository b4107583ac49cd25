"""Small products inside native loops are open-coded.

does:   replaces products of a vector, or of small matrices, by a fused multiply and sum
needs:  nothing
leaves: products that the library does better
"""

from __future__ import annotations

import numpy as np

from fusec.ir import Graph, Node, Value
from fusec.ops.regions.small_products import is_opened

from ..rewrite import Replacement, Rewriter, rewrite


def open_products(graph: Graph) -> Graph:
    """``graph`` with products of a vector (by a vector or a matrix) as sums of products."""
    return rewrite(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if not is_opened(node):
        return None
    a, b = (_widened(rewriter, v) for v in node.inputs)
    if a.type.rank == b.type.rank == 2:
        return (_typed(rewriter, _of_matrices(rewriter, a, b), node),)
    if a.type.rank == 1 and b.type.rank == 2:
        b = rewriter.emit("Transpose", b, perm=(1, 0))
    product = rewriter.emit("Mul", a, b)
    return (_typed(rewriter, _summed(rewriter, product, product.type.rank - 1), node),)


def _of_matrices(rewriter: Rewriter, a: Value, b: Value) -> Value:
    left = rewriter.emit("ExpandDims", a, axes=(2,))
    right = rewriter.emit("ExpandDims", b, axes=(0,))
    return _summed(rewriter, rewriter.emit("Mul", left, right), 1)


def _summed(rewriter: Rewriter, products: Value, axis: int) -> Value:
    """Their sum; booleans add as ``or``."""
    op = "Any" if products.dtype == np.bool_ else "Sum"
    return rewriter.emit(op, products, axes=(axis,))


def _widened(rewriter: Rewriter, x: Value) -> Value:
    """NumPy adds up products of float16 in float32."""
    return rewriter.emit("Cast", x, dtype=np.dtype(np.float32)) if x.dtype == np.float16 else x


def _typed(rewriter: Rewriter, value: Value, node: Node) -> Value:
    """The result as the product's, a number too."""
    if value.type == node.types[0]:
        return value
    return rewriter.emit("Cast", value, dtype=node.types[0].dtype, kind=node.types[0].kind)
