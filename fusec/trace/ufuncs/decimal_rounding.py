"""``round(x, digits)`` of a Python float: the double nearest to the nearest decimal, as Python's.

Method: ``x * 10**digits`` is the sum of the rounded product and an error that one fused
multiply-add gives exactly (T. J. Dekker, *A floating-point technique for extending the available
precision*, Numer. Math. 18, 1971).  The product's nearest integer is wrong only half way between
two integers: there the error's sign decides, and where the error is 0 the even one is taken.
Powers of ten are exact up to ``10**22``, so that the division rounds once.
"""

from __future__ import annotations

import numpy as np

from fusec.ir import Value

from ..operands.python_numbers import weak
from ..values.array import TracedArray
from ..values.trace import Trace

F64 = np.dtype(np.float64)
MOST_DIGITS = 22
_WHOLE = 2.0**53  # from here on doubles have no fraction: x stays itself


def rounded(trace: Trace, value: Value, digits: int) -> TracedArray:
    """The Python float ``value`` rounded to ``digits`` decimals, from 0 to `MOST_DIGITS`."""
    def number(x: float) -> Value:
        return trace.builder.const(x)

    def emit(op: str, *inputs: Value) -> Value:
        return trace.emit(op, *inputs)

    scale = number(10.0**digits)
    product = emit("Fma", value, scale, number(-0.0))  # no `Mul`, which could be contracted
    error = emit("Fma", value, scale, emit("Neg", product))
    whole = emit("Rint", product)
    rest = emit("Sub", product, whole)
    half = emit("Mul", whole, number(0.5))
    is_odd = emit("NotEqual", half, emit("Floor", half))

    def rounds_away(step: float) -> Value:
        """Whether the product, with its error, rounds to the next integer in this direction."""
        sign = emit("Greater" if step > 0 else "Less", error, number(0.0))
        beyond = emit("LogicalAnd", emit("Equal", rest, number(step)), sign)
        is_tie = emit("LogicalAnd", emit("Equal", error, number(step)), is_odd)
        return emit("LogicalOr", beyond, is_tie)

    whole = _where(trace, rounds_away(0.5), emit("Add", whole, number(1.0)),
                    _where(trace, rounds_away(-0.5), emit("Sub", whole, number(1.0)), whole))
    has_digits = emit("Less", emit("Abs", product), number(_WHOLE))
    return TracedArray(trace, None, (), _where(
        trace, has_digits, emit("Div", whole, scale), value))


def _where(trace: Trace, test: Value, then: Value, orelse: Value) -> Value:
    result: Value = weak(trace, trace.emit("Where", test, then, orelse), F64)
    return result
