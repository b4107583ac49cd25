"""A fused multiply-add in NumPy, rounded once, as the hardware instruction does.

Method: Boldo and Melquiond, *Emulation of a FMA and correctly rounded sums: proved algorithms using
rounding to odd*, IEEE Transactions on Computers 57(4), 2008.  Where scaling could spoil its exact
products (exponents near the ends of the range) elements are done one by one with fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]
# Within these every product, and every error term of one, is a normal float64.
SMALLEST, LARGEST = 2.0**-400, 2.0**400


def exact_fma(a: Any, b: Any, c: Any) -> np.ndarray:
    """``a*b + c`` with one rounding; float32 or float64 operands of one dtype, broadcast."""
    arrays = np.broadcast_arrays(a, b, c)
    dtype = arrays[0].dtype
    a, b, c = (np.asarray(x, np.float64) for x in arrays)
    with np.errstate(all="ignore"):
        if dtype == np.float64:
            return _fma64(a, b, c)
        # The product of two float32 is exact in float64; an odd sum then rounds correctly.
        return np.asarray(_add_to_odd(*_two_sum(a * b, c))).astype(dtype)


def _two_sum(a: np.ndarray, b: np.ndarray) -> Pair:
    """The rounded sum and its error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _split(a: np.ndarray) -> Pair:
    """Two halves of 26 bits whose sum is ``a`` (Veltkamp)."""
    t = a * 134217729.0
    high = t - (t - a)
    return high, a - high


def _two_product(a: np.ndarray, b: np.ndarray) -> Pair:
    """The rounded product and its error (Dekker)."""
    p = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _add_to_odd(s: np.ndarray, error: np.ndarray) -> np.ndarray:
    """``s + error`` rounded to odd: where inexact, the neighbour whose last bit is 1."""
    s = np.array(s, np.float64)
    bits = s.view(np.int64)
    inexact = np.isfinite(s) & (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (s > 0)
    bits += np.where(inexact, np.where(away, 1, -1), 0)
    return s


def _fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    high, low = _two_product(a, b)
    sum_high, sum_low = _two_sum(c, low)
    total, rest = _two_sum(high, sum_high)
    result = np.array(total + _add_to_odd(*_two_sum(rest, sum_low)))
    safe = _is_safe(a, b) & ((c == 0) | (np.abs(c) < LARGEST) & (np.abs(c) > SMALLEST))
    safe &= (a != 0) & (b != 0) & (total != 0)
    for index in np.ndindex(*result.shape):
        if not safe[index]:
            result[index] = _by_fraction(float(a[index]), float(b[index]), float(c[index]))
    return result


def _is_safe(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    size, other = np.abs(a), np.abs(b)
    return (size > SMALLEST) & (size < LARGEST) & (other > SMALLEST) & (other < LARGEST)


def _by_fraction(a: float, b: float, c: float) -> float:
    product = np.float64(a) * np.float64(b)
    if not np.isfinite([a, b]).all():
        return float(product + np.float64(c))
    if not np.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return float(product + np.float64(c))  # the product is exact here: the sign is right
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf
