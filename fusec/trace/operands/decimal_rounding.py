"""``round(x, digits)`` of a Python float: the double nearest to the nearest decimal, as Python's.

Method: ``x * 10**digits`` is the sum of the rounded product and an error that one fused
multiply-add gives exactly (T. J. Dekker, *A floating-point technique for extending the available
precision*, Numer. Math. 18, 1971).  The product's nearest integer is wrong only half way between
two, where the error's sign decides, and without one the even integer is taken.  Powers of ten are
exact up to ``10**22``, so that the division rounds once.
"""

from __future__ import annotations

import numpy as np

from fusec.ir import Value

from ..values.array import TracedArray
from ..values.trace import Trace
from .python_numbers import weak

F64 = np.dtype(np.float64)
MOST_DIGITS = 22
_WHOLE = 2.0**53  # where a product's doubles are further apart than integers, x stays itself


def rounded(trace: Trace, value: Value, digits: int) -> TracedArray:
    """The Python float ``value`` to ``digits`` digits after the point, from 0 to `MOST_DIGITS`."""
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

    def goes(step: float) -> Value:
        """Whether the product is half way to the next integer, and beyond that with its error."""
        sign = emit("Greater" if step > 0 else "Less", error, number(0.0))
        beyond = emit("LogicalAnd", emit("Equal", rest, number(step)), sign)
        is_tie = emit("LogicalAnd", emit("Equal", error, number(step)), is_odd)
        return emit("LogicalOr", beyond, is_tie)

    whole = _chosen(trace, goes(0.5), emit("Add", whole, number(1.0)),
                    _chosen(trace, goes(-0.5), emit("Sub", whole, number(1.0)), whole))
    has_digits = emit("Less", emit("Abs", product), number(_WHOLE))
    return TracedArray(trace, None, (), _chosen(
        trace, has_digits, emit("Div", whole, scale), value))


def _chosen(trace: Trace, test: Value, then: Value, other: Value) -> Value:
    found: Value = weak(trace, trace.emit("Where", test, then, other), F64)
    return found


__all__ = ["MOST_DIGITS", "rounded"]
