"""Unevaluated sums of two floats (about twice the precision): the error-free transformations.

Sources: Dekker, "A floating-point technique for extending the available precision" (1971);
Knuth, TAOCP 2, 4.2.2; Muller et al., "Handbook of Floating-Point Arithmetic", chapter 4.
"""

from __future__ import annotations

from .builder import MathBuilder, MathValue, Operand

Pair = tuple[MathValue, MathValue]


def fast_two_sum(a: MathValue, b: MathValue) -> Pair:
    """``a + b`` exactly, for ``|a| >= |b|`` or ``a`` a multiple of the last place of ``b``."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: MathValue, b: MathValue) -> Pair:
    """``a + b`` exactly, in any order of magnitude."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(b: MathBuilder, x: MathValue, y: Operand) -> Pair:
    """``x * y`` exactly (barring underflow of the low part)."""
    high = x * y
    return high, b.fma(x, y, -high)


def multiply(b: MathBuilder, x: Pair, y: Pair) -> Pair:
    """The product of two pairs, to about twice the precision; the parts may overlap by a bit."""
    high, low = two_product(b, x[0], y[0])
    return high, b.fma(x[0], y[1], b.fma(x[1], y[0], low))


def quotient(b: MathBuilder, x: Pair, y: Pair) -> Pair:
    """``x / y`` as a pair, with one division: a reciprocal and the remainder's correction."""
    inverse = b.divided(1.0, y[0])
    high = x[0] * inverse
    rest = b.fma(-high, y[0], x[0]) + (x[1] - high * y[1])
    return high, rest * inverse
