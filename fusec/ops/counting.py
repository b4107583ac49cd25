"""Counters whose number the largest of the counted ints decides: those of ``np.bincount``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import TensorType

from .admission.row_admissions import COUNTERS
from .registry import Op, Types, register

NEGATIVE = "'list' argument must have no negative elements"


def infer_counters(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return tuple(attrs["results"])


def counters_reference(
    lowest: Any, highest: Any, *, results: Sequence[TensorType], minlength: int
) -> np.ndarray:
    """Zeros for 0 to ``highest``, at least ``minlength``; ``ValueError`` if one is negative."""
    if lowest < 0:
        raise ValueError(NEGATIVE)
    return np.zeros(max(int(highest) + 1, minlength), results[0].dtype)


register(Op(
    name="Counters", kind="extern", arity=2, infer=infer_counters, reference=counters_reference,
    cost=1000.0, takes=("i8",), called="np.zeros", admits=COUNTERS,
    doc="Zeros for all integers from 0 to operand 1; raises if operand 0, the lowest, is negative. "
        "attrs minlength; results: the type, of a size that it defines.",
))
