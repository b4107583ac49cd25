"""erfc and the normal distribution: ``erfc(x) = exp(-x*x)*g(x)``.

``(1 + 2*x)*g(x)`` is a polynomial in ``(x - 4)/(x + 4)`` for all ``x >= 0`` (Shepherd &
Laframboise, "Chebyshev approximation of (1 + 2x)exp(x^2)erfc(x) in 0 <= x < inf", 1981), and
``x*x`` is carried as a pair: its rounding alone would cost hundreds of ulp.
"""

from __future__ import annotations

from ..builder import MathBuilder, MathValue, Operand
from ..double_double import Pair, fast_two_sum, multiply, quotient, two_product, two_sum
from ..registry import function, table
from .exponential import exp_minus
from .logarithm import log_of_sum

# Past these the results have underflowed; the exponent of exp(-x*x) is still one that scales.
ERFC_LIMIT = {"f64": 28.0, "f32": 11.0}
NDTR_LIMIT = {"f64": 39.5, "f32": 15.0}
LOG_NDTR_LIMIT = 2.0**60  # from here on log_ndtr(-x) is -x*x/2
ERF_BELOW = 0.5  # where 1 - erf(x) loses nothing


def erfcx(b: MathBuilder, x: MathValue, below: Operand = 0.0) -> Pair:
    """``exp(u*u)*erfc(u)`` for ``u = x + below >= 0``, as a pair.

    The polynomial hardly changes with ``u``; the divisor does.
    """
    t = b.divided(x - 4.0, x + 4.0)
    high, low = table(b, "erfcx_four")
    lead, rest = fast_two_sum(b.const(high), t * b.polynomial(t, table(b, "erfcx")))
    divisor, error = two_sum(b.const(1.0), 2.0 * x)
    return quotient(b, (lead, rest + low), (divisor, b.fma(2.0, below, error)))


def tail(b: MathBuilder, g: Pair, square: Pair, unit: float) -> MathValue:
    """``2**unit * exp(-square) * g``, rounded once where it is subnormal."""
    e, k = exp_minus(b, square)
    high, low = multiply(b, e, g)
    return b.scale(high + low, k + unit)


@function("erfc", 1.2, 1.2)
def erfc(b: MathBuilder, x: MathValue) -> MathValue:
    size = b.minimum(ERFC_LIMIT[b.fmt.name], b.fabs(x))
    large = tail(b, erfcx(b, size), two_product(b, size, size), 0.0)
    large = b.select(x < 0.0, 2.0 - large, large)
    lead, rest = fast_two_sum(b.const(1.0), -x)
    small = lead + b.fma(-x, b.polynomial(x * x, table(b, "erf")), rest)
    return b.select(b.fabs(x) < ERF_BELOW, small, large)


def over_root_two(b: MathBuilder, x: MathValue) -> Pair:
    """``x/sqrt(2)`` as a pair."""
    high, low = table(b, "root_half")
    whole, error = two_product(b, x, b.const(high))
    return whole, b.fma(x, low, error)


def near_half(b: MathBuilder, u: Pair) -> Pair:
    """``(1 + erf(u))/2`` for small ``u``."""
    half = 0.5 * u[0]
    lead, rest = fast_two_sum(b.const(0.5), half)
    series = b.polynomial(u[0] * u[0], table(b, "erf"))
    return fast_two_sum(lead, b.fma(half, series, b.fma(0.5, u[1], rest)))


@function("ndtr", 1.2, 1.2)
def ndtr(b: MathBuilder, x: MathValue) -> MathValue:
    """``erfc(-x/sqrt(2))/2``."""
    size = b.minimum(NDTR_LIMIT[b.fmt.name], b.fabs(x))
    u = over_root_two(b, size)
    large = tail(b, erfcx(b, *u), two_product(b, size, 0.5 * size), -1.0)
    large = b.select(x > 0.0, 1.0 - large, large)
    small = near_half(b, over_root_two(b, x))[0]
    return b.select(u[0] < ERF_BELOW, small, large)


@function("log_ndtr", 2.0, 2.0)
def log_ndtr(b: MathBuilder, x: MathValue) -> MathValue:
    """``log(g/2) - x*x/2`` below, ``log1p(-erfc/2)`` above, one logarithm for all."""
    size = b.minimum(LOG_NDTR_LIMIT, b.fabs(x))
    a = over_root_two(b, size)
    g = erfcx(b, *a)
    bounded = b.minimum(NDTR_LIMIT[b.fmt.name], size)
    q = tail(b, g, two_product(b, bounded, 0.5 * bounded), -1.0)
    negative, small = x < 0.0, a[0] < ERF_BELOW
    middle = near_half(b, over_root_two(b, x))
    above = two_sum(b.const(1.0), -q)
    u, c = (b.select(small, m, b.select(negative, 0.5 * low, high))
            for m, low, high in zip(middle, g, above, strict=True))
    y = log_of_sum(b, *fast_two_sum(u, c))
    square, error = two_product(b, size, 0.5 * size)
    below = b.select(x < -LOG_NDTR_LIMIT, (0.5 * x) * -x, (y - square) - error)
    y = b.select(small, y, b.select(negative, below, b.select(q < 2.0**-60, -q, y)))
    return b.select(x.unordered(x), x, y)
