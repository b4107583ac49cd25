"""Comparisons that are no single op: uint64 with int64, huge Python ints, complex scalars.

NumPy compares integers that have no common integer dtype by their mathematical values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.ir import Value
from fusec.ops.complex_parts import PARTS
from fusec.ops.order import ORDERS

from ..values.trace import Trace
from .operands import cast, spread
from .python_numbers import misses_dtype

COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_U64, _I64 = np.dtype(np.uint64), np.dtype(np.int64)


def comparison(
    trace: Trace, op: str, values: Sequence[Value], dtypes: Sequence[np.dtype]
) -> Value | None:
    """The comparison in ops whose operands share a dtype; None where no such rule is needed."""
    left, right = values
    if misses_dtype(right, dtypes[1]) and left.dtype != np.bool_:
        return _constant_truth(trace, op, left, misses_dtype(right, dtypes[1]))
    if misses_dtype(left, dtypes[0]) and right.dtype != np.bool_:
        return _constant_truth(trace, ORDERS[op].swapped, right, misses_dtype(left, dtypes[0]))
    if _may_miss(left, right.dtype) or _may_miss(right, left.dtype):
        return _with_run_time_int(trace, op, left, right)
    if dtypes[0] == dtypes[1]:
        return None
    if dtypes[0] == _U64:
        left, right, op = right, left, ORDERS[op].swapped
    return _signed_with_unsigned(trace, op, left, right)


def of_complex_scalars(
    trace: Trace, op: str, values: Sequence[Value], dtype: np.dtype
) -> Value | None:
    """The order of complex scalars by operators: real parts first, imaginary parts where those are
    equal.  NumPy's loops, unlike this, give False where any part is NaN; operators use them where
    neither dtype holds the other, or the left operand is a NumPy boolean.  None for these and for
    other comparisons."""
    if not ORDERS[op].strict or dtype.kind != "c" or any(v.type.kind == "array" for v in values):
        return None
    left = values[0].type
    if dtype not in [v.dtype for v in values] or (left.dtype == np.bool_ and not left.is_weak):
        return None
    wide = [cast(trace, v, dtype) for v in values]
    real, imaginary = ([trace.emit(part, v) for v in wide] for part in PARTS)
    equal = trace.emit("Equal", *real)
    return trace.emit("LogicalOr", trace.emit(ORDERS[op].strict, *real), trace.emit(
        "LogicalAnd", equal, trace.emit(op, *imaginary)))


def _may_miss(value: Value, dtype: np.dtype) -> bool:
    """Whether a Python int of the run may be out of the range of the other operand's dtype."""
    return value.type.is_weak and value.dtype == _I64 and value.node.op != "Const" and (
        dtype.kind in "iu" and dtype != _I64)


def _with_run_time_int(trace: Trace, op: str, left: Value, right: Value) -> Value:
    """The comparison in 64-bit integers."""
    if right.dtype == _U64:
        return _signed_with_unsigned(trace, op, left, right)
    if left.dtype == _U64:
        return _signed_with_unsigned(trace, ORDERS[op].swapped, right, left)
    return trace.emit(op, cast(trace, left, _I64), cast(trace, right, _I64))


def _constant_truth(trace: Trace, op: str, value: Value, side: int) -> Value:
    """``value`` compared with an int above (1) or below (-1) all of its dtype's values."""
    is_true = ORDERS[op].below if side > 0 else ORDERS[op].above
    truth = trace.builder.const(is_true if value.type.is_weak else np.bool_(is_true))
    return spread(trace, truth, value.shape) if value.shape else truth


def _signed_with_unsigned(trace: Trace, op: str, signed: Value, unsigned: Value) -> Value:
    """Negative numbers are below every unsigned one; the others compare as unsigned."""
    signed, unsigned = cast(trace, signed, _I64), cast(trace, unsigned, _U64)
    negative = trace.emit("Less", signed, cast(trace, trace.builder.const(0), _I64))
    compared = trace.emit(op, cast(trace, signed, _U64), unsigned)
    if ORDERS[op].below:
        return trace.emit("LogicalOr", negative, compared)
    return trace.emit("LogicalAnd", trace.emit("LogicalNot", negative), compared)
