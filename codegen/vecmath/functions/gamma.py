"""log |gamma|: a polynomial around 2, products that lead there, Stirling's series, reflection.

``lgamma(2 + d) = d*(c + d*q(d))`` keeps the zeros at 1 and 2 exact.  Sources: Abramowitz & Stegun
6.1.15 (recurrence), 6.1.17 (reflection) and 6.1.40 (Stirling's series, here a minimax polynomial).
float32 is worked in float64 to fewer digits.
"""

from __future__ import annotations

import math

from fusec.core.records import dataclass

from ..builder import F64, MathBuilder, MathValue
from ..double_double import Pair, fast_two_sum, two_product, two_sum
from ..registry import function, table
from .logarithm import decompose, log1p_pair, log_core

STIRLING_FROM = 8.5
STEPS = 6  # factors of the product that leads from 8.5 down to 2.5


@dataclass(frozen=True)
class Precision:
    """Which tables to use, and whether logarithms are pairs."""

    suffix: str

    def table(self, b: MathBuilder, name: str) -> tuple[float, ...]:
        return table(b, name + self.suffix)

    def log(self, b: MathBuilder, x: MathValue) -> Pair:
        """``log(x)`` for positive ``x``, in float64 to a few more bits than a float has."""
        f, k = decompose(b, x)
        if self.suffix:
            return log_core(b, f, k, "log_mid"), b.const(0.0)
        natural = fast_two_sum(*log1p_pair(b, f))
        high, low = table(b, "ln2")
        total, rest = fast_two_sum(k * high, natural[0])
        return fast_two_sum(total, b.fma(k, low, rest + natural[1]))

    def short_log(self, b: MathBuilder, x: MathValue) -> MathValue:
        """``log(x)`` for positive ``x``."""
        return log_core(b, *decompose(b, x), "log" + self.suffix)


def product(b: MathBuilder, a: MathValue, n: MathValue) -> MathValue:
    """``(a - 1)*(a - 2)...(a - n)``; 1 for ``n <= 0``."""
    result = b.select(n >= 1.0, a - 1.0, 1.0)
    for i in range(2, STEPS + 1):
        result = result * b.select(n >= float(i), a - float(i), 1.0)
    return result


def near_two(b: MathBuilder, how: Precision, d: MathValue, sign: MathValue, log: Pair) -> MathValue:
    """``lgamma(2 + d) + sign*log``; the two cancel near 3/2, so the leading terms are exact."""
    lead, below = table(b, "log_gamma_slope")
    slope, error = two_product(b, d, b.const(lead))
    series = (d * d) * b.polynomial(d, how.table(b, "log_gamma"))
    high, low = two_sum(sign * log[0], slope)
    return high + (series + b.fma(sign, log[1], b.fma(d, below, error + low)))


def by_stirling(b: MathBuilder, how: Precision, a: MathValue, log: Pair) -> MathValue:
    """``a*(log(a) - 1) - log(a)/2 + log(2*pi)/2 + s(1/a**2)/a``."""
    inverse = 1.0 / a
    series = inverse * b.polynomial(inverse * inverse, how.table(b, "stirling"))
    factor, rest = fast_two_sum(log[0], b.const(-1.0))
    high, low = two_product(b, a, factor)
    small = b.fma(-0.5, log[0], series + table(b, "half_log_two_pi")[0])
    total = high + (b.fma(a, rest + log[1], low) + small)
    return b.select(high.equals(math.inf), math.inf, total)


def log_gamma(b: MathBuilder, x: MathValue, how: Precision) -> MathValue:
    a, negative = b.fabs(x), x < 0.0
    large = a >= STIRLING_FROM
    n, _ = b.rounded(b.minimum(STIRLING_FROM, a) - 2.0)
    tiny = n < -1.5  # below 1/2
    next_, lost = two_sum(b.const(1.0), a)
    down = b.select(tiny, b.select(negative, next_, a * next_), a)
    short = n < 0.0
    log = how.log(b, b.select(large, a, b.select(short, down, product(b, a, n))))
    # d log(1 + a): 1/(1 + a) to a few percent puts back most of what 1 + a lost
    log = log[0], log[1] + b.select(tiny, lost * b.fma(-0.7, a, 1.0), 0.0)
    small = near_two(b, how, a - (n + 2.0), b.select(short, -1.0, b.const(1.0)), log)
    y = b.select(large, by_stirling(b, how, a, log), small)
    return b.select(negative, reflected(b, how, a, b.select(tiny, 1.0, a), y), y)


def reflected(
    b: MathBuilder, how: Precision, a: MathValue, factor: MathValue, y: MathValue
) -> MathValue:
    """``-log(factor*|sin(pi*a)|/pi) - y``; at a pole inf."""
    f = b.fabs(a - b.intrinsic("rint", a))
    sine = f * b.polynomial(f * f, how.table(b, "sine_of_pi"))
    return b.select(f.equals(0.0), math.inf, -(y + how.short_log(b, factor * sine)))


@function("gammaln", 3.0, 0.6)
def gammaln(b: MathBuilder, x: MathValue) -> MathValue:
    """Bounds hold for positive arguments; below 0 the error is absolute, around the zeros."""
    if b.fmt is F64:
        y = log_gamma(b, x, Precision(""))
    else:
        wide = b.of_format(F64)
        y = b.narrowed(log_gamma(wide, wide.widened(x), Precision("_mid")))
    size = b.fabs(x)
    y = b.select(size < math.inf, y, x)
    return b.select(size.equals(0.0), math.inf, y)
