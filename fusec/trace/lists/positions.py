"""Positions in an iteration that follow from its number: ``a * k + b``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import is_int

from ..values.array import TracedArray


def affine(x: Any, counter: TracedArray | None) -> tuple[int, int] | None:
    """``a`` and ``b`` of a position ``a * counter + b``."""
    if is_int(x):
        return 0, int(x)
    if counter is None or type(x) is not TracedArray:
        return None
    return _affine_of(x.value, counter.value)


def _affine_of(value: Value, counter: Value) -> tuple[int, int] | None:
    if value == counter:
        return 1, 0
    node = value.node
    if node.op == "Const":
        known = node.attrs["value"]
        is_whole = np.ndim(known) == 0 and np.asarray(known).dtype.kind in "iu"
        return (0, int(known)) if is_whole else None
    if node.op == "Cast" and value.dtype.kind in "iu":
        return _affine_of(node.inputs[0], counter)
    if value.dtype.kind != "i" or len(node.inputs) != 2:
        return None
    a, b = (_affine_of(v, counter) for v in node.inputs)
    if a is None or b is None:
        return None
    if node.op == "Add":
        return a[0] + b[0], a[1] + b[1]
    if node.op == "Sub":
        return a[0] - b[0], a[1] - b[1]
    is_product = node.op == "Mul" and not a[0] * b[0]
    return (a[0] * b[1] + a[1] * b[0], a[1] * b[1]) if is_product else None
