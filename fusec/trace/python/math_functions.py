"""Functions of ``math`` on traced numbers: Python floats in, Python numbers out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir import Value

from ..convert import in_python
from ..library.failures import numpys_answer
from ..objects.tracing_hooks import TracingHooks
from ..operands.operands import as_traced, cast
from ..operands.python_errors import check_integer, check_math, check_math_power
from ..operands.python_numbers import BOOL, check_number, index_of, scalar_of, weak
from ..ufuncs.ufunc_calls import call_ufunc
from ..values.array import TracedArray, from_value
from ..values.handlers import TABLE, when_called
from ..values.trace import Trace

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)


def _float_of(trace: Trace, x: Any) -> Value:
    """The argument as a Python float."""
    number = as_traced(trace, x)
    check_number(trace, number)
    value: Value = weak(trace, scalar_of(trace, number), F64)
    return value


def _math(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    """``math.sqrt(x)``: the ufunc on Python floats, giving a Python float."""
    @when_called(function)
    def call(hooks: TracingHooks, *args: Any) -> Any:
        trace = hooks.trace
        if len(args) != ufunc.nin:  # math.log(x, base), math.hypot(x, y, z)
            return numpys_answer(
                trace, f"math.{function.__name__} of {len(args)} numbers", function, args, {})
        numbers = [_float_of(trace, a) for a in args]
        if function is math.pow:  # np.power takes roots for powers of a half
            check_math_power(trace, numbers)
            result = trace.emit("Pow", *numbers)
        else:
            strong = [from_value(trace, cast(trace, x, F64)) for x in numbers]
            result = call_ufunc(trace, ufunc, "__call__", strong, {}).value
        check_math(trace, function, numbers, result)
        return TracedArray(trace, None, (), weak(trace, result, result.dtype))


def _math_row(function: Callable[..., Any], op: str) -> None:
    """``math.erf(x)`` and its like, which NumPy lacks: the row on a Python float."""
    @when_called(function)
    def call(hooks: TracingHooks, x: Any) -> TracedArray:
        trace, value = hooks.trace, _float_of(hooks.trace, x)
        if function is math.lgamma:  # infinite at both ends, where SciPy's has a sign
            infinite = trace.builder.const(math.inf)
            value = trace.emit("Where", trace.emit("IsInf", value), infinite, value,
                               kind=value.type.kind)
        result = trace.emit(op, value)
        check_math(trace, function, [value], result)
        return TracedArray(trace, None, (), result)


def _math_refused(function: Callable[..., Any]) -> None:
    @when_called(function)
    def call(hooks: TracingHooks, *args: Any, **kwargs: Any) -> Any:
        return numpys_answer(hooks.trace, f"math.{function.__name__}", function, args, kwargs)


def _rounded(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    """``math.floor`` and its like: a Python int."""
    @when_called(function)
    def call(hooks: TracingHooks, x: Any) -> Any:
        return rounded_number(hooks.trace, _float_of(hooks.trace, x), ufunc)


def rounded_number(trace: Trace, value: Any, ufunc: np.ufunc) -> TracedArray:
    """``math.floor(x)`` and its like: a Python int."""
    number = TracedArray(trace, None, (), value)
    rounded = call_ufunc(trace, ufunc, "__call__", (number,), {}, True)
    if rounded.dtype.kind == "f":
        check_integer(trace, rounded.value)
    return TracedArray(trace, None, (), weak(trace, rounded.value, I64))


def _of_ints(function: Callable[..., Any], ufunc: np.ufunc, neutral: int) -> None:
    """``math.gcd`` and ``math.lcm`` of any number of ints: a Python int."""
    @when_called(function)
    def call(hooks: TracingHooks, *args: Any) -> Any:
        trace = hooks.trace
        numbers = [_int_of(trace, a) for a in args]
        result = numbers[0] if len(numbers) > 1 else from_value(
            trace, cast(trace, trace.builder.const(neutral), I64))
        for number in numbers[1:] or numbers:
            result = call_ufunc(trace, ufunc, "__call__", (result, number), {})
        return TracedArray(trace, None, (), weak(trace, result.value, I64))


@when_called(math.prod)
def _prod(hooks: TracingHooks, items: Any, /, *, start: Any = 1) -> Any:
    return hooks.call(hooks.where, in_python.product, items, start)


def _int_of(trace: Trace, x: Any) -> TracedArray:
    """The argument as ``operator.index`` takes it, an int64."""
    return from_value(trace, cast(trace, index_of(trace, as_traced(trace, x)).value, I64))


@when_called(math.isclose)
def _isclose(
    hooks: TracingHooks, a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0
) -> TracedArray:
    """PEP 485: equal, or closer than the larger of the tolerances; infinities only if equal."""
    trace = hooks.trace
    x: Any
    y: Any
    rel: Any
    least: Any
    x, y, rel, least = (from_value(trace, cast(trace, _float_of(trace, v), F64))
                        for v in (a, b, rel_tol, abs_tol))
    for argument, tolerance in ((rel_tol, rel), (abs_tol, least)):
        error = ValueError("tolerances must be non-negative")
        if isinstance(argument, TracedArray):
            trace.check(trace.emit("LogicalNot", (tolerance < 0.0).value), error)
        elif argument < 0.0:
            raise trace.error(error)
    difference = abs(x - y)
    near = (difference <= abs(rel * y)) | (difference <= abs(rel * x)) | (difference <= least)
    either = (x == y) | (near & np.isfinite(x) & np.isfinite(y))
    return TracedArray(trace, None, (), weak(trace, either.value, BOOL))


def _parts(function: Callable[..., Any], ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> None:
    """``math.modf`` and ``math.frexp``: a pair of Python numbers."""
    @when_called(function)
    def call(hooks: TracingHooks, x: Any) -> Any:
        trace = hooks.trace
        strong = from_value(trace, cast(trace, _float_of(trace, x), F64))
        parts = call_ufunc(trace, ufunc, "__call__", (strong,), {})
        return tuple(TracedArray(trace, None, (), weak(trace, part.value, dtype))
                     for part, dtype in zip(parts, dtypes, strict=True))


for _name, _ufunc in {
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "hypot": np.hypot, "pow": np.power, "fabs": np.fabs, "fmod": np.fmod,
    "copysign": np.copysign, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "degrees": np.rad2deg, "radians": np.deg2rad, "cbrt": np.cbrt, "exp2": np.exp2,
}.items():
    _math(getattr(math, _name), _ufunc)
for _name, _op in {"erf": "Erf", "erfc": "Erfc", "lgamma": "Gammaln"}.items():
    _math_row(getattr(math, _name), _op)
for _function, _ufunc in ((math.floor, np.floor), (math.ceil, np.ceil), (math.trunc, np.trunc)):
    _rounded(_function, _ufunc)
_of_ints(math.gcd, np.gcd, 0)
_of_ints(math.lcm, np.lcm, 1)
_parts(math.modf, np.modf, (F64, F64))
_parts(math.frexp, np.frexp, (F64, I64))
for _function in vars(math).values():
    if callable(_function) and _function not in TABLE:
        _math_refused(_function)
