"""Functions of sizes: those that give sizes, those that ask nothing, and their bounds."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .bounds import bounds
from .dims import maximum, minimum
from .polynomials import Size

MOST_EXPONENT = 8  # of a power of a size: none that is beyond all floats


def _power(base: Size, exponent: Size) -> Size | None:
    """A product of sizes; None for powers that are none."""
    return functools.reduce(operator.mul, [base] * exponent) if (
        type(exponent) is int and 0 < exponent <= MOST_EXPONENT) else None


DIM_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    **{fn: fn for fn in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
                         operator.neg, operator.pos, operator.abs)},
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.int64: operator.pos, np.maximum: maximum, np.minimum: minimum,
    abs: operator.abs, min: minimum, max: maximum, int: operator.pos, round: operator.pos,
    operator.index: operator.pos, operator.pow: _power,
}
RING = frozenset({operator.add, operator.sub, operator.mul})
DIVISIONS = (operator.floordiv, operator.mod, operator.truediv)
TOTAL = frozenset([*DIVISIONS, operator.add, operator.sub, operator.mul, operator.neg,
                   operator.pos, operator.abs, abs, min, max, np.int64, np.float64, np.float32,
                   np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum,
                   np.sqrt, np.sin, np.cos])


def is_total(
    fn: Callable[..., Any], sizes: Sequence[Size | None], args: Sequence[Any] = ()
) -> bool:
    """Whether it has a value for all operands ``args``: ``sizes`` are those that are sizes."""
    if fn in (operator.pow, math.pow):
        if not args or sizes[0] is None or type(args[1]) not in (int, float):
            return False
        low, _ = bounds(sizes[0])
        is_product = fn is operator.pow and type(args[1]) is int and args[1] > 0
        return abs(args[1]) <= MOST_EXPONENT and (is_product or (low is not None and low >= 1))
    if fn is math.sqrt and sizes[0] is not None:
        low, _ = bounds(sizes[0])
        return low is not None and low >= 0
    return fn in TOTAL or fn is float or (None not in sizes and fn in DIM_FUNCTIONS)


def decided(fn: Callable[[Any, Any], bool], difference: Size) -> bool | None:
    """Whether ``fn(difference, 0)`` holds for all sizes; None where it depends on them."""
    low, high = bounds(difference)
    if fn is operator.eq:
        if (low, high) == (0, 0):
            return True
        return False if (low is not None and low > 0) or (high is not None and high < 0) else None
    limit = 0 if fn is operator.lt else 1  # difference < limit
    if high is not None and high < limit:
        return True
    return False if low is not None and low >= limit else None
