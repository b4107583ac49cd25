"""log and its kin.  Reduction: ``x = 2**k * (1 + f)``, ``sqrt(1/2) <= 1 + f < sqrt(2)``.

With ``s = f/(2 + f)``: ``log(1 + f) = 2*atanh(s) = f - f*f/2 + s*(f*f/2 + s*s*q(s*s))``.
Sources: the published algorithm of FDLIBM's ``e_log.c`` (Sun 1993); Muller, "Elementary
Functions", chapter 11.  The exponent is read with integer additions alone.
"""

from __future__ import annotations

import math

from ..builder import F32, MathBuilder, MathValue
from ..double_double import Pair, fast_two_sum, multiply, quotient, two_product, two_sum
from ..registry import function, table


def decompose(b: MathBuilder, x: MathValue) -> tuple[MathValue, MathValue]:
    """``(f, k)`` for positive finite ``x``, subnormals included; anything for the rest."""
    fmt, grow = b.fmt, b.fmt.mantissa + 2
    small = x < fmt.tiny
    bits = b.to_bits(b.select(small, x * 2.0**grow, x))
    low = fmt.encode(math.sqrt(0.5))
    shifted = bits + (fmt.encode(1.0) - low)
    base = 2.0**fmt.mantissa
    exponent = b.from_bits((shifted >> fmt.mantissa) | fmt.encode(base))
    k = exponent - b.select(small, base + fmt.bias + grow, base + fmt.bias)
    return b.from_bits((shifted & fmt.mantissa_mask) + low) - 1.0, k


def log_core(
    b: MathBuilder, f: MathValue, k: MathValue, coefficients: str = "log",
    rest: MathValue | None = None,
) -> MathValue:
    """``log(1 + f) + k*ln2 + rest``, ``rest`` small."""
    high, low = table(b, "ln2")
    if b.fmt is F32:
        small = k * low if rest is None else b.fma(k, low, rest)
        return b.fma(k, high, f + log1p_tail(b, f, small))
    s = f / (2.0 + f)
    z, half = s * s, (0.5 * f) * f
    series = b.fma(z, b.polynomial(z, table(b, coefficients)), half)
    inner = b.fma(s, series, k * low if rest is None else b.fma(k, low, rest))
    return b.fma(k, high, f - (half - inner))


def log1p_tail(b: MathBuilder, f: MathValue, rest: MathValue) -> MathValue:
    """``log(1 + f) - f + rest`` in float32: for its digits a polynomial takes less than the
    division."""
    z = f * f
    return b.fma(z, b.fma(f, b.polynomial(f, table(b, "log_short")), -0.5), rest)


def log_special(b: MathBuilder, x: MathValue, y: MathValue) -> MathValue:
    """``y`` where ``0 < x < inf``; else -inf at 0, NaN below, ``x`` itself for inf and NaN.

    One select after the other: LLVM turns a conjunction of comparisons into integer tests.
    """
    y = b.select(x < math.inf, y, x)
    y = b.select(b.to_bits(x) < 0, math.nan, y)
    return b.select(x.equals(0.0), -math.inf, y)


@function("log", 1.0, 1.0)
def log(b: MathBuilder, x: MathValue) -> MathValue:
    return log_special(b, x, log_core(b, *decompose(b, x)))


def log_pair(b: MathBuilder, f: MathValue, k: MathValue) -> Pair:
    """``log(1 + f) + k*ln2`` to a relative error of about 2**-65."""
    high, low = table(b, "ln2")
    s = fast_two_sum(*quotient(b, (f, b.const(0.0)), fast_two_sum(b.const(2.0), f)))
    z_high, z_low = two_product(b, s[0], s[0])
    z = (z_high, b.fma(2.0 * s[0], s[1], z_low))
    third_high, third_low = table(b, "two_thirds")
    series = z_high * b.polynomial(z_high, table(b, "log_pair"))
    factor_high, factor_low = fast_two_sum(b.const(third_high), series)
    cube = multiply(b, multiply(b, s, z), (factor_high, factor_low + third_low))
    total, error = fast_two_sum(k * high, 2.0 * s[0])
    total, error2 = fast_two_sum(total, cube[0])
    small = b.fma(k, low, b.fma(2.0, s[1], cube[1]))
    return fast_two_sum(total, (error + error2) + small)


def log1p_pair(b: MathBuilder, f: MathValue) -> Pair:
    """``log(1 + f)`` for reduced ``f``, to a few more bits than the format has."""
    s = b.divided(f, 2.0 + f)
    z = s * s
    half, half_error = two_product(b, f, 0.5 * f)
    series = s * b.fma(z, b.polynomial(z, table(b, "log")), half)
    high, low = fast_two_sum(f, -half)
    return high, low + (series - half_error)


def log_of_base(b: MathBuilder, x: MathValue, factor: str, two: tuple[float, float]) -> MathValue:
    """``k*two + log(1 + f)*factor``: a logarithm to another base; exact powers come out exact."""
    f, k = decompose(b, x)
    natural = fast_two_sum(*log1p_pair(b, f))
    high, low = table(b, factor)
    whole, error = two_product(b, natural[0], b.const(high))
    small = b.fma(natural[0], low, b.fma(natural[1], high, error))
    total, rest = fast_two_sum(k * two[0], whole)
    return log_special(b, x, total + (rest + b.fma(k, two[1], small)))


@function("log2", 1.0, 1.0)
def log2(b: MathBuilder, x: MathValue) -> MathValue:
    return log_of_base(b, x, "log2e", (1.0, 0.0))


@function("log10", 1.0, 1.0)
def log10(b: MathBuilder, x: MathValue) -> MathValue:
    high, low = table(b, "log10_2")
    return log_of_base(b, x, "log10e", (high, low))


def log_of_sum(
    b: MathBuilder, u: MathValue, c: MathValue, extra: MathValue | None = None
) -> MathValue:
    """``log(u + c) + extra*ln2`` for positive ``u`` and ``c`` below its last place."""
    f, k = decompose(b, u)
    small = c * b.power_of_two(-b.minimum(b.fmt.bias - 10.0, k))
    whole, rest = fast_two_sum(f, small)
    rest = b.fma(-rest, whole, rest)  # rest/(1 + whole), near enough
    return log_core(b, whole, k if extra is None else k + extra, "log", rest)


@function("log1p", 1.0, 1.0)
def log1p(b: MathBuilder, x: MathValue) -> MathValue:
    u, c = two_sum(b.const(1.0), x)
    y = log_special(b, u, log_of_sum(b, u, c))
    return b.select(b.fabs(x) < 2.0**-60, x, y)


def negligible(b: MathBuilder) -> float:
    """Below this the cube of the argument is under half a last place of it."""
    return 2.0 ** -(b.fmt.mantissa // 2 + 2)


def unsquarable(b: MathBuilder) -> float:
    """From here on ``x*x +- 1`` is ``x*x``; its square is finite."""
    return 2.0 ** (b.fmt.mantissa + 8)


def log_x_plus_root(b: MathBuilder, x: MathValue, sign: float) -> MathValue:
    """``log(x + sqrt(x*x + sign))`` for ``x >= 0``, ``log(2*x)`` for large ``x``."""
    large = x > unsquarable(b)
    bounded = b.select(large, 1.0, x)
    square, low = two_product(b, bounded, bounded)
    total, error = two_sum(square, b.const(sign))
    total, error = fast_two_sum(total, error + low)
    root = b.sqrt(total)
    fix = (b.fma(-root, root, total) + error) * b.divided(0.5, root)
    u, c = two_sum(bounded, root)
    c = c + b.select(root > 0.0, fix, 0.0)
    u, c = fast_two_sum(b.select(large, x, u), b.select(large, 0.0, c))
    return log_of_sum(b, u, c, b.select(large, 1.0, 0.0))


@function("arcsinh", 1.0, 1.0)
def arcsinh(b: MathBuilder, x: MathValue) -> MathValue:
    size = b.fabs(x)
    y = log_x_plus_root(b, size, 1.0)
    y = b.select(size < negligible(b), size, y)
    return b.copysign(b.select(size < math.inf, y, size), x)


@function("arccosh", 1.0, 1.0)
def arccosh(b: MathBuilder, x: MathValue) -> MathValue:
    y = log_x_plus_root(b, x, -1.0)
    return b.select(x < 1.0, math.nan, b.select(x < math.inf, y, x))


@function("arctanh", 1.0, 1.0)
def arctanh(b: MathBuilder, x: MathValue) -> MathValue:
    """``log(1 + 2a/(1 - a))/2`` with ``a = |x|``, the quotient as a pair."""
    size = b.fabs(x)
    high, low = quotient(b, (2.0 * size, b.const(0.0)), two_sum(b.const(1.0), -size))
    u, c = two_sum(b.const(1.0), high)
    y = 0.5 * log_of_sum(b, *fast_two_sum(u, c + low))
    y = b.select(size < negligible(b), size, y)
    y = b.select(size > 1.0, math.nan, b.select(size.equals(1.0), math.inf, y))
    return b.copysign(y, x)


@function("logit", 1.0, 1.0)
def logit(b: MathBuilder, x: MathValue) -> MathValue:
    """``log(x/(1 - x))``, the quotient as a pair: exact enough where it is near 1."""
    inside, tiny = b.select(x < 1.0, x, 0.5), x < 2.0**-60
    u, c = fast_two_sum(*quotient(b, (inside, b.const(0.0)), two_sum(b.const(1.0), -inside)))
    u = b.select(tiny, x * 2.0**64, u)  # its last place must be a normal number
    y = log_of_sum(b, u, b.select(tiny, 0.0, c), b.select(tiny, -64.0, b.const(0.0)))
    y = b.select(x >= 1.0, b.select(x.equals(1.0), math.inf, math.nan), log_special(b, u, y))
    return b.select(x.unordered(x), x, y)
