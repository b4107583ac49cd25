"""Quotients, powers and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..protocol import ZERO, declare
from ..terms import Number, Term, log, reciprocal, square, where


def _constant(x: Term) -> Any:
    """The number that a term is, if it is one."""
    number = x.value.node.attrs["value"] if x.value.node.op == "Const" else None
    return number if isinstance(number, int | float | complex | np.number) else None


def by_base(a: Term, b: Term, y: Term) -> Term | Number:
    """``b * a**(b - 1)``, and 0 for the exponent 0, whatever the base.

    So ``x**0`` has the derivative 0 at 0, where ``b * a**(b - 1)`` is 0 times infinity.  A negative
    base has it where its power is real: for integers.
    """
    number = _constant(b)
    if number is None:
        nothing = b.equals(0)
        return where(nothing, 0, b * a ** where(nothing, 1, b - 1))
    if number == 2:
        return 2 * a
    if number == 0.5:
        return _by_root(a, y)
    return 0 if number == 0 else b * a ** b.number(number - 1) if number != 1 else 1


def by_exponent(a: Term, b: Term, y: Term) -> Term:
    """``a**b * log(a)``, which is 0 for the base 0 and positive exponents; 0 for ``0**0``, too, as
    JAX has it.

    A negative base has none: powers near the exponent are not real, and the derivative is NaN.
    """
    nothing = a.equals(0)
    return where(nothing, 0, y * log(where(nothing, 1, a)))


def _by_side(x: Term, y: Term) -> Term:
    """``x / hypot``; 0 at the origin, one of the slopes there."""
    nothing = y.equals(0)
    return where(nothing, 0, x / where(nothing, 1, y))


def _by_root(x: Term, y: Term) -> Term:
    """``0.5 / y``: infinite at 0.

    Where the operand is a sum of squares the root is a norm, and at 0 has the derivative that norms
    have there: distances of points from themselves, and functions of them, stay numbers.
    """
    if x.dtype.kind == "c" or not _is_sum_of_squares(x.value, DEEPEST):
        return 0.5 / y
    nothing = y.equals(0)
    return where(nothing, 0, 0.5 / where(nothing, 1, y))


def _is_sum_of_squares(value: Value, depth: int) -> bool:
    """Whether a real value is a sum of squares with positive weights: nowhere negative, and where
    it is 0 so is the derivative of each summand."""
    node = value.node
    if not depth:
        return False
    if node.op == "Const":
        return value.dtype.kind == "f" and bool(node.attrs["value"] >= 0)
    if node.op in _SQUARES or (node.op == "Mul" and _are_one(*node.inputs)):
        return node.inputs[0].dtype.kind == "f" and _SQUARES.get(node.op, _always)(node)
    operands = [v for k, v in enumerate(node.inputs) if not _is_weight(node, k)]
    return node.op in _SUMS and len(operands) == _SUMS[node.op] and all(
        _is_sum_of_squares(v, depth - 1) for v in operands)


def _are_one(a: Value, b: Value) -> bool:
    """Whether they are one value, or the same element of one array."""
    one, other = a.node, b.node
    while one is not other and one.op == other.op in _PARTS and one.attrs == other.attrs:
        one, other = one.inputs[0].node, other.inputs[0].node
    return a.index == b.index and one is other


def _always(node: Node) -> bool:
    return True


def _is_even(node: Node) -> bool:
    exponent = node.inputs[1].node
    number: Any = exponent.attrs["value"] if exponent.op == "Const" else None
    return type(number) is not Symbolic and bool(number) and number > 0 and bool(number % 2 == 0)


def _is_dot_of_one(node: Node) -> bool:
    return _are_one(*node.inputs) and node.inputs[0].type.rank == 1


def _is_weight(node: Node, operand: int) -> bool:
    """Whether the operand is a positive constant by which a sum is multiplied or divided."""
    if node.op not in ("Mul", "Div") or (node.op, operand) == ("Div", 0):
        return False
    weight = node.inputs[operand].node
    number = weight.attrs["value"] if weight.op == "Const" else None
    return isinstance(number, int | float | np.number) and bool(getattr(number, "hint", number) > 0)


# Ops of squares, and of which nodes; ops that sums of squares go through, and how many of their
# operands are such.
_SQUARES: dict[str, Callable[[Node], bool]] = {
    "Square": _always, "Var": _always, "Pow": _is_even,
    "MatMul": _is_dot_of_one, "Dot": _is_dot_of_one}
_SUMS = {"Add": 2, "Sum": 1, "Mean": 1, "Mul": 1, "Div": 1, "Reshape": 1, "ExpandDims": 1,
         "Squeeze": 1, "BroadcastTo": 1, "Transpose": 1, "Slice": 1}
_PARTS = ("Slice", "Squeeze", "Reshape")  # of one operand, that attrs name
DEEPEST = 12  # sums in sums that are looked through


declare("Div", partials=(lambda a, b, y: reciprocal(b), lambda a, b, y: -y / b))
declare("FloorDiv", partials=ZERO)
declare("Mod", partials=(lambda a, b, y: 1, lambda a, b, y: -a.emit("FloorDiv", b)))
declare("Fmod", partials=(lambda a, b, y: 1, lambda a, b, y: ((y - a) / b).emit("Rint")))
declare("Pow", partials=(by_base, by_exponent))
declare("Square", partials=(lambda x, y: 2 * x,))
declare("Reciprocal", partials=(lambda x, y: -square(y),))
declare("Sqrt", partials=(_by_root,))
declare("Cbrt", partials=(lambda x, y: 1 / (3 * square(y)),))
declare("Hypot", partials=(lambda a, b, y: _by_side(a, y), lambda a, b, y: _by_side(b, y)))
declare("Fma", partials=(lambda a, b, c, y: b, lambda a, b, c, y: a, lambda a, b, c, y: 1))
