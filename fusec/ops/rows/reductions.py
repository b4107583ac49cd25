"""Reductions over attrs ``axes`` (sorted, non-negative); reduced axes disappear.

`Fold` is a reduction over so few elements that it is written out: an expression of all of them.

Frontends cast the operand to NumPy's accumulator dtype first (``sum`` of int32 is int64) and
restore axes for ``keepdims``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ir import TensorType

from ..admission.admission import BY_PASSES
from ..admission.row_admissions import REDUCTION
from ..registry import REAL, Op, get, register
from ..shapes import reduced


def _infer(types: Any, attrs: Any, dtype: np.dtype | None = None) -> tuple[TensorType, ...]:
    shape = reduced(types[0].shape, attrs["axes"])
    return (TensorType(dtype or types[0].dtype, shape, "array" if shape else "scalar"),)


def infer_index(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return _infer(types, attrs, np.dtype(np.int64))


def _by_ufunc(ufunc: np.ufunc) -> Any:
    def reference(x: Any, axes: tuple[int, ...]) -> Any:
        return ufunc.reduce(np.asarray(x), axis=tuple(axes), dtype=np.asarray(x).dtype)

    return reference


def _by_index(function: Any) -> Any:
    def reference(x: Any, axes: tuple[int, ...]) -> Any:
        x = np.asarray(x)
        kept = [d for d in range(x.ndim) if d not in axes]
        moved = np.transpose(x, [*kept, *axes])
        count = math.prod(x.shape[d] for d in axes)
        flat = moved.reshape(*[x.shape[d] for d in kept], count)
        return function(flat, axis=-1)

    return reference


def sum_reference(x: Any, axes: tuple[int, ...], in_parts: bool = False) -> Any:
    """``in_parts``: of all elements, in whatever order a kernel adds up the parts of its domain."""
    x = np.asarray(x)
    return np.sum(x, axis=tuple(axes), dtype=x.dtype)


def _reduction(
    name: str, scalar: str, reference: Any, infer: Any = _infer, **columns: Any
) -> Op:
    return register(Op(
        name=name, kind="reduce", arity=1, scalar=scalar, reference=reference, infer=infer,
        admits=REDUCTION, **columns,
        doc=f"{name} over attr axes; the order of sums is in docs/ir.md.",
    ))


_reduction("Sum", "add", sum_reference, joins="Add", of_booleans="Any")
_reduction("Prod", "mul", _by_ufunc(np.multiply), joins="Mul", of_booleans="All")
_reduction("Max", "maximum", _by_ufunc(np.maximum), chooses=True, joins="Maximum",
           takes=REAL)
_reduction("Min", "minimum", _by_ufunc(np.minimum), chooses=True, joins="Minimum",
           takes=REAL)
_reduction("Any", "or", _by_ufunc(np.logical_or), joins="LogicalOr", takes="?")
_reduction("All", "and", _by_ufunc(np.logical_and), joins="LogicalAnd", takes="?")
_reduction("ArgMax", "argmax", _by_index(np.argmax), infer_index, chooses=True, takes=REAL)
_reduction("ArgMin", "argmin", _by_index(np.argmin), infer_index, chooses=True, takes=REAL)

FOLDED = ("Sum", "Prod", "Max", "Min", "Any", "All")
TOTALS = 8  # NumPy's pairwise sum of this many elements or more has so many running totals


def _infer_fold(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    if attrs["of"] not in FOLDED:
        raise TypeError(f"Fold: {attrs['of']} is not written out")
    return _infer(types, {"axes": attrs["axes"]})


def fold_reference(x: Any, of: str, axes: tuple[int, ...]) -> Any:
    return get(of).reference(x, axes=axes)


def folded(parts: Sequence[Any], join: Callable[[Any, Any], Any], in_order: bool) -> Any:
    """The parts joined in NumPy's order: from the left, or as its sum of contiguous elements."""
    if in_order or len(parts) < TOTALS:
        return functools.reduce(join, parts)
    whole = len(parts) - len(parts) % TOTALS
    totals = [functools.reduce(join, parts[k:whole:TOTALS]) for k in range(TOTALS)]
    while len(totals) > 1:
        totals = [join(a, b) for a, b in zip(totals[::2], totals[1::2], strict=True)]
    return functools.reduce(join, parts[whole:], totals[0])


register(Op(
    name="Fold", kind="fold", arity=1, infer=_infer_fold, reference=fold_reference,
    admits=BY_PASSES,
    doc="The reduction attr of over attrs axes, the last ones, in registers: no loop, no order "
        "but the one in docs/ir.md.",
))
