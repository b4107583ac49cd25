"""A product of a vector, of few columns or over a short axis as a sum of products."""

from __future__ import annotations

import numpy as np

from fusec.ir import Node, Value
from fusec.ops.regions.narrow_products import MAX_SUMMED, is_short

from ..rewrite import Rewriter


def sum_of_products(node: Node, rewriter: Rewriter) -> Value:
    """What stands for a `MatMul` that `is_narrow`; float16 is added up in float32, as NumPy's
    products are."""
    dtype = node.types[0].dtype
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    a, b = (_cast(rewriter, v, wide) for v in node.inputs)
    is_result = node.out() in rewriter.roots  # which is no view
    total = _cast(rewriter, _product(rewriter, a, b, is_result), dtype)
    if total.type == node.types[0]:
        return total
    return rewriter.emit("Cast", total, dtype=dtype, kind=node.types[0].kind)


def _product(rewriter: Rewriter, a: Value, b: Value, is_result: bool) -> Value:
    if len(a.shape) == 2 and len(b.shape) == 2:
        if is_result:
            return _of_matrices(rewriter, a, b)
        if b.shape[1] == 1:
            return _with_axis(rewriter, _by_vector(rewriter, a, _squeezed(rewriter, b, 1)), 1)
        if a.shape[0] == 1 and not is_short(b.shape[1]):
            row = _by_vector(rewriter, _transposed(rewriter, b), _squeezed(rewriter, a, 0))
            return _with_axis(rewriter, row, 0)
        return _of_matrices(rewriter, a, b)
    if len(a.shape) == 2:
        return _by_vector(rewriter, a, b)
    if len(b.shape) == 2:
        return _by_vector(rewriter, _transposed(rewriter, b), a)
    return _summed(rewriter, rewriter.emit("Mul", a, b), 0)


def _by_vector(rewriter: Rewriter, a: Value, x: Value) -> Value:
    """A matrix by a vector; the rows of one that is a transpose are summed."""
    if a.node.op != "Transpose":
        return _summed(rewriter, rewriter.emit("Mul", a, x), 1)
    return _summed(rewriter, rewriter.emit("Mul", a.node.inputs[0], _with_axis(rewriter, x, 1)), 0)


def _of_matrices(rewriter: Rewriter, a: Value, b: Value) -> Value:
    summed = a.shape[1]
    if isinstance(summed, int) and 2 <= summed <= MAX_SUMMED:
        right = _with_axis(rewriter, _transposed(rewriter, b), 0)
        return _summed(rewriter, rewriter.emit("Mul", _with_axis(rewriter, a, 1), right), 2)
    if a.node.op == "Transpose":
        left, right = _with_axis(rewriter, a.node.inputs[0], 2), _with_axis(rewriter, b, 1)
        return _summed(rewriter, rewriter.emit("Mul", left, right), 0)
    left, right = _with_axis(rewriter, a, 2), _with_axis(rewriter, b, 0)
    return _summed(rewriter, rewriter.emit("Mul", left, right), 1)


def _summed(rewriter: Rewriter, products: Value, axis: int) -> Value:
    """Their sum, written out over a short last axis of several."""
    size = products.shape[axis]
    if 0 < axis == len(products.shape) - 1 and products.dtype.kind != "b" and (
            isinstance(size, int) and 2 <= size <= MAX_SUMMED):
        return rewriter.emit("Fold", products, of="Sum", axes=(axis,))
    return rewriter.emit("Sum", products, axes=(axis,))


def _transposed(rewriter: Rewriter, x: Value) -> Value:
    return x.node.inputs[0] if x.node.op == "Transpose" else rewriter.emit(
        "Transpose", x, perm=(1, 0))


def _with_axis(rewriter: Rewriter, x: Value, axis: int) -> Value:
    return rewriter.emit("ExpandDims", x, axes=(axis,))


def _squeezed(rewriter: Rewriter, x: Value, axis: int) -> Value:
    return rewriter.emit("Squeeze", x, axes=(axis,))


def _cast(rewriter: Rewriter, x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else rewriter.emit("Cast", x, dtype=dtype)
