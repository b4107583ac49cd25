"""Functions whose results formulas choose by their operands: see `fusec.ops.formulas`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..formulas import FORMULAS
from .elements.powers import by_base, by_exponent
from .protocol import ZERO, Partial, declare
from .terms import Number, Term, exp, log, sqrt, square, where

Slope = Callable[..., Term | Number]


def share(a: Term, y: Term, power: Callable[[Term], Term] = exp) -> Term:
    """The part of a sum of exponentials that the one of ``a`` is, where ``y`` is the sum's
    logarithm.  Of nothing it is nothing."""
    same = a.equals(y)  # of infinities no difference says so
    part = where(same, 1, power(where(same, 0, a - y)))
    return where(y.equals(-np.inf), 0, part)


def power_of_two(x: Term) -> Term:
    return x.emit("Exp2")


def quotient(x: Term, z: Term) -> Term:
    """``x / z``, which is 0 for 0, whatever z is."""
    nothing = x.equals(0)
    return where(nothing, 0, x / where(nothing, 1, z))


def log_ratio(x: Term, z: Term) -> Term:
    """``log(x / z)``, without the overflow of that."""
    return log(x) - log(z)


def is_outside(x: Term, z: Term) -> Term:
    """Where relative entropies are infinite, and constant."""
    return (x < 0).emit("LogicalOr", z < 0)


def _by_width(d: Term, r: Term, y: Term) -> Term:
    none = d <= 0
    d = where(none, 1, d)
    return where(none, 0, 2 * y / d - square(r) / (d * sqrt(1 + square(r / d))))


def _by_residual(d: Term, r: Term, y: Term) -> Term:
    none = d <= 0
    return where(none, 0, r / sqrt(1 + square(r / where(none, 1, d))))


# Derivatives by each operand, of all operands and the result.
SLOPES: dict[str, tuple[Slope, ...]] = {
    "power": (by_base, by_exponent),
    "logaddexp": (lambda a, b, y: share(a, y), lambda a, b, y: share(b, y)),
    "logaddexp2": (lambda a, b, y: share(a, y, power_of_two),
                   lambda a, b, y: share(b, y, power_of_two)),
    "xlogy": (lambda x, z, y: log(z), lambda x, z, y: quotient(x, z)),
    "xlog1py": (lambda x, z, y: z.emit("Log1p"), lambda x, z, y: quotient(x, 1 + z)),
    "entr": (lambda x, y: where(x < 0, 0, -log(where(x < 0, 1, x)) - 1),),
    "rel_entr": (lambda x, z, y: where(is_outside(x, z), 0, log_ratio(x, z) + 1),
                 lambda x, z, y: where(is_outside(x, z), 0, -quotient(x, z))),
    "kl_div": (lambda x, z, y: where(is_outside(x, z), 0, log_ratio(x, z)),
               lambda x, z, y: where(is_outside(x, z), 0, 1 - quotient(x, z))),
    "pseudo_huber": (_by_width, _by_residual),
}


def _of_result(slope: Slope) -> Partial:
    """The partial of a row, whose first operand is the formula's result."""
    return lambda chosen, *operands: slope(*operands)


for _function, (_name, _) in FORMULAS.items():
    declare(_name, partials=(ZERO, *map(_of_result, SLOPES[_function])))
