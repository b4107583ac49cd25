"""Effects of ops on the numbers that loops count with, for estimates of how often these run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fusec.ir import Node, Value

from ..registry import get

# What may be computed of numbers that are known, before the loop has run.
ARITHMETIC: Mapping[str, Callable[..., float]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b if b else a, "Minimum": min, "Maximum": max,
    "Cast": lambda a: a, "BroadcastTo": lambda a: a,
}
# Comparisons of a counter with its end, and whether the last value that it takes is the end itself.
ENDS: Mapping[str, bool] = {
    "Less": False, "LessEqual": True, "Greater": False, "GreaterEqual": True}
# Comparisons at which a loop is left, and whether a counter goes on at its end.
BREAKS: Mapping[str, bool] = {
    "GreaterEqual": False, "Greater": True, "LessEqual": False, "Less": True, "Equal": False}
STEPS: Mapping[str, float] = {"Add": 1.0, "Sub": -1.0}  # how they move their first operand
# Of these a float is rounded once, and correctly; and what passes a product on to a sum.
ROUNDED_ONCE = frozenset((
    "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Sqrt", "Square", "Minimum", "Maximum", "Cast",
    "Where", "Floor", "Ceil", "Trunc", "BroadcastTo", "Pick", "Gather", "CheckIndex", "Squeeze"))
PASSING = frozenset(("Neg", "Cast", "BroadcastTo", "Squeeze", "ExpandDims"))
_AND = frozenset(("LogicalAnd", "BitAnd"))
_OR = frozenset(("LogicalOr", "BitOr"))
WAY_BACK = "back"  # the name of the bodies of loops that gradients made
TAPE = "(tape)"  # the name of what a loop carries that gradients made keep an entry a time
_WRITES = frozenset(("SliceUpdate", "Scatter"))


def is_and(node: Node) -> bool:
    """Whether it is true where its first two operands are."""
    if node.op == "Where":  # what Python's ``and`` becomes
        return known_truth(node.inputs[2]) is False
    return node.op in _AND


def is_or(node: Node) -> bool:
    """Whether it is true where any of its operands is."""
    return node.op in _OR


def known_truth(value: Value) -> bool | None:
    """Whether a number is true; None where it is computed."""
    while value.node.op == "Cast":
        value = value.node.inputs[0]
    return bool(value.node.attrs["value"]) if value.node.op == "Const" and not value.shape else None


def writes_part(node: Node) -> bool:
    """Whether it replaces a part of its first operand by its second."""
    return get(node.op).picks == "write" or node.op in _WRITES
