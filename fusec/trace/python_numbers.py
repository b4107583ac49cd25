"""Python numbers in a trace: what Python's operators give, and when Python must have the number.

A run-time Python int is an int64 in compiled code.  The values it can take are followed as
intervals: where Python's result might not fit into int64, or Python would raise (division by zero,
a negative shift), the int itself is needed, so the argument it comes from becomes static.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.types import RUN_TIME_INT

from . import this_numpy
from .array import TracedArray, is_index, not_an_index
from .context import Trace

Interval = tuple[int, int]
BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)
_WIDEST = (-(1 << 63), (1 << 63) - 1)
_ON_BITS = {np.bitwise_and, np.bitwise_or, np.bitwise_xor}
_COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_MONOTONE: dict[np.ufunc, Callable[..., int]] = {
    np.add: lambda a, b: a + b, np.subtract: lambda a, b: a - b, np.multiply: lambda a, b: a * b,
    np.negative: lambda a: -a, np.positive: lambda a: a, np.invert: lambda a: ~a,
}
_DIVISIONS = {np.divide, np.floor_divide, np.remainder}
_SHIFTS = {np.left_shift, np.right_shift}


def interval(trace: Trace, value: Value) -> Interval | None:
    """The values a Python int can take; None where nothing is known."""
    if not value.type.is_weak or value.dtype.kind not in "bi":
        return None
    if value.dtype == BOOL:
        return (0, 1)
    if value.node.op == "Const":
        return (value.node.attrs["value"],) * 2
    if value.node.op == "Input" and value.node.attrs["index"] >= 0:
        return RUN_TIME_INT
    return trace.intervals.get(value)


def operands(trace: Trace, ufunc: np.ufunc, values: Sequence[Value]) -> list[Value]:
    """Python numbers as Python's operator takes them: booleans are ints, but not for ``& | ^``."""
    if ufunc in _COMPARISONS or ufunc in _ON_BITS:
        return list(values)
    return [
        trace.emit("Cast", v, dtype=INT64, kind="weak") if v.dtype == BOOL else v for v in values
    ]


def result_interval(trace: Trace, ufunc: np.ufunc, values: Sequence[Value]) -> Interval | None:
    """What an operator on Python numbers can give.

    Raises `ConcreteValueError` where int64 arithmetic might differ from Python's.
    """
    if ufunc in _COMPARISONS:
        return None
    _check_width(trace, values)
    ranges = [interval(trace, v) for v in values]
    if ufunc in _DIVISIONS and ranges[1] is not None and ranges[1][0] <= 0 <= ranges[1][1]:
        _need(trace, values, "division by zero raises in Python")
    known = [r for r in ranges if r is not None]
    if len(known) < len(ranges):
        return None
    result = _result(ufunc, known)
    if result is None or result[0] < _WIDEST[0] or result[1] > _WIDEST[1]:
        _need(trace, values, "the result may not fit into 64 bits")
    return result


def _check_width(trace: Trace, values: Sequence[Value]) -> None:
    """Python ints of the run are int64: what they meet must be one too."""
    for value in values:
        number = value.node.attrs.get("value") if value.node.op == "Const" else None
        if type(number) is int and not _WIDEST[0] <= number <= _WIDEST[1] and any(
                v.node.op != "Const" for v in values):
            raise unsupported(
                f"computing with {number} and a Python int of the run, which has 64 bits",
                loc=trace.loc, cure="compute in np.uint64: h = np.uint64(0)")


def _result(ufunc: np.ufunc, ranges: list[Interval]) -> Interval | None:
    if ufunc in _MONOTONE:
        return _hull(_MONOTONE[ufunc], ranges)
    if ufunc is np.absolute:
        return (0, max(map(abs, ranges[0])))
    if ufunc in _ON_BITS:
        bits = max(abs(n).bit_length() for r in ranges for n in r)
        return (-(1 << bits), (1 << bits) - 1)
    if ufunc in _DIVISIONS:
        largest = max(abs(n) for r in ranges for n in r)
        return (-largest, largest)
    low, high = ranges[1]
    if ufunc in _SHIFTS:
        return _hull(int.__lshift__ if ufunc is np.left_shift else int.__rshift__, ranges) if (
            low >= 0 and high < 64) else None
    if ufunc is np.power and low == high and 0 <= low <= 64:
        largest = max(abs(n) for n in ranges[0]) ** low
        return (-largest, largest)
    return None


def _hull(function: Callable[..., int], ranges: list[Interval]) -> Interval:
    corners = [function(*point) for point in itertools.product(*ranges)]
    return (min(corners), max(corners))


def check_fits(trace: Trace, value: Value, dtype: np.dtype) -> None:
    """Python ints out of a dtype's range raise in NumPy: those of data when the code runs, those of
    arguments are needed now."""
    from .windows import from_ints

    if not value.type.is_weak or value.dtype != INT64 or dtype.kind not in "iu" or dtype == INT64:
        return
    found, info = interval(trace, value), np.iinfo(dtype)
    if found is not None and info.min <= found[0] and found[1] <= info.max:
        return
    if value.node.op != "Const" and (trace.in_region or not from_ints(value)):
        _check_range(trace, value, dtype)
    else:
        _need(trace, [value], f"NumPy raises OverflowError where it does not fit {dtype}")


def _check_range(trace: Trace, value: Value, dtype: np.dtype) -> None:
    """The compiled code looks at the number (and cannot say which it was)."""
    text = f"Python integer out of bounds for {dtype}"
    info = np.iinfo(dtype)
    holds = None
    for op, bound in (("GreaterEqual", info.min), ("LessEqual", info.max)):
        if not _WIDEST[0] <= int(bound) <= _WIDEST[1]:
            continue
        limit = trace.emit("Cast", trace.builder.const(int(bound)), dtype=INT64)
        fits = trace.emit(op, trace.emit("Cast", value, dtype=INT64), limit)
        holds = fits if holds is None else trace.emit("LogicalAnd", holds, fits)
    if holds is not None:
        trace.check(holds, OverflowError(text))


def _need(trace: Trace, values: Sequence[Value], why: str) -> None:
    """Raises for the first operand that is a run-time int; constants are no reason to."""
    for value in values:
        if value.node.op != "Const" and interval(trace, value) != (0, 1):
            TracedArray(trace, None, (), value).concrete(
                "an int", f"{why}: compute in NumPy's int64, e.g. np.int64(n)")


def misses_dtype(value: Value, dtype: np.dtype) -> Any:
    """-1 or 1 for a constant Python int below or above an integer dtype's range, else 0."""
    number = value.node.attrs.get("value") if value.node.op == "Const" else None
    if type(number) is not int or not value.type.is_weak or dtype.kind not in "iu":
        return 0
    info = np.iinfo(dtype)
    return -1 if number < info.min else int(number > info.max)


def weak(trace: Trace, value: Any, dtype: np.dtype) -> Any:
    """The value as a Python number of this dtype."""
    if value.dtype == dtype and value.type.is_weak:
        return value
    return trace.emit("Cast", value, dtype=dtype, kind="weak")


def index_of(trace: Trace, x: TracedArray) -> TracedArray:
    """What ``operator.index`` gives: a Python int."""
    if not is_index(x) and not (x.dtype == BOOL and x.type.is_weak):
        raise not_an_index(x)
    return TracedArray(trace, None, (), weak(trace, x.value, INT64))


def check_number(trace: Trace, x: TracedArray) -> None:
    """That Python's ``float``, ``int``, ``complex`` and `math` take it."""
    if x.ndim and not (this_numpy.TAKES_VECTORS and x.size == 1):
        raise trace.error(TypeError(this_numpy.NO_NUMBER), [x.value])


def scalar_of(trace: Trace, x: TracedArray) -> Any:
    """The number, of an array of one element too."""
    if not x.is_array:
        return x.value
    return trace.emit("Squeeze", x.value, axes=tuple(range(x.ndim)), kind="scalar")
