"""arctan, arctan2, arcsin, arccos: one quotient or root, one polynomial, one added angle.

Sources: Cody & Waite (1980), chapters 10 and 11, for the reductions; Muller, "Elementary
Functions", chapter 11.  Quotients, roots and angles are pairs, so the last sum alone rounds.
"""

from __future__ import annotations

import math

from ..builder import MathBuilder, MathValue
from ..double_double import Pair, fast_two_sum, quotient, two_sum
from ..registry import function, table

TAN_EIGHTH = math.sqrt(2.0) - 1.0  # tan(pi/8)


def eighths(b: MathBuilder, m: MathValue) -> Pair:
    """``m*pi/4`` as a pair, for a small integer ``m``."""
    high, low = table(b, "pio4")
    whole = m * high
    return whole, b.fma(m, low, b.fma(m, high, -whole))


def add_series(b: MathBuilder, angle: Pair, t: Pair, z: MathValue, name: str) -> MathValue:
    """``angle + (t + t**3*q(z))``, where the angle is 0 or larger than ``t``."""
    total, error = fast_two_sum(angle[0], t[0])
    series = b.fma(t[0] * z, b.polynomial(z, table(b, name)), t[1] + angle[1])
    return total + (error + series)


def select_pair(b: MathBuilder, mask: MathValue, yes: Pair, no: Pair) -> Pair:
    return b.select(mask, yes[0], no[0]), b.select(mask, yes[1], no[1])


@function("arctan", 1.0, 1.0)
def arctan(b: MathBuilder, x: MathValue) -> MathValue:
    """``atan(a) = pi/4 + atan((a - 1)/(a + 1))`` or ``pi/2 + atan(-1/a)``."""
    size, one, zero = b.fabs(x), b.const(1.0), b.const(0.0)
    middle, large = size > TAN_EIGHTH, size > 1.0 / TAN_EIGHTH
    top = select_pair(b, middle, two_sum(size, -one), (size, zero))
    bottom = select_pair(b, middle, two_sum(size, one), (one, zero))
    top = select_pair(b, large, (-one, zero), top)
    bottom = select_pair(b, large, (b.minimum(2.0**100, size), zero), bottom)
    t = quotient(b, top, bottom)
    m = b.select(large, 2.0, b.select(middle, 1.0, 0.0))
    return b.copysign(add_series(b, eighths(b, m), t, t[0] * t[0], "arctan"), x)


# (scale down beyond; scale up below; by): sums, reciprocals and remainders stay in range
ARCTAN2_SCALES = {"f64": (2.0**1010, 2.0**500, 2.0**200), "f32": (2.0**114, 2.0**40, 2.0**70)}


def ordered(b: MathBuilder, a: MathValue, c: MathValue) -> tuple[MathValue, MathValue, MathValue]:
    """``(small, large, a > c)``, scaled alike; 0/0 becomes 0/1 and inf/inf 1/1."""
    swap = a > c
    small, large = b.select(swap, c, a), b.select(swap, a, c)
    top, bottom, up = ARCTAN2_SCALES[b.fmt.name]
    scale = b.select(large > top, 2.0**-10, b.select(large < bottom, up, 1.0))
    infinite = large.equals(math.inf)
    at_infinity = b.select(small.equals(math.inf), 1.0, 0.0)
    small = b.select(infinite, at_infinity, small * scale)
    plain = b.select(large.equals(0.0), 1.0, large * scale)
    return small, b.select(infinite, 1.0, plain), swap


@function("arctan2", 1.0, 1.0, arity=2)
def arctan2(b: MathBuilder, y: MathValue, x: MathValue) -> MathValue:
    """``m*pi/4 + s*atan(t)``, ``|t| <= tan(pi/8)``: each exchange mirrors the angle."""
    small, large, swap = ordered(b, b.fabs(y), b.fabs(x))
    middle = small > TAN_EIGHTH * large
    zero = b.const(0.0)
    top = select_pair(b, middle, two_sum(small, -large), (small, zero))
    bottom = select_pair(b, middle, two_sum(large, small), (large, zero))
    t = quotient(b, top, bottom)
    behind = b.to_bits(x) < 0
    m = b.select(middle, 1.0, 0.0)
    m = b.select(swap, 2.0 - m, m)
    m = b.select(behind, 4.0 - m, m)
    one = b.const(1.0)
    s = b.select(swap, -one, one)
    s = b.select(behind, -s, s)
    t = (t[0] * s, t[1] * s)
    result = add_series(b, eighths(b, m), t, t[0] * t[0], "arctan")
    return b.select(x.unordered(y), x + y, b.copysign(result, y))


def root_or_self(b: MathBuilder, x: MathValue) -> tuple[MathValue, Pair, MathValue]:
    """``z, s, large``: ``z = s*s`` is ``x*x``, or ``(1 - |x|)/2`` where ``|x| > 1/2``."""
    size = b.fabs(x)
    large = size > 0.5
    z = b.select(large, 0.5 - 0.5 * size, size * size)
    root = b.sqrt(z)
    fix = b.fma(-root, root, z) * b.divided(0.5, root)
    fix = b.select(root > 0.0, fix, 0.0)
    return z, (b.select(large, root, size), b.select(large, fix, 0.0)), large


@function("arcsin", 1.0, 1.0)
def arcsin(b: MathBuilder, x: MathValue) -> MathValue:
    """``asin(a) = pi/2 - 2*asin(sqrt((1 - a)/2))`` above one half."""
    z, s, large = root_or_self(b, x)
    t = select_pair(b, large, (-2.0 * s[0], -2.0 * s[1]), s)
    m = b.select(large, 2.0, 0.0)
    y = b.copysign(add_series(b, eighths(b, m), t, z, "arcsin"), x)
    return b.select(b.fabs(x) > 1.0, math.nan, y)


@function("arccos", 1.0, 1.0)
def arccos(b: MathBuilder, x: MathValue) -> MathValue:
    """``pi/2 - asin(x)``, ``2*asin(s)`` above one half, ``pi - 2*asin(s)`` below minus that."""
    z, s, large = root_or_self(b, x)
    twice = (b.copysign(2.0 * s[0], x), b.copysign(2.0, x) * s[1])
    t = select_pair(b, large, twice, (-x, b.const(0.0)))
    m = b.select(large, b.select(x < 0.0, 4.0, 0.0), 2.0)
    y = add_series(b, eighths(b, m), t, z, "arcsin")
    return b.select(b.fabs(x) > 1.0, math.nan, y)
