"""Remainders of floats are exact: quotients of all sizes, special values, multiples, neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fusec

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2250738585072014e-308,
           1.7976931348623157e308, 3.0, 0.1, 1e300, 2.0**53, 2.0**53 + 2, 2.0**52 + 1, 2.0**24,
           2.0**24 - 1, 0.5, 1 / 3, 1e-300, 7.0, 65504.0, 6e-8, 2.0**-126, 3e38]


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors."""
    rng = np.random.default_rng(8)
    both = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    bits = rng.integers(0, 2**63, (20_000, 2), np.uint64).view(np.float64)
    scaled = np.ldexp(rng.standard_normal((20_000, 2)), rng.integers(-70, 70, (20_000, 2)))
    divisors = scaled[:, 1].astype(dtype)
    multiples = (rng.integers(1, 2**40, 20_000) * divisors.astype(np.float64)).astype(dtype)
    x, y = (np.concatenate([a[:, k] for a in (both, bits, scaled)]).astype(dtype) for k in (0, 1))
    near = [np.nextafter(multiples, np.array(end, dtype)) for end in (0, np.inf)]
    return (np.concatenate([x, multiples, *near]), np.concatenate([y, *[divisors] * 3]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_bit_for_bit(name: str, dtype: str) -> None:
    ufunc = getattr(np, name)
    x, y = pairs(dtype)
    for a, b in ((x, y), (x[::-1][1:], y[::-1][1:])):
        found, wanted = fusec.jit(lambda x, y: ufunc(x, y))(a, b), ufunc(a, b)
        unsigned = f"u{found.itemsize}"
        same = (found.view(unsigned) == wanted.view(unsigned)) | (
            np.isnan(found) & np.isnan(wanted))
        bad = np.flatnonzero(~same)[:5]
        assert same.all(), [(a[i], b[i], found[i], wanted[i]) for i in bad]


@pytest.mark.parametrize("x", [1e300, 2.0**60 + 2.0**20, -7.25, 0.0])
def test_numbers_in_loops(x: float) -> None:
    def last(x: float, y: float, n: int) -> float:
        for _i in range(n):
            x = x % y + np.fmod(x, 3.5)
        return x

    assert fusec.jit(last)(x, 0.7, np.int64(50)) == last(x, 0.7, 50)
