"""exp and its kin.  Reduction: ``x = k*ln2 + r``, ``|r| <= ln2/2`` with ln2 in two parts.

Sources: Cody & Waite, "Software Manual for the Elementary Functions" (1980), chapter 6; Muller,
"Elementary Functions", chapters 3 and 11; Tang, "Table-driven implementation of the expm1
function" (1992) for the reconstruction, here without the table.
"""

from __future__ import annotations

from ..builder import F32, MathBuilder, MathValue
from ..double_double import Pair, fast_two_sum, quotient, two_product, two_sum
from ..registry import function, table

# Beyond these the result is inf or 0 (exp) or +-1 (tanh), and all intermediates stay in range.
EXP_RANGE = {"f64": (-746.0, 710.0), "f32": (-104.0, 89.0)}
TANH_LIMIT = {"f64": 44.0, "f32": 20.0}


def clamp(b: MathBuilder, x: MathValue, low: float, high: float) -> MathValue:
    """``x`` limited to [low, high]; NaN stays."""
    return b.maximum(low, b.minimum(high, x))


Reduced = tuple[MathValue, MathValue, MathValue]


def reduce(b: MathBuilder, x: MathValue) -> Reduced:
    """``(k, r, c)`` with ``x = k*ln2 + (r + c)``; ``r`` is exact, ``c`` small."""
    high, low = table(b, "ln2")
    k, _ = b.rounded(x, table(b, "log2e")[0])
    return k, b.fma(-k, high, x), k * -low


def exp_core(b: MathBuilder, r: MathValue, c: MathValue, coefficients: str = "exp") -> MathValue:
    """``exp(r + c)`` for a reduced argument: ``1 + (r + (c + t*t*q(t)))``, ``t = r + c``."""
    t = r + c
    series = b.polynomial(t, (0.5, *table(b, coefficients)))
    return 1.0 + (r + b.fma(t * t, series, c))


@function("exp", 1.0, 1.0)
def exp(b: MathBuilder, x: MathValue) -> MathValue:
    high, low = table(b, "ln2")
    limited = clamp(b, x, *EXP_RANGE[b.fmt.name])
    k, bits = b.rounded(limited, table(b, "log2e")[0])
    series = "exp_short" if b.fmt is F32 else "exp"
    core = exp_core(b, b.fma(-k, high, limited), k * -low, series)
    return b.scale_by(core, bits)


def expm1_scaled(b: MathBuilder, x: MathValue, unit: float) -> Pair:
    """``unit*(exp(x) - 1)`` as a pair, for clamped ``x`` and ``unit`` a power of two."""
    k, r, c = reduce(b, x)
    t = r + c
    square, square_error = two_product(b, t, 0.5 * t)
    rest = b.fma((2.0 * t) * square, b.polynomial(t, table(b, "exp")), square_error)
    lead, lead_error = fast_two_sum(r, square)
    tail = (lead_error + rest) + c
    # k - 1 when unit is a half: 2**1024 is no double, yet expm1 is finite there
    power = b.power_of_two(k - 1.0 if unit == 0.5 else k)
    base = power - unit
    lost = (power - base) - unit
    total, error = two_sum(base, power * lead)
    return fast_two_sum(total, b.fma(power, tail, error + lost))


@function("expm1", 1.0, 1.0)
def expm1(b: MathBuilder, x: MathValue) -> MathValue:
    total, rest = expm1_scaled(b, clamp(b, x, -44.0, EXP_RANGE[b.fmt.name][1]), 0.5)
    return b.select(b.fabs(x) < 2.0**-60, x, 2.0 * (total + rest))


@function("tanh", 1.0, 1.0)
def tanh(b: MathBuilder, x: MathValue) -> MathValue:
    """``t/(t + 2)`` with ``t = expm1(2*|x|)``, both as pairs; float32 otherwise."""
    if b.fmt is F32:
        return tanh_short(b, x)
    double = b.minimum(TANH_LIMIT[b.fmt.name], 2.0 * b.fabs(x))
    t = expm1_scaled(b, double, 1.0)
    total, rest = two_sum(b.const(2.0), t[0])
    high, low = quotient(b, t, (total, rest + t[1]))
    return b.copysign(high + low, x)


TANH_BELOW = 0.625  # where its series is short, and above which 1 - q loses little


def tanh_short(b: MathBuilder, x: MathValue) -> MathValue:
    """``x + x**3*q(x*x)``, or ``1 - 2/d``, ``d = exp(2*x) + 1``.

    ``d`` is ``(2**k + 1) + 2**k*(exp(r) - 1)``; what it and the quotient lose is put back.
    """
    size = b.fabs(x)
    high, low = table(b, "ln2")
    double = b.minimum(TANH_LIMIT[b.fmt.name], 2.0 * size)
    k, bits = b.rounded(double, table(b, "log2e")[0])
    r = b.fma(-k, low, b.fma(-k, high, double))
    rise = b.fma(r * r, b.polynomial(r, (0.5, *table(b, "exp_short"))), r)
    power = b.from_bits((bits << b.fmt.mantissa) + b.fmt.encode(1.0))
    base = power + 1.0
    d = b.fma(power, rise, base)
    d_low = b.fma(power, rise, base - d)
    inverse = b.divided(1.0, d)
    q = 2.0 * inverse
    lost = b.fma(-q, d_low, b.fma(-q, d, 2.0))
    lead, rest = fast_two_sum(b.const(1.0), -q)
    large = lead + b.fma(-inverse, lost, rest)
    z = size * size
    small = b.fma(size * z, b.polynomial(z, table(b, "tanh")), size)
    return b.copysign(b.select(size < TANH_BELOW, small, large), x)


@function("exp2", 1.0, 1.0)
def exp2(b: MathBuilder, x: MathValue) -> MathValue:
    """``2**k * 2**r`` with ``2**r = 1 + (r*ln2 + r*r*q(r))``, ln2 as a pair."""
    bottom, top = -(b.fmt.bias + b.fmt.mantissa + 4.0), b.fmt.bias + 3.0
    limited = clamp(b, x, bottom, top)
    k, bits = b.rounded(limited)
    r = limited - k
    high, low = table(b, "ln2_pair")
    series = b.fma(r * r, b.polynomial(r, table(b, "exp2")), r * low)
    return b.scale_by(1.0 + b.fma(r, high, series), bits)


def exp_pair(b: MathBuilder, x: MathValue) -> tuple[Pair, MathValue]:
    """``(p, k)`` with ``exp(x) = p*2**k``, for clamped ``x``."""
    k, r, c = reduce(b, x)
    return exp_reduced(b, r, c), k


def exp_reduced(b: MathBuilder, r: MathValue, c: MathValue) -> Pair:
    """``exp(r + c)`` for a reduced argument, as a pair."""
    t = r + c
    series = b.polynomial(t, (0.5, *table(b, "exp")))
    lead, lead_error = fast_two_sum(b.const(1.0), r)
    tail = b.fma(t * t, series, c)
    high, low = fast_two_sum(lead, tail)
    return high, low + lead_error


def exp_minus(b: MathBuilder, x: Pair) -> tuple[Pair, MathValue]:
    """``(p, k)`` with ``exp(-x) = p*2**k`` for a pair whose low part is small in absolute terms."""
    (high, low), k = exp_pair(b, -x[0])
    return (high, b.fma(-x[1], high, low)), k


# Beyond these the result is inf or 0.
EXP10_RANGE = {"f64": (-326.0, 310.0), "f32": (-48.0, 40.0)}


@function("exp10", 1.0, 1.0)
def exp10(b: MathBuilder, x: MathValue) -> MathValue:
    """``2**k * exp(r*ln10)``, ``x = k*log10(2) + r``; powers of ten that are floats are exact."""
    limited = clamp(b, x, *EXP10_RANGE[b.fmt.name])
    k, _ = b.rounded(limited, table(b, "log2_10")[0])
    high, low = table(b, "log10_2")
    r, c = b.fma(-k, high, limited), k * -low
    ten, ten_low = table(b, "ln10")
    t, rest = two_product(b, r, b.const(ten))
    p = exp_reduced(b, t, b.fma(c, ten, b.fma(r, ten_low, rest)))
    return b.scale(p[0] + p[1], k)


@function("expit", 1.0, 1.0)
def expit(b: MathBuilder, x: MathValue) -> MathValue:
    """``1/(1 + e)`` for ``x >= 0``, ``e/(1 + e)`` below, with ``e = exp(-|x|)``; scaled last."""
    p, k = exp_pair(b, b.maximum(EXP_RANGE[b.fmt.name][0], -b.fabs(x)))
    first, second = b.halves(k)
    total, rest = fast_two_sum(b.const(1.0), (p[0] * first) * second)
    rest = rest + (p[1] * first) * second
    negative = x < 0.0
    top = (b.select(negative, p[0], 1.0), b.select(negative, p[1], 0.0))
    high, low = quotient(b, top, (total, rest))
    return b.scale(high + low, b.select(negative, k, 0.0))


# Just past overflow; exp(x)/4 must have an exponent that a normal number can have.
HYPERBOLIC_LIMIT = {"f64": 710.6, "f32": 89.5}


def halves(b: MathBuilder, x: MathValue) -> tuple[Pair, Pair]:
    """``exp(|x|)/4`` and ``exp(-|x|)/4``, half of the terms of cosh and sinh, as pairs."""
    p, k = exp_pair(b, b.minimum(HYPERBOLIC_LIMIT[b.fmt.name], b.fabs(x)))
    power = b.power_of_two(k - 2.0)
    high, low = p[0] * power, p[1] * power
    falling = b.divided(0.0625, high)
    rest = b.fma(-falling, high, 0.0625) - falling * low
    return (high, low), (falling, rest * (16.0 * falling))


@function("cosh", 1.0, 1.0)
def cosh(b: MathBuilder, x: MathValue) -> MathValue:
    rising, falling = halves(b, x)
    total, rest = fast_two_sum(rising[0], falling[0])
    return 2.0 * (total + (rest + (rising[1] + falling[1])))


@function("sinh", 1.0, 1.0)
def sinh(b: MathBuilder, x: MathValue) -> MathValue:
    """The two terms cancel below 1; there ``x + x**3*q(x*x)``."""
    rising, falling = halves(b, x)
    total, rest = fast_two_sum(rising[0], -falling[0])
    large = 2.0 * (total + (rest + (rising[1] - falling[1])))
    size = b.fabs(x)
    z = b.minimum(1.0, size) * b.minimum(1.0, size)
    small = b.fma(size * z, b.polynomial(z, table(b, "sinh")), size)
    return b.copysign(b.select(size < 1.0, small, large), x)
