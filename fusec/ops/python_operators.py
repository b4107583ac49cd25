"""Python's operators by the names of ops."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir.types import BEYOND_64_BITS

_MOST_BITS = 4096  # of ints that are computed: values have 64, and a graph may ask for 2**40


def _check_bits(bits: int, text: str) -> None:
    """Raise ``OverflowError`` for an int of so many bits before it takes time and memory."""
    if bits > _MOST_BITS:
        raise OverflowError(f"a Python int of {bits} bits, {text}, {BEYOND_64_BITS}")


def _shifted(a: Any, b: Any) -> Any:
    if a and b > 0:
        _check_bits(int(a).bit_length() + b, f"{a} << {b}")
    return a << b


def _power(a: Any, b: Any) -> Any:
    """``a ** b``; of real numbers inf or nan where Python raises or has a complex number.

    Checks beside it raise, for ``math.pow`` something else.
    """
    if complex in (type(a), type(b)):
        return a ** b
    if isinstance(a, int) and isinstance(b, int) and b > 0:
        _check_bits((abs(a).bit_length() - 1) * b, f"{a} ** {b}")
    try:
        result = a ** b
    except (ZeroDivisionError, OverflowError):
        return float(np.float_power(a, b))
    return math.nan if type(result) is complex else result


# What Python does with Python numbers (weak values); other ops on them go through NumPy.
PYTHON_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": _power, "Neg": operator.neg,
    "Pos": operator.pos, "Abs": abs, "Less": operator.lt, "LessEqual": operator.le,
    "Greater": operator.gt, "GreaterEqual": operator.ge, "Equal": operator.eq,
    "NotEqual": operator.ne, "BitAnd": operator.and_, "BitOr": operator.or_,
    "BitXor": operator.xor, "Invert": operator.invert, "ShiftLeft": _shifted,
    "ShiftRight": operator.rshift, "LogicalNot": operator.not_, "Square": lambda x: x * x,
}
