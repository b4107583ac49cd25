"""Products of matrices without a library.

does:   replaces every product of vectors, matrices and stacks of matrices by a fused multiply and
        sum, in branches and loops too
needs:  nothing
leaves: no MatMul: for functions that leave the process, where there is no BLAS
"""

from __future__ import annotations

import numpy as np

from fusec.ir import Graph, Node, Value

from ..rewrite import Replacement, Rewriter, rewrite
from ..subgraphs import optimise_subgraphs


def exported_products(graph: Graph) -> Graph:
    """``graph`` with its products as sums of products."""
    inside = optimise_subgraphs(graph, lambda body, node: exported_products(body))
    return rewrite(inside, _visit, ops=("MatMul",))


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op != "MatMul":
        return None
    a, b = node.inputs
    if b.type.rank == 1:  # of rows with a vector
        product = rewriter.emit("Mul", a, b)
    elif a.type.rank == 1:
        turned = rewriter.emit("Transpose", b, perm=(*range(b.type.rank - 2), b.type.rank - 1,
                                                     b.type.rank - 2))
        product = rewriter.emit("Mul", turned, a)
    else:
        left = rewriter.emit("ExpandDims", a, axes=(a.type.rank,))
        right = rewriter.emit("ExpandDims", b, axes=(b.type.rank - 2,))
        product = rewriter.emit("Mul", left, right)
        return (_of_type(rewriter, product, product.type.rank - 2, node),)
    return (_of_type(rewriter, product, product.type.rank - 1, node),)


def _of_type(rewriter: Rewriter, product: Value, axis: int, node: Node) -> Value:
    """The sum along the axis, in the product's dtype; booleans add as ``or``."""
    wanted = node.types[0]
    op = "Any" if wanted.dtype == np.bool_ else "Sum"
    value = rewriter.emit(op, product, axes=(axis,))
    if value.type == wanted:
        return value
    return rewriter.emit("Cast", value, dtype=wanted.dtype, kind=wanted.kind)
