"""erf: ``x + x*q(x*x)`` below 1, ``1 - erfc(1)*exp(-t*p(t))`` with ``t = x - 1`` above.

The second form needs ``erfc`` only to an absolute error, so ``p`` may be short (the idea of
Abramowitz & Stegun 7.1.27-28, with an exponential in place of a power).
"""

from __future__ import annotations

from ..builder import MathBuilder, MathValue
from ..registry import function, table
from .exponential import exp_core, reduce

ERF_LIMIT = 6.0  # erf is 1 from 5.93 on in float64


@function("erf", 1.2, 1.2)
def erf(b: MathBuilder, x: MathValue) -> MathValue:
    size = b.minimum(ERF_LIMIT, b.fabs(x))
    z = size * size
    small = b.fma(size, b.polynomial(z, table(b, "erf")), size)
    t = b.maximum(0.0, size - 1.0)
    k, r, c = reduce(b, -t * b.polynomial(t, table(b, "erfc")))
    large = b.fma(-table(b, "erfc_one")[0], exp_core(b, r, c) * b.power_of_two(k), 1.0)
    return b.copysign(b.select(size < 1.0, small, large), x)
