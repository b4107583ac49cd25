"""pow, cbrt, hypot, and sqrt (one correctly rounded instruction).

``x**y = exp(y*log|x|)`` with the logarithm and the product carried as pairs: a relative error
``e`` of the logarithm becomes ``|y*log x|*e <= 745*e`` of the result (Muller, "Elementary
Functions", 11.4; FDLIBM's ``e_pow.c`` for the list of special cases, C99 F.9.4.4).
"""

from __future__ import annotations

import math

from ..builder import F32, MathBuilder, MathValue
from ..double_double import Pair, fast_two_sum, two_product
from ..registry import function, table
from .exponential import EXP_RANGE, clamp
from .logarithm import decompose, log_pair

# |log x| >= 2**-53 (2**-24) unless x is 1, so that beyond this every power has over- or underflown.
HUGE_POWER = {"f64": 2.0**66, "f32": 2.0**33}


@function("sqrt", 0.5, 0.5)
def sqrt(b: MathBuilder, x: MathValue) -> MathValue:
    return b.sqrt(x)


def exp_of_product(b: MathBuilder, y: MathValue, log: Pair) -> MathValue:
    """``exp(y*(log[0] + log[1]))`` for finite operands."""
    high, low = two_product(b, y, log[0])
    low = b.fma(y, log[1], low)
    bottom, top = EXP_RANGE[b.fmt.name]
    limited = clamp(b, high, bottom, top)
    low = b.select(limited.equals(high), low, 0.0)
    ln2_high, ln2_low = table(b, "ln2")
    k, _ = b.rounded(limited, table(b, "log2e")[0])
    r = b.fma(-k, ln2_high, limited)
    rest = b.fma(-k, ln2_low, low)
    if b.fmt is F32:
        return rounded_once(b, exp_exact(b, r, rest), k)
    whole = r + rest
    series = b.polynomial(whole, (0.5, *table(b, "exp")))
    square = b.fma(whole * whole, series, rest)
    return b.scale(1.0 + (r + square), k)


def exp_exact(b: MathBuilder, r: MathValue, c: MathValue) -> Pair:
    """``exp(r + c)`` for a reduced argument of float32, as a pair good to 2**-28: what the square
    and the argument lose is kept."""
    t, t_low = fast_two_sum(r, c)
    square, square_low = two_product(b, t, 0.5 * t)
    twice = tuple(2.0 * coefficient for coefficient in table(b, "exp"))
    series = b.fma(t * square, b.polynomial(t, twice), square_low)
    lead, lead_low = fast_two_sum(b.const(1.0), t)
    return lead, (square + (b.fma(t_low, t, series) + t_low)) + lead_low


def rounded_once(b: MathBuilder, p: Pair, k: MathValue) -> MathValue:
    """``(p[0] + p[1])*2**k`` for a pair near 1, rounded once where it is subnormal, too."""
    bottom = 1.0 - b.fmt.bias

    def subnormal() -> MathValue:
        """Rounded at the last place of a number in whose binade all sums with the pair are."""
        base = b.fma(1.25, b.power_of_two(bottom - k), -0.75)
        high, low = fast_two_sum(base, p[0])
        return (high + (low + p[1])) - base

    return b.scale(b.rarely(k < bottom + 0.5, p[0] + p[1], subnormal), k)


def pow_special(b: MathBuilder, x: MathValue, y: MathValue, size: MathValue) -> MathValue:
    """The signed result, from ``size = |x|**y`` for ordinary ``|x|``; NumPy's special cases.

    One select after the other: combining masks of wide vectors costs more than selecting.
    """
    magnitude, negative = b.fabs(x), y < 0.0
    fraction = b.trunc(y).differs(y)
    size = b.select(fraction, b.select(x < 0.0, math.nan, size), size)
    size = b.select(magnitude.equals(0.0), b.select(negative, math.inf, 0.0), size)
    size = b.select(magnitude.equals(math.inf), b.select(negative, 0.0, math.inf), size)
    odd = b.fabs(y - 2.0 * b.trunc(0.5 * y)).equals(1.0)  # inf - inf is not 1 either
    signed = b.select(odd, b.copysign(size, x), size)
    signed = b.select(x.unordered(y), x + y, signed)
    return b.select(x.equals(1.0), 1.0, b.select(y.equals(0.0), 1.0, signed))


def is_ordinary(b: MathBuilder, x: MathValue) -> MathValue:
    """Whether ``0 < x < inf``: one comparison of integers."""
    lowest = 1 << (b.fmt.bits - 1)
    return (b.to_bits(x) + (lowest - 1)) < (b.fmt.encode(math.inf) - 1 - lowest)


@function("pow", 1.2, 0.6, arity=2)
def pow(b: MathBuilder, x: MathValue, y: MathValue) -> MathValue:
    log, limit = log_pair(b, *decompose(b, b.fabs(x))), HUGE_POWER[b.fmt.name]
    size = exp_of_product(b, clamp(b, y, -limit, limit), log)
    return b.rarely(~is_ordinary(b, x) | y.unordered(y), size,
                    lambda: pow_special(b, x, y, size))


@function("cbrt", 0.6, 0.6)
def cbrt(b: MathBuilder, x: MathValue) -> MathValue:
    """``x = m * 2**(3*q)``: a polynomial for ``m**(-1/3)``, one step of order four, one fix.

    The step is the binomial series of ``(1 - e)**(-1/3)`` with ``e = 1 - m*y**3``; the fix is a
    Newton step of ``c**3 = m`` whose remainder is worked to twice the precision.
    """
    size = b.fabs(x)
    f, k = decompose(b, size)
    third, _ = b.rounded(k, 1.0 / 3.0)
    rest = k - 3.0 * third
    m = (1.0 + f) * b.power_of_two(rest)
    root = 2.0 ** (1.0 / 3.0)
    guess = b.select(rest > 0.5, 1.0 / root, b.select(rest < -0.5, root, 1.0))
    y = guess * b.polynomial(f, table(b, "inverse_cbrt"))
    e = b.fma(-(m * y), y * y, 1.0)
    y = b.fma(y * e, b.polynomial(e, (1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0)), y)
    c = m * (y * y)
    square, low = two_product(b, c, c)
    remainder = b.fma(-square, c, m) - low * c
    c = b.fma(remainder * (1.0 / 3.0), y * y, c)
    c = b.select((size > 0.0), c * b.power_of_two(third), size)
    return b.copysign(b.select(size < math.inf, c, size), x)


# (scale down beyond, scale up below, scale): squares and their errors stay in range
HYPOT_SCALES = {"f64": (2.0**500, 2.0**-450, 2.0**600), "f32": (2.0**60, 2.0**-40, 2.0**90)}


@function("hypot", 1.0, 1.0, arity=2)
def hypot(b: MathBuilder, x: MathValue, y: MathValue) -> MathValue:
    """``sqrt(x*x + y*y)``, the sum as a pair and the root corrected by its remainder."""
    a, c = b.fabs(x), b.fabs(y)
    infinite = b.select(a.equals(math.inf), math.inf, c).equals(math.inf)
    swap = a < c
    a, c = b.select(swap, c, a), b.select(swap, a, c)
    top, bottom, scale = HYPOT_SCALES[b.fmt.name]
    down, up = a > top, a < bottom
    factor = b.select(down, 1.0 / scale, b.select(up, scale, 1.0))
    undo = b.select(down, scale, b.select(up, 1.0 / scale, 1.0))
    a, c = a * factor, c * factor
    (first, first_low), (second, second_low) = two_product(b, a, a), two_product(b, c, c)
    total, error = fast_two_sum(first, second)
    root = b.sqrt(total)
    fix = (b.fma(-root, root, total) + (error + (first_low + second_low))) * b.divided(0.5, root)
    root = b.select(total.equals(0.0), total, root + fix)
    return b.select(infinite, math.inf, root * undo)
