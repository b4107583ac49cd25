"""Python's operators by the names that hooks are called with."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

from fusec.core import log

from ..rewrite.transformer import Where

Operator = Callable[..., Any]
UNARY: dict[str, Operator] = {
    "neg": operator.neg, "pos": operator.pos, "invert": operator.invert,
}
BINARY: dict[str, Operator] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
    "matmul": operator.matmul, "lshift": operator.lshift, "rshift": operator.rshift,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}
IN_PLACE: dict[str, Operator] = {
    name: getattr(operator, "i" + name) for name in BINARY
}
COMPARISONS: dict[str, Operator] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "is": operator.is_, "is not": operator.is_not,
}
BINARY |= COMPARISONS
REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
CONVERSIONS: dict[int, Operator] = {
    -1: lambda v: v, ord("s"): str, ord("r"): repr, ord("a"): ascii,
}


def unary_of_bool(op: str, a: bool, where: Where) -> Any:
    """The operator on a bool; Python 3.12's warning of ``~True`` names the program's own line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = UNARY[op](a)
    for warning in caught:
        log.warn(warning.message, warning.category, where[0], where[1])
    return result
