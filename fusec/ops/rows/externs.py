"""Ops that call a library: BLAS through NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import TensorType

from ..admission.row_admissions import MATMUL
from ..registry import Op, register
from ..shapes import broadcast


def infer_matmul(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    """``matmul``'s shape rule: vectors are promoted, leading axes broadcast."""
    a, b = types
    if not a.shape or not b.shape:
        raise ValueError("matmul: an operand has no axes; use * for a scalar factor")
    left = a.shape if a.rank > 1 else (1, *a.shape)
    right = b.shape if b.rank > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise ValueError(
            f"matmul: shapes {a.shape} and {b.shape} do not align: {left[-1]} (last axis of the "
            f"first) is not {right[-2]} (axis {0 if b.rank == 1 else -2} of the second)"
        )
    shape = broadcast([left[:-2], right[:-2]])
    shape += (left[-2],) if a.rank > 1 else ()
    shape += (right[-1],) if b.rank > 1 else ()
    return (TensorType(a.dtype, shape, "array" if shape else "scalar"),)


register(Op(
    name="MatMul", kind="extern", arity=2, infer=infer_matmul, ufunc=np.matmul,
    reference=np.matmul, numpy=(np.matmul,), cost=1000.0, raises="never", admits=MATMUL,
    called="np.matmul", is_estimated=True,
    doc="np.matmul: products of stacks of matrices, by BLAS where NumPy uses it.",
))
