"""Quotients, powers and roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from .protocol import ZERO, declare
from .terms import Number, Term, log, reciprocal, square, where


def _constant(x: Term) -> Any:
    """The number that a term is, if it is one."""
    number = x.value.node.attrs["value"] if x.value.node.op == "Const" else None
    return number if isinstance(number, int | float | complex | np.number) else None


def _by_base(a: Term, b: Term, y: Term) -> Term | Number:
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
    return 0 if number == 0 else b * a ** b.number(number - 1) if number != 1 else 1


def _by_exponent(a: Term, b: Term, y: Term) -> Term:
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


declare("Div", partials=(lambda a, b, y: reciprocal(b), lambda a, b, y: -y / b))
declare("FloorDiv", partials=ZERO)
declare("Mod", partials=(lambda a, b, y: 1, lambda a, b, y: -a.emit("FloorDiv", b)))
declare("Fmod", partials=(lambda a, b, y: 1, lambda a, b, y: ((y - a) / b).emit("Rint")))
declare("Pow", partials=(_by_base, _by_exponent))
declare("Square", partials=(lambda x, y: 2 * x,))
declare("Reciprocal", partials=(lambda x, y: -square(y),))
declare("Sqrt", partials=(lambda x, y: 0.5 / y,))
declare("Cbrt", partials=(lambda x, y: 1 / (3 * square(y)),))
declare("Hypot", partials=(lambda a, b, y: _by_side(a, y), lambda a, b, y: _by_side(b, y)))
declare("Fma", partials=(lambda a, b, c, y: b, lambda a, b, c, y: a, lambda a, b, c, y: 1))
