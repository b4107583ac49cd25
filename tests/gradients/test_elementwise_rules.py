"""The partial derivatives of elementwise rows, judged by mpmath in every dtype that they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from elementwise_truths import ABSOLUTE, FUNCTIONS, STEEP, points, truth

from fusec.ir import Graph, TensorType
from fusec.ops import Builder, all_ops, get
from fusec.ops.admission.claims import claimed_dtypes
from fusec.ops.derivatives import DIFFERENTIABLE, Term
from fusec.ops.graphs.evaluate import evaluate

ROUNDINGS = 24  # of the steps of a formula, in units of its dtype
CASES = [(name, dtype) for name in FUNCTIONS for dtype in claimed_dtypes(get(name))
         if dtype.kind in DIFFERENTIABLE]


def partials_at(name: str, operands: Sequence[Any], dtype: np.dtype) -> list[np.ndarray]:
    """The partials of the row's formulas for arrays of operands."""
    builder = Builder()
    arrays = [np.asarray(x, dtype) for x in operands]
    inputs = [builder.source("Input", "x", index=k, path=f"x{k}", type=TensorType(dtype, a.shape))
              for k, a in enumerate(arrays)]
    result = builder.emit(name, *inputs)
    terms = [Term(builder, value) for value in (*inputs, result)]
    partials = get(name).partials
    assert isinstance(partials, tuple)
    given = [entry(*terms) for entry in partials]
    values = [x.value if isinstance(x, Term) else builder.const(dtype.type(x)) for x in given]
    found = evaluate(Graph.build(inputs, values), arrays)
    return [np.broadcast_to(x, result.shape) for x in found]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda x: str(x))
def test_partials_are_derivatives(name: str, dtype: np.dtype) -> None:
    """Points of complex functions without complex points are those of real ones."""
    at = points(name, dtype)
    if not at:
        pytest.skip(f"{name} of {dtype} is judged elsewhere")
    columns = list(zip(*at, strict=True))
    unit = float(np.finfo(dtype).eps) * (ROUNDINGS + STEEP.get(name, 0))
    for operand, found in enumerate(partials_at(name, columns, dtype)):
        for point, value in zip(at, found, strict=True):
            right = truth(name, point, operand)
            allowed = unit * (abs(right) + (name in ABSOLUTE)) + float(np.finfo(dtype).tiny)
            assert abs(complex(value) - right) <= allowed, (point, operand, value, right)


def test_every_smooth_row_is_judged() -> None:
    judged_by_hand = {"Where", "Cast", "Abs", "Sign", "ScalarCall", "Real", "Imag", "Conj",
                      "WithReal", "WithImag"}
    smooth = {row.name for row in all_ops() if row.kind == "elementwise" and (
        isinstance(row.partials, tuple) or callable(row.vjp))}
    assert smooth - judged_by_hand == set(FUNCTIONS)
