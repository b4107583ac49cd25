"""Overflow checks: Python ints that the run computes have 64 bits in compiled code, others raise.

The condition is computed from the operands and the wrapped result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Node, Value

from ..values.trace import Trace
from .python_numbers import INT64, TEXT, interval

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1


@dataclass
class OverflowChecks:
    """Of a trace: the number of its overflow checks."""

    count: int = 0


def check_overflow(trace: Trace, ufunc: np.ufunc, values: Sequence[Value], result: Value) -> None:
    """Check at run time that int64 arithmetic gives Python's result; else `OverflowError`."""
    if result.dtype == INT64 and result.type.is_weak:
        trace.part(OverflowChecks).count += 1
        trace.check(_fits(trace, ufunc, values, result), OverflowError(TEXT))


def is_overflow_check(node: Node) -> bool:
    described = node.attrs["error"] if node.op == "Check" else None
    return described is not None and TEXT in described[1]


def _fits(trace: Trace, ufunc: np.ufunc, values: Sequence[Value], result: Value) -> Value:
    a, b = values[0], values[-1]
    if ufunc in (np.negative, np.absolute):
        return _compare(trace, "NotEqual", a, LEAST)
    if ufunc in (np.add, np.subtract):
        return _sum_fits(trace, ufunc, a, b, result)
    if ufunc is np.multiply:
        return _product_fits(trace, a, b, result)
    if ufunc is np.floor_divide:
        return _or(trace, _compare(trace, "NotEqual", a, LEAST),
                   _compare(trace, "NotEqual", b, -1))
    if ufunc is np.left_shift:
        back = trace.emit("Equal", trace.emit("ShiftRight", result, b), a)
        inside = _and(trace, back, _compare(trace, "Less", b, 64))
        return _or(trace, inside, _compare(trace, "Equal", a, 0))
    assert ufunc is np.power
    return _between(trace, a, *_bases(b.node.attrs["value"]))


def _sum_fits(trace: Trace, ufunc: np.ufunc, a: Value, b: Value, result: Value) -> Value:
    """Where the sign of ``b`` is known, the result must have moved that way; else the signs of
    operands and result decide."""
    bounds = interval(trace, b)
    if bounds is not None and (bounds[0] >= 0 or bounds[1] <= 0):
        grows = (bounds[0] >= 0) == (ufunc is np.add)
        return trace.emit("GreaterEqual" if grows else "LessEqual", result, a)
    changed = trace.emit("BitXor", a, result)
    operand_sign = trace.emit("BitXor", *((b, result) if ufunc is np.add else (a, b)))
    return _compare(trace, "GreaterEqual", trace.emit("BitAnd", changed, operand_sign), 0)


def _product_fits(trace: Trace, a: Value, b: Value, result: Value) -> Value:
    """A wrapped product is a multiple of 2**64 off, which is far more than the error of the float
    product."""
    for value, other in ((a, b), (b, a)):
        factor = value.node.attrs["value"] if value.node.op == "Const" else 0
        if factor:
            ends = sorted((_towards_zero(LEAST, factor), _towards_zero(LARGEST, factor)))
            return _between(trace, other, *ends)
    exact, x, y = (trace.emit("Cast", v, dtype=np.dtype(np.float64)) for v in (result, a, b))
    error = trace.emit("Abs", trace.emit("Sub", exact, trace.emit("Mul", x, y)))
    return trace.emit("Less", error, trace.builder.const(np.float64(2.0**62)))


def _towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _bases(exponent: int) -> tuple[int, int]:
    """The least and the largest base whose power fits."""
    low, high = 0, 1 << 32
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**exponent <= LARGEST else (low, middle)
    is_odd = exponent % 2 == 1
    return (-low - 1 if is_odd and (-low - 1) ** exponent >= LEAST else -low), low


def _between(trace: Trace, value: Value, low: int, high: int) -> Value:
    low, high = max(low, LEAST), min(high, LARGEST)
    return _and(trace, _compare(trace, "GreaterEqual", value, low),
                _compare(trace, "LessEqual", value, high))


def _compare(trace: Trace, op: str, value: Value, bound: int) -> Value:
    return trace.emit(op, value, trace.builder.const(bound))


def _and(trace: Trace, a: Value, b: Value) -> Value:
    return trace.emit("LogicalAnd", a, b)


def _or(trace: Trace, a: Value, b: Value) -> Value:
    return trace.emit("LogicalOr", a, b)
