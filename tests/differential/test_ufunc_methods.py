"""``reduce accumulate reduceat outer at`` of NumPy's binary ufuncs, with their keywords."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check
from tolerance import Ulp

FLOATS = np.arange(12.0).reshape(3, 4) / 3 + 0.5
INTS = np.arange(12).reshape(3, 4) + 1
MASK = FLOATS > 2
BITS = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm, np.left_shift)
PREDICATES = {np.logical_and, np.logical_or, np.logical_xor, np.equal}
HAVE_IDENTITY = {np.maximum, np.minimum, np.fmax, np.fmin}
UFUNCS = [
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.subtract, np.divide,
    np.floor_divide, np.remainder, np.power, np.hypot, np.arctan2, np.logaddexp, np.logaddexp2,
    np.logical_and, np.logical_or, np.logical_xor, np.equal, *BITS,
]
each_ufunc = pytest.mark.parametrize("u", UFUNCS, ids=lambda u: u.__name__)
NEAR = Ulp(16, 16)


def operand(u: np.ufunc) -> np.ndarray:
    return INTS if u in BITS else FLOATS


@each_ufunc
def test_reduce(u: np.ufunc) -> None:
    x = operand(u)
    check(lambda x: u.reduce(x), x, tolerance=NEAR)
    check(lambda x: u.reduce(x, axis=1, keepdims=True), x.T, tolerance=NEAR)
    if u.identity is not None or u in HAVE_IDENTITY:
        check(lambda x, m: u.reduce(x, axis=0, where=m, initial=1), x, MASK, tolerance=NEAR)
        check(lambda x: u.reduce(x, axis=(0, 1)), x, tolerance=NEAR)


@each_ufunc
def test_accumulate_reduceat_and_outer(u: np.ufunc) -> None:
    x = operand(u)
    check(lambda x: u.accumulate(x, axis=1), x, tolerance=NEAR)
    check(lambda x: u.reduceat(x, [0, 2], axis=1), x, tolerance=NEAR)
    check(lambda x: u.outer(x[0], x[1]), x, tolerance=NEAR)


@pytest.mark.parametrize("u", [u for u in UFUNCS if u not in PREDICATES],
                         ids=lambda u: u.__name__)
def test_out_and_at(u: np.ufunc) -> None:
    x = operand(u)

    def at(x: Any) -> Any:
        y = x.copy()
        u.at(y, [0, 2, 0], 2)
        return y

    check(at, x, tolerance=NEAR)
    check(lambda x: u.reduce(x, out=np.zeros(4, x.dtype)), x, tolerance=NEAR)
    check(lambda x: u.accumulate(x, out=np.zeros(x.shape, x.dtype)), x, tolerance=NEAR)


def test_keywords_of_calls() -> None:
    x, i, m = FLOATS, INTS, MASK
    check(lambda i: np.add.reduce(i, dtype=np.float32), i)
    check(lambda i: np.add(i, 1, dtype=np.float32), i)
    check(lambda x, i: np.add(x, i, out=np.zeros((3, 4), np.float32), casting="unsafe"), x, i)
    check(lambda x, m: np.sqrt(x, out=np.ones((3, 4)), where=m), x, m)
    check(lambda x, m: np.nextafter(x, 3.0, where=m, out=np.zeros((3, 4))), x, m)
    check(lambda x: np.divmod(x, 2, out=(np.zeros((3, 4)), np.zeros((3, 4)))), x)
    check(lambda x: np.modf(x, np.zeros((3, 4)), np.zeros((3, 4))), x)
    check(lambda x: np.frexp(x, out=(np.zeros((3, 4)), None)), x)
    check(lambda x, i: (np.ldexp(x, i % 4), np.frexp(x), np.spacing(x)), x, i)


def test_several_results_delivered_under_a_mask() -> None:
    def f(x: Any, m: Any) -> Any:
        mantissa, exponent = np.zeros((3, 4)), np.zeros((3, 4), np.int32)
        np.frexp(x, out=(mantissa, exponent), where=m)
        return mantissa, exponent

    check(f, FLOATS, MASK)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "i8"])
def test_integer_powers_of_arrays(dtype: str) -> None:
    base, exponent = INTS.astype(dtype), (INTS % 6).astype(dtype)
    check(lambda b, e: (b**e, 2**e, b ** np.int8(3), np.power(b, 70)), base, exponent)
    check(lambda b, e: b**e, INTS, -INTS)  # ValueError, when it runs
