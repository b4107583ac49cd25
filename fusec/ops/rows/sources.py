"""Ops without inputs: arguments, constants, counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import TensorType
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..admission import row_admissions
from ..registry import Op, register


def infer_const(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    value, kind = attrs["value"], attrs["kind"]
    if kind == "weak":
        dtype = {bool: "?", int: "i8", float: "f8", complex: "c16"}[value.__class__]
        return (TensorType(np.dtype(dtype), (), "weak"),)
    value = value.hint if type(value) is Symbolic else value
    return (TensorType(np.asarray(value).dtype, (), kind),)


def iota_reference(size: int, dtype: np.dtype) -> np.ndarray:
    return np.arange(size).astype(dtype)


register(Op(
    name="Input", kind="source", arity=0, infer=lambda types, attrs: (attrs["type"],),
    reference=lambda **attrs: None, is_given=True, admits=row_admissions.INPUT,
    doc="An argument; attrs: index, path, type.",
))
register(Op(
    name="Const", kind="source", arity=0, infer=infer_const,
    reference=lambda value, kind: value, is_given=True, admits=row_admissions.CONST,
    doc="A constant of rank 0; attrs: value (Python or NumPy scalar), kind.",
))
register(Op(
    name="Iota", kind="source", arity=0, reference=iota_reference, takes="i",
    admits=row_admissions.IOTA,
    infer=lambda types, attrs: (TensorType(attrs["dtype"], (attrs["size"],)),),
    doc="0, 1, 2, … of length ``size``; attrs: size, dtype.",
))
