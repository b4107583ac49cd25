"""Exponentials, logarithms, trigonometric and hyperbolic functions, on reals and complex numbers.

Formulas: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 4.1 to 4.6; each in a form
that neither overflows nor cancels where the derivative itself does not.  Two are exact to rounding
of 1 and not of themselves, as everyone has them: of `Tanh` (and `Expit`), near their limits, where
the derivative is small.
"""

from __future__ import annotations

import math

from ..protocol import declare
from ..terms import Term, cos, cosh, exp, sin, sinh, sqrt, square

LN2, LN10 = math.log(2), math.log(10)


def _arcsin(x: Term, sign: int) -> Term:
    """Each root by itself: their product would lie on the other side of the cut.  On a cut the sign
    of a zero imaginary part says the side, which ``1 - x`` and ``1 + x`` would lose."""
    if x.dtype.kind != "c":
        return sign / (sqrt(1 - x) * sqrt(1 + x))
    return sign / (sqrt(-(x - 1)) * sqrt(x - -1))


def _arcsinh(x: Term, y: Term) -> Term:
    """The square of a large real number would overflow."""
    if x.dtype.kind == "c":
        return 1 / sqrt(square(x) - -1)
    return 1 / x.emit("Hypot", 1)


def _arctan2(y: Term, x: Term, result: Term, part: Term) -> Term:
    """``part / (x*x + y*y)``; NaN at the origin, where the angle has no derivative."""
    size = x.emit("Hypot", y)
    return part / size / size


declare("Exp", partials=(lambda x, y: y,))
declare("Exp2", partials=(lambda x, y: LN2 * y,))
declare("Expm1", partials=(lambda x, y: exp(x),))  # y + 1 is 0 where exp(x) is small
declare("Log", partials=(lambda x, y: 1 / x,))
declare("Log2", partials=(lambda x, y: (1 / LN2) / x,))
declare("Log10", partials=(lambda x, y: (1 / LN10) / x,))
declare("Log1p", partials=(lambda x, y: 1 / (1 + x),))
declare("Sin", partials=(lambda x, y: cos(x),))
declare("Cos", partials=(lambda x, y: -sin(x),))
declare("Tan", partials=(lambda x, y: 1 + square(y),))
declare("Arcsin", partials=(lambda x, y: _arcsin(x, 1),))
declare("Arccos", partials=(lambda x, y: _arcsin(x, -1),))
declare("Arctan", partials=(lambda x, y: 1 / (1 + square(x)),))
declare("Arctan2", partials=(lambda y, x, r: _arctan2(y, x, r, x),
                             lambda y, x, r: _arctan2(y, x, r, -y)))
declare("Sinh", partials=(lambda x, y: cosh(x),))
declare("Cosh", partials=(lambda x, y: sinh(x),))
declare("Tanh", partials=(lambda x, y: (1 - y) * (1 + y),))
declare("Arcsinh", partials=(_arcsinh,))
declare("Arccosh", partials=(lambda x, y: 1 / (sqrt(x - 1) * sqrt(x - -1)),))
declare("Arctanh", partials=(lambda x, y: 1 / ((1 - x) * (1 + x)),))
declare("Deg2rad", partials=(lambda x, y: math.pi / 180,))
declare("Rad2deg", partials=(lambda x, y: 180 / math.pi,))
