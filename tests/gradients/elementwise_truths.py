"""Derivatives of elementwise rows by mpmath at 60 digits, and points where they are asked.

`FUNCTIONS` has each row as a function of mpmath numbers, analytic around its points; mpmath itself
differentiates it.  Points are numbers of float16, so that every dtype has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
from mpmath import mp

REALS = (0.5, -0.5, 0.0625, -1.75, 2.5, -3.0, 0.873046875)
POSITIVE = (0.5, 0.0625, 1.75, 2.5, 11.0, 0.873046875)
UNIT = (0.5, -0.5, 0.0625, 0.873046875, -0.99609375, 0.0)
ABOVE_ONE = (1.5, 1.0625, 3.25, 17.0)
COMPLEX = (0.5 + 0.25j, -0.75 + 1.5j, 2.0 - 0.5j, -1.25 - 2.0j, 0.125j, 0.375 + 0j)
OFF_CUTS = (0.5 + 0.25j, -0.75 + 1.5j, 2.0 - 0.5j, -1.25 - 2.0j, 0.375 + 0.0625j)
PAIRS = ((0.5, 2.5), (-1.75, 0.75), (3.0, -0.5), (-2.5, -1.25), (0.0625, 11.0))
POSITIVE_PAIRS = ((0.5, 2.5), (1.75, 0.75), (3.0, -0.5), (2.5, -1.25), (0.0625, 3.0))
QUOTIENTS = ((0.5, 2.5), (-1.75, 0.75), (3.25, -0.5), (-2.5, -0.875), (11.0, 0.75))
COMPLEX_PAIRS = ((0.5 + 0.25j, -0.75 + 1.5j), (2.0 - 0.5j, -1.25 - 2.0j), (1 + 1j, 0.5 + 0j))

Function = Callable[..., Any]
Points = Sequence[Any]


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _logit(x: Any) -> Any:
    return mp.log(x / (1 - x))


# row: the function, real points, complex points
FUNCTIONS: dict[str, tuple[Function, Points, Points]] = {
    "Add": (lambda a, b: a + b, PAIRS, COMPLEX_PAIRS),
    "Sub": (lambda a, b: a - b, PAIRS, COMPLEX_PAIRS),
    "Mul": (lambda a, b: a * b, PAIRS, COMPLEX_PAIRS),
    "Div": (lambda a, b: a / b, PAIRS, COMPLEX_PAIRS),
    "Mod": (lambda a, b: a - b * mp.floor(a / b), QUOTIENTS, ()),
    "Fmod": (lambda a, b: a - b * int(a / b), QUOTIENTS, ()),
    "Pow": (lambda a, b: a ** b, POSITIVE_PAIRS, COMPLEX_PAIRS),
    "Neg": (lambda x: -x, REALS, COMPLEX), "Pos": (lambda x: x, REALS, COMPLEX),
    "Fabs": (abs, REALS, ()), "Square": (lambda x: x * x, REALS, COMPLEX),
    "Reciprocal": (lambda x: 1 / x, REALS, COMPLEX),
    "Maximum": (lambda a, b: max(a, b), PAIRS, ()),
    "Minimum": (lambda a, b: min(a, b), PAIRS, ()),
    "Fmax": (lambda a, b: max(a, b), PAIRS, ()), "Fmin": (lambda a, b: min(a, b), PAIRS, ()),
    "Copysign": (lambda a, b: abs(a) * (1 if b > 0 else -1), PAIRS, ()),
    "Heaviside": (lambda a, b: b if a == 0 else mp.mpf(a > 0), PAIRS, ()),
    "Deg2rad": (lambda x: x * mp.pi / 180, REALS, ()),
    "Rad2deg": (lambda x: x * 180 / mp.pi, REALS, ()),
    "Sqrt": (mp.sqrt, POSITIVE, OFF_CUTS), "Cbrt": (mp.cbrt, POSITIVE, ()),
    "Exp": (mp.exp, REALS, COMPLEX), "Exp2": (lambda x: 2 ** x, REALS, COMPLEX),
    "Expm1": (mp.expm1, (*REALS, -11.0), COMPLEX), "Log": (mp.log, POSITIVE, OFF_CUTS),
    "Log2": (lambda x: mp.log(x) / mp.log(2), POSITIVE, OFF_CUTS),
    "Log10": (lambda x: mp.log(x) / mp.log(10), POSITIVE, OFF_CUTS),
    "Log1p": (lambda x: mp.log(1 + x), POSITIVE, OFF_CUTS),
    "Sin": (mp.sin, REALS, COMPLEX), "Cos": (mp.cos, REALS, COMPLEX),
    "Tan": (mp.tan, REALS, COMPLEX), "Arcsin": (mp.asin, UNIT, OFF_CUTS),
    "Arccos": (mp.acos, UNIT, OFF_CUTS), "Arctan": (mp.atan, REALS, OFF_CUTS),
    "Arctan2": (mp.atan2, PAIRS, ()), "Sinh": (mp.sinh, REALS, COMPLEX),
    "Cosh": (mp.cosh, REALS, COMPLEX), "Tanh": (mp.tanh, REALS, COMPLEX),
    "Arcsinh": (mp.asinh, (*REALS, 300.0), OFF_CUTS),
    "Arccosh": (mp.acosh, ABOVE_ONE, OFF_CUTS), "Arctanh": (mp.atanh, UNIT, OFF_CUTS),
    "Hypot": (mp.hypot, (*PAIRS, (300.0, 400.0)), ()),
    "Erf": (mp.erf, REALS, ()), "Erfc": (mp.erfc, REALS, ()),
    "Gammaln": (lambda x: mp.log(mp.gamma(x)), POSITIVE, ()),
    "Expit": (lambda x: 1 / (1 + mp.exp(-x)), REALS, ()),
    "Logit": (_logit, (0.5, 0.0625, 0.873046875), ()), "Ndtr": (_ndtr, REALS, ()),
    "LogNdtr": (lambda x: mp.log(_ndtr(x)), (*REALS, -20.0), ()),
    "Exp10": (lambda x: 10 ** x, REALS, ()),
    "Fma": (lambda a, b, c: a * b + c, ((0.5, 2.5, -1.75), (-3.0, 0.75, 11.0)), ()),
    "Copy": (lambda x: x, REALS, COMPLEX),
}
# Derivatives that are exact to roundings of 1, not of themselves: their formulas stand with them.
ABSOLUTE = {"Tanh", "Expit"}
# The exponent of an exponential is rounded: by how many units times its size.
STEEP = {"LogNdtr": 400, "Erf": 10, "Erfc": 10, "Ndtr": 10, "Exp10": 10}


def truth(name: str, point: Sequence[Any], operand: int) -> complex:
    """The derivative of the row by that operand at a point."""
    function = FUNCTIONS[name][0]
    numbers = [mpmath.mpmathify(x) for x in point]

    def of_one(x: Any) -> Any:
        return function(*numbers[:operand], x, *numbers[operand + 1:])

    with mp.workdps(60):
        return complex(mp.diff(of_one, numbers[operand], h=mp.mpf(2) ** -60))


def points(name: str, dtype: np.dtype) -> list[tuple[Any, ...]]:
    """The row's points for a dtype, each a tuple of operands."""
    given = FUNCTIONS[name][2 if dtype.kind == "c" else 1]
    return [p if isinstance(p, tuple) else (p,) for p in given]
