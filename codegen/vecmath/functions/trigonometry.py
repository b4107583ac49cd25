"""sin, cos, tan.  Reduction: ``|x| = n*pi/2 + r``, ``|r| <= pi/4``, ``r`` carried as a pair.

Up to a limit pi/2 in three parts does (Cody & Waite 1980), each product one fused multiply-add:
the first is exact.  Beyond it ``2/pi`` to as many bits as the exponent asks for (Payne & Hanek,
"Radian reduction for trigonometric functions", 1983), out of line, one lane at a time.
"""

from __future__ import annotations

import math

from ..builder import F64, Format, MathBuilder, MathValue
from ..coefficients import TWO_OVER_PI
from ..double_double import Pair, fast_two_sum, quotient, two_product, two_sum
from ..registry import function, table

# round(x*2/pi) is at most 2**-8 off a correct rounding below these, which the polynomials allow
LIMIT = {"f64": 2.0**30, "f32": 2.0**15}
TWO_PI_RATIO = 2.0 / math.pi
WORDS_OF_F32 = 6  # of 64 bits: the highest exponent asks for bits 166 to 293


def reduce(b: MathBuilder, x: MathValue) -> tuple[Pair, MathValue]:
    """``(r, rest), n`` with the integer ``n`` in the low bits."""
    first, second, third = table(b, "pio2")
    n, bits = b.rounded(x, TWO_PI_RATIO)
    whole = b.fma(-n, first, x)  # exact: both sides are multiples of ulp(first), |whole| < 1
    product, error = two_product(b, n, b.const(second))
    r, rest = fast_two_sum(whole, -product)  # `whole` is a multiple of the product's last place
    return (r, rest - b.fma(n, third, error)), bits


def sine(b: MathBuilder, r: Pair, z: MathValue) -> MathValue:
    """``sin(r)`` for ``|r| <= pi/4``."""
    tail = b.fma(-0.5 * z, r[1], r[1])
    return r[0] + b.fma(r[0] * z, b.polynomial(z, table(b, "sin")), tail)


def cosine(b: MathBuilder, r: Pair, z: MathValue) -> MathValue:
    """``cos(r)`` for ``|r| <= pi/4``: the rounding of ``1 - z/2`` is made good."""
    half = 0.5 * z
    lead = 1.0 - half
    tail = b.fma(z * z, b.polynomial(z, table(b, "cos")), -(r[0] * r[1]))
    return lead + (((1.0 - lead) - half) + tail)


def tangent(b: MathBuilder, r: Pair, n: MathValue) -> MathValue:
    """``tan(r + n*pi/2)``: sine and cosine as pairs, divided once."""
    z = r[0] * r[0]
    half = 0.5 * z
    lead = 1.0 - half
    rounding = b.fma(r[0], r[1], b.fma(0.5 * r[0], r[0], -half))  # of r, and of z
    tail = b.fma(z * z, b.polynomial(z, table(b, "cos")), -rounding)
    cosine = fast_two_sum(lead, ((1.0 - lead) - half) + tail)
    tail = b.fma(r[0] * z, b.polynomial(z, table(b, "sin")), b.fma(-0.5 * z, r[1], r[1]))
    sine = fast_two_sum(r[0], tail)
    odd = (n << (b.fmt.bits - 1)) < 0
    top = (b.select(odd, cosine[0], sine[0]), b.select(odd, cosine[1], sine[1]))
    bottom = (b.select(odd, sine[0], cosine[0]), b.select(odd, sine[1], cosine[1]))
    high, low = quotient(b, top, bottom)
    return b.from_bits(b.to_bits(high + low) ^ (n << (b.fmt.bits - 1)))


def quadrant(b: MathBuilder, r: Pair, n: MathValue) -> MathValue:
    """``sin(r + n*pi/2)``."""
    z = r[0] * r[0]
    odd = (n << (b.fmt.bits - 1)) < 0
    size = b.select(odd, cosine(b, r, z), sine(b, r, z))
    sign = (n << (b.fmt.bits - 2)) & b.fmt.sign_mask
    return b.from_bits(b.to_bits(size) ^ sign)


def with_sign_of(b: MathBuilder, y: MathValue, x: MathValue) -> MathValue:
    """``y`` negated where ``x`` is negative."""
    return b.from_bits(b.to_bits(y) ^ (b.to_bits(x) & b.fmt.sign_mask))


def sin_parts(b: MathBuilder, x: MathValue, r: Pair, n: MathValue) -> MathValue:
    return with_sign_of(b, quadrant(b, r, n), x)


def cos_parts(b: MathBuilder, x: MathValue, r: Pair, n: MathValue) -> MathValue:
    return quadrant(b, r, n + 1)


def tan_parts(b: MathBuilder, x: MathValue, r: Pair, n: MathValue) -> MathValue:
    return with_sign_of(b, tangent(b, r, n), x)


def with_huge(b: MathBuilder, helper: str, x: MathValue, y: MathValue) -> MathValue:
    """``y``, except for arguments beyond the limit."""
    return b.special(b.fabs(x) > LIMIT[b.fmt.name], helper, x, y)


@function("sin", 1.0, 1.0)
def sin(b: MathBuilder, x: MathValue) -> MathValue:
    return with_huge(b, "sin.huge", x, sin_parts(b, x, *reduce(b, b.fabs(x))))


@function("cos", 1.0, 1.0)
def cos(b: MathBuilder, x: MathValue) -> MathValue:
    return with_huge(b, "cos.huge", x, cos_parts(b, x, *reduce(b, b.fabs(x))))


@function("tan", 1.0, 1.0)
def tan(b: MathBuilder, x: MathValue) -> MathValue:
    return with_huge(b, "tan.huge", x, tan_parts(b, x, *reduce(b, b.fabs(x))))


def words_of_two_over_pi(fmt: Format) -> list[int]:
    """The table that `payne_hanek` reads: 64 zero bits, then those of 2/pi, highest first."""
    if fmt is F64:
        return list(TWO_OVER_PI)
    mask = (1 << fmt.bits) - 1
    return [word >> shift & mask for word in TWO_OVER_PI[:WORDS_OF_F32] for shift in (32, 0)]


def payne_hanek(b: MathBuilder, x: MathValue, words: str) -> tuple[Pair, MathValue]:
    """The same for one ``x >= 2**15``, from the bits of 2/pi in the table ``words``.

    ``x = m * 2**e`` with integer ``m``.  Three words of 2/pi from weight ``2**(1-e)`` on are
    multiplied by ``m``, modulo 4; kept are two bits of quadrant and 126 (62) of fraction, of which
    at most 62 (31) can be leading zeros.
    """
    fmt, width = b.fmt, b.fmt.bits
    bits = b.to_bits(x)
    start = (bits >> fmt.mantissa) - (fmt.bias + fmt.mantissa - 62)
    word = start >> (6 if fmt is F64 else 5)
    m = b.wide_from_bits((bits & fmt.mantissa_mask) | (1 << fmt.mantissa))
    parts = [b.wide_from_bits(b.funnel(words, word + i, start)) for i in range(3)]
    first, second, third = (m * part for part in parts)
    total = (first << width) + (second + (third >> width))
    fraction = total << 2
    negative = fraction < 0
    n = b.low_bits(total >> (2 * width - 2)) + b.from_mask(negative)
    return _times_half_pi(b, fraction, negative), n


def _times_half_pi(b: MathBuilder, fraction: MathValue, negative: MathValue) -> Pair:
    """The signed ``fraction``, below 1/2 of its bits' range, times pi/2, as a pair."""
    fmt, length = b.fmt, b.fmt.mantissa + 1
    size = b.select(negative, b.operand(0, "w") - fraction, fraction, "w")
    zeros = b.leading_zeros(size)
    packed = size << zeros
    digits = [_digits(b, packed, 2 * fmt.bits - length * count) for count in (1, 2)]
    scale = b.from_bits((fmt.bias - b.low_bits(zeros)) << fmt.mantissa)
    sign = b.select(negative, -1.0, 1.0)
    high, low = (d * 2.0 ** (-length * count) * scale * sign for count, d in enumerate(digits, 1))
    first, second, _ = table(b, "pio2")
    r, error = two_product(b, high, b.const(first))
    return two_sum(r, b.fma(high, second, b.fma(low, first, error)))


def _digits(b: MathBuilder, packed: MathValue, count: int) -> MathValue:
    """The mantissa's length of a wide integer from bit ``count`` on, as a float."""
    return b.from_int(b.low_bits(packed >> count) & (2 * b.fmt.mantissa_mask + 1))


PARTS = {"sin": sin_parts, "cos": cos_parts, "tan": tan_parts}


def lane_body(b: MathBuilder, name: str, x: MathValue, words: str) -> MathValue:
    """One huge argument; ``b`` is scalar, ``words`` the table of 2/pi.  Infinity gives NaN."""
    size = b.fabs(x)
    result = PARTS[name](b, x, *payne_hanek(b, size, words))
    return b.select(size < math.inf, result, math.nan)


def huge_body(b: MathBuilder, name: str, x: MathValue, y: MathValue) -> MathValue:
    """``y``, with every lane of huge ``x`` computed anew."""
    lane, limit = b.of_format(b.fmt, lanes=1), LIMIT[b.fmt.name]
    return b.each_lane(lane, x, y, lambda value: lane.fabs(value) > limit,
                       lambda value: lane.call(f"{name}.lane", value))
