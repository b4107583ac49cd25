"""``x ** y`` and ``np.power``: products for whole exponents, NumPy's shortcuts for floats.

NumPy's loops of float32 and float64 take ``sqrt`` for an exponent of 0.5 that they meet again and
again: -inf and -0.0 give NaN and -0.0 there, where ``pow`` of C gives inf and 0.0.  In older NumPys
only the operator does, whatever the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ops.shapes import broadcast

from ..facts import this_numpy
from ..facts.layout import broadcast_strides
from ..operands.operands import cast
from ..values.array import TracedArray, from_value
from ..values.trace import Trace
from .methods import call_ufunc_method

MAX_POWER = 64
_SHORTCUTS: dict[Any, str] = {2: "Square", 0.5: "Sqrt", -1: "Reciprocal"}


def power(
    trace: Trace, values: Sequence[Value], operands: Sequence[TracedArray], dtype: np.dtype,
    python: bool = False,
) -> Value | None:
    """The power where it is more than the op ``Pow``; ``operands`` say how ``values`` lie."""
    base, exponent = values
    number = exponent.node.attrs["value"] if exponent.node.op == "Const" else None
    if dtype.kind not in "iu":
        return _float_power(trace, values, operands, dtype, number, python)
    if number is None and exponent.type.is_weak:
        number = TracedArray(trace, None, (), exponent).concrete(
            "an int", "convert the base to float64, or write the product out")
    if type(number) is int and exponent.type.is_weak:
        cast(trace, exponent, dtype, _weak(values))  # OverflowError where it does not fit
    if number is None or not isinstance(number, (int, np.integer)) or number > MAX_POWER:
        return _any_integer_power(trace, values, dtype)
    if number < 0 and base.type.size and exponent.type.size:
        raise trace.error(ValueError("Integers to negative integer powers are not allowed."))
    return _product_power(trace, cast(trace, base, dtype, _weak(values)), max(int(number), 0))


def _any_integer_power(trace: Trace, values: Sequence[Value], dtype: np.dtype) -> Value:
    """NumPy's own loop, which raises for negative exponents when it runs."""
    if all(v.type.is_weak for v in values):
        raise unsupported(
            "a power of Python ints with an exponent that is not a small constant", loc=trace.loc,
            cure="make one of them an array or a NumPy scalar, or use float(base)**exponent",
        )
    operands = [from_value(trace, cast(trace, v, dtype)) for v in values]
    result: Value = call_ufunc_method(trace, np.power, "__call__", operands, {}).value
    return result


def _float_power(
    trace: Trace, values: Sequence[Value], operands: Sequence[TracedArray], dtype: np.dtype,
    number: Any, python: bool,
) -> Value | None:
    if not _has_shortcuts(values, dtype, python):
        return None
    base, exponent = (cast(trace, v, dtype) for v in values)
    op = _SHORTCUTS.get(number)
    if op is not None:
        return trace.emit(op, base)
    if number is not None or not _is_repeated(operands, dtype):
        return None
    result = trace.emit("Pow", base, exponent)
    if not exponent.shape and dtype.kind == "f":
        one = cast(trace, trace.builder.const(1.0), dtype)
        result = _chosen(trace, exponent, 0.0, one, result)
        result = _chosen(trace, exponent, 1.0, trace.emit("Pos", base), result)
        result = _chosen(trace, exponent, -1.0, trace.emit("Reciprocal", base), result)
        result = _chosen(trace, exponent, 2.0, trace.emit("Square", base), result)
    result = _chosen(trace, exponent, 0.5, trace.emit("Sqrt", base), result)
    return trace.emit("ChosenPow", result, base, exponent)


def _chosen(trace: Trace, exponent: Value, known: float, power: Value, other: Value) -> Value:
    """The power where the exponent, which the run decides, is the known one, else the other.

    Kernels branch where the exponent is one number, once for a vector.
    """
    number = cast(trace, trace.builder.const(known), exponent.dtype)
    return trace.emit("Where", trace.emit("Equal", exponent, number), power, other)


def _has_shortcuts(values: Sequence[Value], dtype: np.dtype, python: bool) -> bool:
    """The operator on an array knows Python's numbers; the loops of float32 and float64, strides.

    Scalars' own operators know none.
    """
    base, exponent = values
    if python and base.type.kind != "array" and exponent.type.kind != "array":
        return False
    is_scalar = exponent.type.is_weak or (
        this_numpy.OPERATOR_KNOWS_SCALARS and not exponent.shape)
    operator = python and base.type.kind == "array" and is_scalar
    return operator or (
        this_numpy.POWER_TAKES_ROOTS and dtype.kind == "f" and dtype != np.float16)


def known_to_operator(x: TracedArray, y: Any, in_place: bool) -> Any:
    """``x ** y`` of an array in NumPys whose operator looks into every scalar; None if they go on.

    They keep the array's dtype, so a scalar of a wider one must be known.
    """
    is_scalar = isinstance(y, (int, float, np.generic)) or (
        type(y) in (TracedArray, np.ndarray) and not y.ndim)
    if not this_numpy.OPERATOR_KNOWS_SCALARS or not x.is_array or not is_scalar:
        return None
    if type(y) is TracedArray:
        if y.type.is_weak or np.result_type(x.dtype, y.dtype) == x.dtype:
            return None
        y = y.concrete("an exponent that may change the dtype in this NumPy",
                       f"give it the array's dtype: np.{x.dtype}(p)")
    y = np.asarray(y)
    if y.dtype.kind not in "iuf":
        return None
    out: dict[str, Any] = {"out": x} if in_place else {}
    if x.dtype.kind in "fc":
        if y == 0:
            return np.multiply(np.ones_like(x), 1, **out)
        ufunc = {1: np.positive, -1: np.reciprocal, 0.5: np.sqrt, 2: np.square}.get(float(y))
        return None if ufunc is None else ufunc(x, **out)
    if y != 2:
        return None
    widens = y.dtype.kind == "f" and x.dtype.kind in "iu" and not in_place
    return np.square(x.astype(np.float64) if widens else x, **out)


def _is_repeated(operands: Sequence[TracedArray], dtype: np.dtype) -> bool:
    """Whether NumPy's loop meets one exponent, with a stride of 0 along every axis.

    Where the stride is 0 along some axes alone, that NumPy takes the root or not depends on how
    many elements the others have (2 or more than 2, in NumPy 2.4), which we leave open.
    """
    base, exponent = operands
    if not exponent.shape:
        return True
    if not (base.value.type.is_static and exponent.value.type.is_static):
        return False
    shape = broadcast((base.shape, exponent.shape))
    if all(size == 1 for size in shape):
        return _is_repeated_once(base, exponent, dtype)
    strides = broadcast_strides(exponent.shape, exponent.strides, shape)
    if any(s for s, n in zip(strides, shape, strict=True) if n != 1):
        return False
    # What is cast is so into a buffer, which has no stride of 0.
    return exponent.dtype == dtype or exponent.value.type.size == 1 or exponent.ndim > 1


def _is_repeated_once(base: TracedArray, exponent: TracedArray, dtype: np.dtype) -> bool:
    """The same of one element: operands of one shape are not broadcast, their strides stay."""
    if base.shape not in ((), exponent.shape):
        return True
    if exponent.ndim == 1:
        return exponent.dtype == dtype and exponent.strides[0] == 0
    return not base.dtype == exponent.dtype == dtype


def _weak(values: Sequence[Value]) -> str | None:
    return "weak" if all(v.type.is_weak for v in values) else None


def _product_power(trace: Trace, base: Value, exponent: int) -> Value:
    """Repeated squaring; exact modulo 2**bits like NumPy's integer power."""
    if exponent == 0:
        one = cast(trace, trace.builder.const(1), base.dtype, _weak([base]))
        return trace.emit("Add", trace.emit("Mul", base, cast(trace, trace.builder.const(0),
                                                              base.dtype, _weak([base]))), one)
    result: Value | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else trace.emit("Mul", result, base)
        exponent >>= 1
        base = trace.emit("Square", base) if exponent else base
    assert result is not None
    return result
