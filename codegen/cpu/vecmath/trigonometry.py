"""sin, cos, tan.  Reduction: ``|x| = n*pi/2 + r``, ``|r| <= pi/4``, ``r`` carried as a pair.

Up to a limit pi/2 in three parts does (Cody & Waite 1980), each product one fused multiply-add:
the first is exact.  Beyond it ``2/pi`` to as many bits as the exponent asks for (Payne & Hanek,
"Radian reduction for trigonometric functions", 1983), out of line, one lane at a time.
"""

from __future__ import annotations

import math

from .builder import F64, Builder, Value
from .coefficients import TWO_OVER_PI
from .double_double import (
    Pair,
    fast_two_sum,
    quotient,
    two_product,
    two_sum,
)
from .registry import function, table

# round(x*2/pi) is at most 2**-8 off a correct rounding below these, which the polynomials allow
LIMIT = {"f64": 2.0**30, "f32": 2.0**15}
TWO_PI_RATIO = 2.0 / math.pi


def reduce(b: Builder, x: Value) -> tuple[Pair, Value]:
    """``(r, rest), n`` with the integer ``n`` in the low bits."""
    first, second, third = table(b, "pio2")
    n, bits = b.rounded(x, TWO_PI_RATIO)
    whole = b.fma(-n, first, x)  # exact: both sides are multiples of ulp(first), |whole| < 1
    product, error = two_product(b, n, b.const(second))
    r, rest = two_sum(whole, -product)
    return (r, rest - b.fma(n, third, error)), bits


def sine(b: Builder, r: Pair, z: Value) -> Value:
    """``sin(r)`` for ``|r| <= pi/4``."""
    tail = b.fma(-0.5 * z, r[1], r[1])
    return r[0] + b.fma(r[0] * z, b.polynomial(z, table(b, "sin")), tail)


def cosine(b: Builder, r: Pair, z: Value) -> Value:
    """``cos(r)`` for ``|r| <= pi/4``: the rounding of ``1 - z/2`` is made good."""
    half = 0.5 * z
    lead = 1.0 - half
    tail = b.fma(z * z, b.polynomial(z, table(b, "cos")), -(r[0] * r[1]))
    return lead + (((1.0 - lead) - half) + tail)


def tangent(b: Builder, r: Pair, n: Value) -> Value:
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


def quadrant(b: Builder, r: Pair, n: Value) -> Value:
    """``sin(r + n*pi/2)``."""
    z = r[0] * r[0]
    odd = (n << (b.fmt.bits - 1)) < 0
    size = b.select(odd, cosine(b, r, z), sine(b, r, z))
    sign = (n << (b.fmt.bits - 2)) & b.fmt.sign_mask
    return b.from_bits(b.to_bits(size) ^ sign)


def with_sign_of(b: Builder, y: Value, x: Value) -> Value:
    """``y`` negated where ``x`` is negative."""
    return b.from_bits(b.to_bits(y) ^ (b.to_bits(x) & b.fmt.sign_mask))


def sin_parts(b: Builder, x: Value, r: Pair, n: Value) -> Value:
    return with_sign_of(b, quadrant(b, r, n), x)


def cos_parts(b: Builder, x: Value, r: Pair, n: Value) -> Value:
    return quadrant(b, r, n + 1)


def tan_parts(b: Builder, x: Value, r: Pair, n: Value) -> Value:
    return with_sign_of(b, tangent(b, r, n), x)


def with_huge(b: Builder, helper: str, x: Value, y: Value) -> Value:
    """``y``, except for finite arguments beyond the limit; inf gives NaN."""
    size = b.fabs(x)
    y = b.special((size > LIMIT[b.fmt.name]) & (size < math.inf), helper, x, y)
    return b.select(size.equals(math.inf), math.nan, y)


@function("sin", 1.0, 1.0)
def sin(b: Builder, x: Value) -> Value:
    return with_huge(b, "sin.huge", x, sin_parts(b, x, *reduce(b, b.fabs(x))))


@function("cos", 1.0, 1.0)
def cos(b: Builder, x: Value) -> Value:
    return with_huge(b, "cos.huge", x, cos_parts(b, x, *reduce(b, b.fabs(x))))


@function("tan", 1.0, 1.0)
def tan(b: Builder, x: Value) -> Value:
    return with_huge(b, "tan.huge", x, tan_parts(b, x, *reduce(b, b.fabs(x))))


def payne_hanek(b: Builder, x: Value, words: str) -> tuple[Pair, Value]:
    """The same for one float64 ``x >= 2**15``, from the bits of 2/pi at ``words``.

    ``x = m * 2**e`` with integer ``m``.  192 bits of 2/pi from weight ``2**(1-e)`` on are
    multiplied by ``m``, modulo 4; kept are two bits of quadrant and 126 of fraction, of which
    at most 62 can be leading zeros.
    """
    bits = b.to_bits(x)
    start = (bits >> 52) - (1075 - 62)
    m = b.raw(f"zext i64 {((bits & F64.mantissa_mask) | (1 << 52)).text} to i128")
    parts = [b.raw(f"zext i64 {_window(b, words, start, i)} to i128") for i in range(3)]
    products = [b.raw(f"mul i128 {m}, {part}") for part in parts]
    high, low = b.raw(f"shl i128 {products[0]}, 64"), b.raw(f"lshr i128 {products[2]}, 64")
    total = b.raw(f"add i128 {high}, {b.raw(f'add i128 {products[1]}, {low}')}")
    n = b.wrap("i", f"trunc i128 {b.raw(f'lshr i128 {total}, 126')} to i64")
    fraction = b.raw(f"shl i128 {total}, 2")
    negative = b.raw(f"icmp slt i128 {fraction}, 0")
    up = b.wrap("i", f"zext i1 {negative} to i64")
    return _times_half_pi(b, fraction, negative), n + up


def _window(b: Builder, words: str, start: Value, index: int) -> str:
    """64 bits of the table from bit ``start + 64*index`` on."""
    word = (start >> 6) + index
    loaded = []
    for offset in (0, 1):
        place = word + offset
        address = b.raw(f"getelementptr inbounds i64, ptr {words}, i64 {place.text}")
        loaded.append(b.raw(f"load i64, ptr {address}"))
    b.emitter.declarations.add("declare i64 @llvm.fshl.i64(i64, i64, i64)")
    return b.raw(f"call i64 @llvm.fshl.i64(i64 {loaded[0]}, i64 {loaded[1]}, i64 {start.text})")


def _times_half_pi(b: Builder, fraction: str, negative: str) -> Pair:
    """The signed ``fraction/2**128`` times pi/2, as a pair."""
    flipped = b.raw(f"sub i128 0, {fraction}")
    size = b.raw(f"select i1 {negative}, i128 {flipped}, i128 {fraction}")
    b.emitter.declarations.add("declare i128 @llvm.ctlz.i128(i128, i1)")
    count = b.raw(f"call i128 @llvm.ctlz.i128(i128 {size}, i1 false)")
    zeros = b.raw(f"and i128 {count}, 127")
    packed = b.raw(f"shl i128 {size}, {zeros}")
    digits = [_digits(b, packed, 75), _digits(b, packed, 22)]
    scale = b.from_bits((1023 - b.wrap("i", f"trunc i128 {zeros} to i64")) << 52)
    sign = b.wrap("f", f"select i1 {negative}, double -1.0, double 1.0")
    high, low = digits[0] * 2.0**-53 * scale * sign, digits[1] * 2.0**-106 * scale * sign
    first, second, _ = table(b, "pio2")
    r, error = two_product(b, high, b.const(first))
    return two_sum(r, b.fma(high, second, b.fma(low, first, error)))


def _digits(b: Builder, packed: str, count: int) -> Value:
    """53 bits of an i128 from bit ``count`` on, as a float."""
    part = b.raw(f"trunc i128 {b.raw(f'lshr i128 {packed}, {count}')} to i64")
    masked = b.raw(f"and i64 {part}, {(1 << 53) - 1}")
    return b.wrap("f", f"sitofp i64 {masked} to double")


PARTS = {"sin": sin_parts, "cos": cos_parts, "tan": tan_parts}


def lane_body(b: Builder, name: str, x: Value, words: str) -> Value:
    """One huge argument, of either format; ``b`` is scalar, ``words`` the global of 2/pi."""
    wide = Builder(F64, 1, b.emitter)
    value = x if b.fmt is F64 else wide.widened(x)
    result = PARTS[name](wide, value, *payne_hanek(wide, wide.fabs(value), words))
    return result if b.fmt is F64 else b.narrowed(result)


def huge_body(b: Builder, name: str, x: Value, y: Value) -> Value:
    """``y``, with every finite lane of huge ``x`` computed anew."""
    lane, limit = Builder(b.fmt, 1, b.emitter), LIMIT[b.fmt.name]

    def needed(value: Value) -> Value:
        size = lane.fabs(value)
        return (size > limit) & (size < math.inf)

    return b.each_lane(lane, x, y, needed, lambda value: lane.call(f"{name}.lane", value))


def bits_of_two_over_pi(words: str) -> str:
    """The definition of the global that ``lane_body`` reads."""
    body = ", ".join(f"i64 {w}" for w in TWO_OVER_PI)
    return f"{words} = private unnamed_addr constant [{len(TWO_OVER_PI)} x i64] [{body}]\n"
