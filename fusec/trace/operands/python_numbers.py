"""Python numbers in a trace: results of Python's operators, and when Python must have the number.

A run-time Python int is an int64 in compiled code.  The values it can take are tracked as
intervals.  Where Python's result might not fit into int64, or Python would raise (division by zero,
a negative shift), the argument that the int comes from becomes static.  An int that the run itself
computes (in loops, or by ``int()``) is checked at run time instead: see `overflow`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied
from fusec.ir.types import BEYOND_64_BITS, RUN_TIME_INT
from fusec.ops import get
from fusec.ops.rows.sizes import SIZE_ARITHMETIC

from ..facts import this_numpy
from ..facts.refusals import is_index, not_an_index
from ..values.array import TracedArray
from ..values.trace import Trace

Interval = tuple[int, int]
TEXT = f"a Python int that the run computes {BEYOND_64_BITS}"
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
_GROWING = {np.add, np.subtract, np.multiply, np.negative, np.absolute, np.floor_divide,
            np.left_shift, np.power}  # whose results need more bits than their operands


# The interval of an int that a loop changes in steps of at most `STEP` from at most `START`: to
# leave it takes 2**53 iterations, which is months.
SLOW: Interval = (-(1 << 62), 1 << 62)
STEP, START = 1 << 8, 1 << 61


class Intervals(dict[Value, tuple[int, int]]):
    """Of a trace: the intervals of Python ints that the run computes."""


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
    if value not in trace.part(Intervals) and value.node.op == "Cast":
        source = value.node.inputs[0].dtype
        if source.kind in "iu" and source.itemsize < 8:
            return int(np.iinfo(source).min), int(np.iinfo(source).max)
    return trace.part(Intervals).get(value)


def is_slow(bounds: Interval | None) -> bool:
    """Whether a loop that starts within these bounds stays in `SLOW` with small steps."""
    return bounds is not None and (bounds is SLOW or -START <= bounds[0] <= bounds[1] <= START)


def hull(intervals: Sequence[Interval | None]) -> Interval | None:
    """An interval that contains all of these; None if one is unknown."""
    finite = [bounds for bounds in intervals if bounds is not None]
    if len(finite) < len(intervals):
        return None
    if any(bounds is SLOW for bounds in finite):
        return SLOW if all(map(is_slow, finite)) else None
    return min(b[0] for b in finite), max(b[1] for b in finite)


def operands(trace: Trace, ufunc: np.ufunc, values: Sequence[Value]) -> list[Value]:
    """Operands converted as Python's operator does: booleans to ints, except for ``& | ^``."""
    if ufunc in _COMPARISONS or ufunc in _ON_BITS:
        return list(values)
    return [
        trace.emit("Cast", v, dtype=INT64, kind="weak") if v.dtype == BOOL else v for v in values
    ]


def result_interval(
    trace: Trace, ufunc: np.ufunc, values: Sequence[Value]
) -> tuple[Interval | None, bool]:
    """The interval of the operator's result, and whether overflow must be checked at run time.

    Raises `ConcreteValueError` where int64 arithmetic might differ from Python's, and making an
    argument static avoids that.
    """
    if ufunc in _COMPARISONS:
        return None, False
    _check_width(trace, values)
    ranges = [interval(trace, v) for v in values]
    of_run = trace.in_region or any(r is None or r is SLOW for r in ranges)
    divisor = ranges[1] if ufunc in _DIVISIONS else None
    if divisor is not None and divisor is not SLOW and divisor[0] <= 0 <= divisor[1]:
        _need(trace, values[1:], "division by zero raises in Python")
    if any(v.dtype.kind not in "bi" for v in values) or ufunc is np.divide:
        return None, False
    result = _slow_step(ufunc, ranges) or _result(ufunc, [r or _WIDEST for r in ranges])
    if result is not None and _WIDEST[0] <= result[0] and result[1] <= _WIDEST[1]:
        return result, False
    if not of_run:
        _need(trace, values, "the result may not fit into 64 bits")
    return None, ufunc in _GROWING


def _slow_step(ufunc: np.ufunc, ranges: Sequence[Interval | None]) -> Interval | None:
    """`SLOW` for a small step from a value in `SLOW`, else None."""
    if ufunc not in (np.add, np.subtract) or SLOW not in ranges:
        return None
    first, second = ranges if ranges[0] is SLOW else ranges[::-1]
    is_step = second is not None and -STEP <= second[0] <= second[1] <= STEP
    return SLOW if first is SLOW and is_step and (
        ufunc is np.add or ranges[0] is SLOW) else None


def _check_width(trace: Trace, values: Sequence[Value]) -> None:
    """Refuse constants beyond int64 beside Python ints of the run, which are int64."""
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
        return _result_of_bits(ufunc, ranges)
    low, high = ranges[1]
    if ufunc is np.remainder:
        return (min(low + 1, 0), max(high - 1, 0))
    if ufunc is np.floor_divide:
        if low > 0:
            return _hull(operator.floordiv, ranges)
        largest = max(map(abs, ranges[0]))
        return (-largest, largest)
    if ufunc in _SHIFTS:
        if low >= 0 and high < 64:
            return _hull(operator.lshift if ufunc is np.left_shift else operator.rshift, ranges)
        shifted = ranges[0]  # to the right it moves towards 0 or -1
        return (min(shifted[0], 0), max(shifted[1], -1)) if ufunc is np.right_shift else None
    if ufunc is np.power and low == high and 0 <= low <= 64:
        largest = max(abs(n) for n in ranges[0]) ** low
        return (-largest if low % 2 else 0, largest)
    return None


def _result_of_bits(ufunc: np.ufunc, ranges: list[Interval]) -> Interval:
    """A mask that is not negative bounds ``a & b``; other signs come from the operands'."""
    known = [r for r in ranges if type(r[0]) is int and type(r[1]) is int and r[0] >= 0]
    if ufunc is np.bitwise_and and known:
        return 0, min(high for _, high in known)
    bits = max(_bits(n) for r in ranges for n in r)
    return 0 if len(known) == len(ranges) else -(1 << bits), (1 << bits) - 1


def _bits(number: Any) -> int:
    """How many bits the number has; of one that follows from sizes, how many it can have."""
    return 62 if type(number) is Symbolic else abs(number).bit_length()


def _hull(function: Callable[..., int], ranges: list[Interval]) -> Interval:
    corners = [function(*point) for point in itertools.product(*ranges)]
    return (applied(min, *corners), applied(max, *corners))


def check_fits(trace: Trace, value: Value, dtype: np.dtype) -> None:
    """Where a Python int may be out of the dtype's range, NumPy raises: compiled code checks an int
    that the run computes; an argument's becomes static, to be checked now."""

    if not value.type.is_weak or value.dtype != INT64 or dtype.kind not in "iu" or dtype == INT64:
        return
    bounds, info = interval(trace, value), np.iinfo(dtype)
    if bounds is not None and info.min <= bounds[0] and bounds[1] <= info.max:
        return
    if value.node.op != "Const" and (trace.in_region or not from_ints(value)):
        _check_range(trace, value, dtype)
    else:
        _need(trace, [value], f"NumPy raises OverflowError where it does not fit {dtype}")


def _check_range(trace: Trace, value: Value, dtype: np.dtype) -> None:
    """A check at run time, whose message cannot name the number."""
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
    """Raise for the first operand that is computed of int arguments: its value is needed now.

    One that the run computes of data is checked when it runs.
    """
    for value in values:
        if value.node.op != "Const" and interval(trace, value) != (0, 1) and from_ints(value):
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


def check_signed(trace: Trace, value: Value, error: Exception) -> None:
    """Check at run time that an unsigned integer fits into int64."""
    if value.dtype == np.uint64:
        limit = trace.builder.const(np.uint64(2**63))
        trace.check(trace.emit("Less", value, limit), error)


def index_of(trace: Trace, x: TracedArray, error: Exception | None = None) -> TracedArray:
    """``operator.index(x)``, a Python int; ``error`` is raised at run time beyond 64 bits."""
    if not is_index(x) and not is_truth(x):
        raise not_an_index(x)
    check_signed(trace, x.value, error or OverflowError(TEXT))
    return TracedArray(trace, None, (), weak(trace, x.value, INT64))


def is_truth(x: TracedArray) -> bool:
    """Whether it is a bool of Python's, which is an index of lists."""
    return bool(x.dtype == BOOL and x.type.is_weak)


def check_number(trace: Trace, x: TracedArray) -> None:
    """Raise unless Python's ``float``, ``int``, ``complex`` and `math` accept it."""
    if x.ndim and not (this_numpy.TAKES_VECTORS and x.size == 1):
        raise trace.error(TypeError(this_numpy.NO_NUMBER), [x.value])


def scalar_of(trace: Trace, x: TracedArray) -> Any:
    """The value as a scalar; an array must have one element."""
    if not x.is_array:
        return x.value
    return trace.emit("Squeeze", x.value, axes=tuple(range(x.ndim)), kind="scalar")


def from_ints(value: Value) -> bool:
    """Whether a value is computed of Python ints among the arguments, which can become static."""
    stack, visited = [value], {value}
    while stack:
        current = stack.pop()
        node = current.node
        if node.op == "Input" and not (current.type.is_weak and node.attrs["index"] >= 0):
            return False
        if node.op not in SIZE_ARITHMETIC and not get(node.op).is_given:
            return False
        stack += [v for v in node.inputs if v not in visited]
        visited.update(node.inputs)
    return True
