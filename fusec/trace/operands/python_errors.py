"""Exceptions of Python's own arithmetic on floats, which NumPy answers with inf or NaN.

``1.0 / x`` of Python numbers raises ``ZeroDivisionError`` where ``x`` is 0, ``math.log(0.0)``
raises ``ValueError``.  Compiled code checks operands and results and raises the same; the texts are
those of the running interpreter, those of `math` as before Python 3.14 put numbers into them.
A negative number to a fractional power is complex in Python; a value's type cannot depend on data,
so that raises at run time.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.errors import UnsupportedError
from fusec.ir import Value

from ..values.trace import Trace
from .python_numbers import TEXT, check_signed, interval

F64 = np.dtype(np.float64)
_DIVISIONS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.divide: operator.truediv, np.floor_divide: operator.floordiv, np.remainder: operator.mod,
}
_DOMAIN: tuple[Callable[..., float], ...] = (
    math.sqrt, math.log, math.log2, math.log10, math.log1p, math.sin, math.cos, math.tan,
    math.asin, math.acos, math.acosh, math.atanh, math.fmod,
)
_POLES: tuple[Callable[..., float], ...] = (
    math.log, math.log2, math.log10, math.log1p, math.atanh,
)
_RANGE: tuple[Callable[..., float], ...] = (
    math.exp, math.expm1, math.sinh, math.cosh, *[
        function for name in ("exp2",) if (function := getattr(math, name, None))],
)
_OUTSIDE, _TOO_LARGE = ValueError("math domain error"), OverflowError("math range error")
_COMPLEX = ("a negative Python number to a fractional power is a complex number in Python; make "
            "it one before, complex(x) ** y, or use np.power(x, y), which gives nan")


_ORDERS = {np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">="}
_NAMES = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


def check_operands(trace: Trace, ufunc: np.ufunc, values: Sequence[Value]) -> None:
    """Check at run time for the errors of Python's operator; that complex numbers have no order
    raises at once."""
    if ufunc in (np.left_shift, np.right_shift) and values[1].dtype.kind in "iub":
        _check_shift(trace, values[1])
    if ufunc in _ORDERS and any(v.dtype.kind == "c" for v in values):
        left, right = (_NAMES[v.dtype.kind] for v in values)
        raise trace.error(TypeError(f"'{_ORDERS[ufunc]}' not supported between instances of "
                                    f"'{left}' and '{right}'"), values)
    if ufunc in _DIVISIONS:
        _check_divisor(trace, _DIVISIONS[ufunc], values)
    elif _is_real_power(ufunc, values) and any(v.dtype.kind == "f" for v in values):
        _check_power(trace, *(_as_float(trace, v) for v in values))


def _as_float(trace: Trace, value: Value) -> Value:
    if value.node.op == "Const":
        return trace.builder.const(float(value.node.attrs["value"]))
    return value if value.dtype == F64 else trace.emit("Cast", value, dtype=F64, kind="weak")


def check_result(trace: Trace, ufunc: np.ufunc, values: Sequence[Value], result: Value) -> None:
    """`check_operands` for results that are too large: only powers raise."""
    if _is_real_power(ufunc, values) and result.dtype.kind == "f":
        _check_finite(trace, values, result, exception_of(operator.pow, 10.0, 400.0))


def _is_real_power(ufunc: np.ufunc, values: Sequence[Value]) -> bool:
    return ufunc is np.power and all(v.dtype.kind in "if" for v in values)


def check_math_power(trace: Trace, values: Sequence[Value]) -> None:
    """Check the operands of `math.pow`, before it is computed."""
    _check_zero_to_negative(trace, values, _OUTSIDE)


def check_math(
    trace: Trace, function: Callable[..., Any], values: Sequence[Value], result: Value
) -> None:
    """Check at run time for the errors of a function of `math`."""
    if function in (*_DOMAIN, math.pow):
        any_nan = _any(trace, [trace.emit("IsNan", v) for v in values])
        number = trace.emit("LogicalNot", trace.emit("IsNan", result))
        trace.check(_any(trace, [number, any_nan]), _OUTSIDE)
    if function in _POLES:
        _check_finite(trace, values, result, _OUTSIDE)
    if function is math.lgamma:
        positive = trace.emit("Greater", values[0], trace.builder.const(0.0))
        _check_finite(trace, values, result, _OUTSIDE, positive)
    if function in (*_RANGE, math.pow, math.lgamma):
        _check_finite(trace, values, result, _TOO_LARGE)


def check_integer(trace: Trace, value: Value) -> None:
    """Check at run time for the errors of ``int(x)`` of a float, and that 64 bits suffice."""
    if value.dtype.kind != "f":
        check_signed(trace, value, OverflowError(TEXT))
        return
    trace.check(trace.emit("LogicalNot", trace.emit("IsNan", value)), exception_of(int, math.nan))
    trace.check(trace.emit("LogicalNot", trace.emit("IsInf", value)), exception_of(int, math.inf))
    size = trace.emit("Abs", trace.emit("Cast", value, dtype=F64))
    limit = trace.builder.const(np.float64(2.0 ** 63))
    trace.check(trace.emit("Less", size, limit), OverflowError(TEXT))


def _check_shift(trace: Trace, count: Value) -> None:
    bounds = interval(trace, count)
    if bounds is None or bounds[0] < 0:
        trace.check(trace.emit("GreaterEqual", count, trace.builder.const(0)),
                    ValueError("negative shift count"))


def _check_divisor(
    trace: Trace, divide: Callable[[Any, Any], Any], values: Sequence[Value]
) -> None:
    divisor = values[1]
    if not _is_known_nonzero(trace, divisor):
        trace.check(_is_not_zero(trace, divisor), _error_of(divide, values))


def _is_known_nonzero(trace: Trace, value: Value) -> bool:
    if value.node.op == "Const" and value.node.attrs["value"]:
        return True
    bounds = interval(trace, value)
    return bounds is not None and (bounds[0] > 0 or bounds[1] < 0)


def check_perhaps_pythons(
    trace: Trace, divide: Callable[[Any, Any], Any], values: Sequence[Value], is_open: bool
) -> None:
    """Check the division of two numbers that may be Python's, as data decides, or NumPy's, which
    give nan or inf: 0 by 0, as a sum by a count of nothing, and by 0 a number that may be Python's
    (``is_open``)."""
    number, divisor = values
    if _is_known_nonzero(trace, divisor):
        return
    holds = [_is_not_zero(trace, divisor)]
    if not is_open:
        holds.append(_is_not_zero(trace, number))
    trace.check(_any(trace, holds), _error_of(divide, [divisor]))


def _is_not_zero(trace: Trace, value: Value) -> Value:
    return trace.emit("NotEqual", value, trace.builder.const(value.dtype.type(0).item()))


def _error_of(divide: Callable[[Any, Any], Any], values: Sequence[Value]) -> Exception:
    """Python's for a division by 0."""
    kinds = {v.dtype.kind for v in values}
    kind = complex if "c" in kinds else float if "f" in kinds else int
    return exception_of(divide, kind(1), kind(0))


def _check_power(trace: Trace, base: Value, exponent: Value) -> None:
    power = exponent.node.attrs.get("value") if exponent.node.op == "Const" else None
    number = base.node.attrs.get("value") if base.node.op == "Const" else None
    if power is None or power < 0:
        error = exception_of(operator.pow, 0.0, -1.0)
        _check_zero_to_negative(trace, [base, exponent], error)
    whole = power is not None and (not math.isfinite(power) or power == math.floor(power))
    if not whole and (number is None or number < 0):
        _check_real(trace, base, exponent)


def _check_real(trace: Trace, base: Value, exponent: Value) -> None:
    """Check that the power is no complex number."""
    if exponent.dtype != F64:
        return
    zero = trace.builder.const(0.0)
    whole = trace.emit("Equal", exponent, trace.emit("Floor", exponent))
    trace.check(_any(trace, [
        trace.emit("GreaterEqual", base, zero), whole, _not_finite(trace, base),
        trace.emit("IsNan", exponent),
    ]), UnsupportedError(_COMPLEX))


def _check_zero_to_negative(trace: Trace, values: Sequence[Value], error: Exception) -> None:
    """Check that it is not zero to a negative power, -infinity left out: 0.0 ** -inf is inf."""
    zero = trace.builder.const(0.0)
    trace.check(_any(trace, [
        trace.emit("NotEqual", values[0], zero), trace.emit("GreaterEqual", values[1], zero),
        *[_not_finite(trace, v) for v in values if v.dtype.kind == "f"],
    ]), error)


def _check_finite(
    trace: Trace, values: Sequence[Value], result: Value, error: Exception, *others: Value
) -> None:
    """Check that finite operands give no infinity, unless one of the others holds."""
    finite = trace.emit("LogicalNot", trace.emit("IsInf", result))
    excused = [_not_finite(trace, v) for v in values if v.dtype.kind == "f"]
    trace.check(_any(trace, [finite, *excused, *others]), error)


def _not_finite(trace: Trace, value: Value) -> Value:
    return trace.emit("LogicalNot", trace.emit("IsFinite", value))


def _any(trace: Trace, conditions: Sequence[Value]) -> Value:
    first, *rest = conditions
    for condition in rest:
        first = trace.emit("LogicalOr", first, condition)
    return first


def exception_of(function: Callable[..., Any], *arguments: Any) -> Exception:
    """The exception that Python itself raises."""
    try:
        function(*arguments)
    except (ArithmeticError, ValueError, TypeError) as error:
        return error
    raise AssertionError(f"internal error: {function} of {arguments} has a value")
