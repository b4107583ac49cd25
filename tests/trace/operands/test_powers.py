"""An exponent of 0.5: NumPy's loop takes ``sqrt`` where it meets one exponent only."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fusec

SHAPES = [(), (1,), (1, 1), (3,), (1, 3), (3, 1), (3, 3), (4, 3, 1), (5, 1, 3)]
DTYPES = ["f4", "f8"]


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.power(x, y)


def check(base: np.ndarray, exponent: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        want = np.power(base, exponent)
        got = fusec.jit(power)(base, exponent)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("base", [-np.inf, -0.0])
def test_broadcast_exponents_of_a_half(dtype: str, base: float) -> None:
    for left, right in itertools.product(SHAPES, SHAPES):
        try:
            np.broadcast_shapes(left, right)
        except ValueError:
            continue
        check(np.full(left, base, dtype), np.full(right, 0.5, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponents_that_are_views_with_a_stride_of_0(dtype: str) -> None:
    half = np.full((1, 1), 0.5, dtype)
    check(np.full(1, -np.inf, dtype), np.broadcast_to(half, (1, 3)))
    check(np.full((3, 3), -np.inf, dtype), np.broadcast_to(half, (3, 3)))
    check(np.full((3, 3), -np.inf, dtype).T, np.broadcast_to(half, (2, 3, 3)))


def test_exponents_that_are_cast_lie_in_a_buffer() -> None:
    for shape in ((1,), (1, 1), (3,), (3, 1), (3, 3)):
        check(np.full((3, 3), -np.inf), np.full(shape, 0.5, "f4"))
        check(np.full(1, -np.inf), np.full(shape, 0.5, "f4"))


def test_dtypes_are_looked_at_before_shapes() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        found = x.any((-1,))
        found **= x
        return found

    with pytest.raises(TypeError, match="Cannot cast ufunc 'power' output"):
        fusec.jit(program)(np.ones((3, 2), "u4"))
