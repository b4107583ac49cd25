"""Functions across NumPy's namespace that no other file has: one call, or a few, of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check
from tolerance import Ulp

X = np.arange(12.0).reshape(3, 4) / 3 + 0.5
I = np.arange(12).reshape(3, 4) + 1  # noqa: E741
NEAR = Ulp(16, 16)

CALLS: dict[str, Callable[[Any], Any]] = {
    "r_": lambda x: np.r_[x[0], 1.0, x[1], 2:4],
    "r_ stacked": lambda x: np.r_["0,2", x[0], x[1]],
    "c_": lambda x: np.c_[x[0], x[1]],
    "mgrid": lambda x: np.mgrid[0:3, 0:4] * x,
    "ogrid": lambda x: np.ogrid[0:3, 0:4][0] * x,
    "require": lambda x: np.require(x, np.float32, "C"),
    "require order": lambda x: np.require(x, requirements=["F", "A", "W"]),
    "require own": lambda x: np.require(x[1:], requirements="O"),
    "einsum_path": lambda x: np.einsum_path("ij,kj->ik", x, x)[0],
    "from_dlpack": lambda x: np.from_dlpack(x) + 1,
    "poly": lambda x: np.poly(x[0]),
    "polymul": lambda x: np.polymul(x[0], x[1]),
    "histogram_bin_edges": lambda x: np.histogram_bin_edges(x, 5),
    "isdtype": lambda x: x * np.isdtype(x.dtype, "real floating"),
    "finfo": lambda x: x * np.finfo(x.dtype).eps,
    "windows": lambda x: x[0] * np.hanning(4) * np.kaiser(4, 2.0),
    "nan functions": lambda x: (
        np.nanmedian(x), np.nanpercentile(x, 30), np.nancumsum(x), np.nanargmax(x),
        np.nanstd(x, axis=1, ddof=1)),
    "select": lambda x: np.select([x < 1, x < 3], [x, x * 2], default=0),
    "trapezoid": lambda x: np.trapezoid(x, dx=0.5),
    "ix_": lambda x: x[np.ix_([0, 2], [1, 3])],
    "apply_along_axis": lambda x: np.apply_along_axis(lambda v: v - v.mean(), 1, x),
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [0, 1]),
    "unstack": lambda x: np.unstack(x),
    "block": lambda x: np.block([[x, x], [x * 2, x]]),
    "ranks": lambda x: (np.linalg.matrix_rank(x), np.linalg.cond(x[:, :3] + np.eye(3)),
                        np.linalg.slogdet(x[:, :3] + np.eye(3))),
    "index pairs": lambda x: (x[np.tril_indices(3)], x[np.diag_indices(3)]),
    "diff": lambda x: (np.diff(x, prepend=0, append=1), np.diff(x, 2, axis=0, prepend=x[:1])),
    "average": lambda x: (np.average(x, axis=1, weights=[1, 2, 3, 4.0]),
                          np.average(x, weights=x, returned=True)),
    "moments": lambda x: (x.std(ddof=1, axis=0), x.var(axis=(0, 1), keepdims=True),
                          np.std(x, correction=1), np.mean(x, where=x > 1)),
    "extrema": lambda x: (x.max(axis=0, initial=3.0), x.min(where=x > 1, initial=100),
                          x.argmax(axis=1, keepdims=True)),
    "spaces": lambda x: (np.linspace(x[0], x[1], 5), np.geomspace(1.0, 10.0, 5) * x[0, 0]),
    "products": lambda x: (np.vecdot(x, x), np.matvec(x, x[0]), np.vecmat(x[:, 0], x)),
    "polynomials": lambda x: (
        np.polynomial.polynomial.polyval(x, [1, 2, 3.0]), np.poly1d([1, 2, 3])(x),
        np.polynomial.chebyshev.chebval(x, [1, 2, 3.0]),
        np.polynomial.Polynomial([1, 2, 3.0])(x),
        np.polynomial.Chebyshev([1, 2, 3.0], domain=[0, 4])(x)),
}
INTEGER_CALLS: dict[str, Callable[[Any], Any]] = {
    "round": lambda i: (np.round(i, -1), np.round(i * 7, -2), i.round(-1)),
    "divisors": lambda i: (np.gcd(i, 6), np.lcm(i, 6)),
    "float_power": lambda i: np.float_power(i, 2),
    "choose": lambda i: np.choose(i % 3, [1, 2, 3]),
    "types": lambda i: (np.promote_types(i.dtype, np.float32).itemsize * i,
                        np.result_type(i, np.int8, 1.0).itemsize * i),
}


@pytest.mark.parametrize("name", CALLS)
def test_floats(name: str) -> None:
    check(CALLS[name], X, tolerance=NEAR)
    check(CALLS[name], np.asfortranarray(X.astype(np.float32)), tolerance=NEAR)


@pytest.mark.parametrize("dtype", ["i4", "u1", "i8"])
@pytest.mark.parametrize("name", INTEGER_CALLS)
def test_integers(name: str, dtype: str) -> None:
    check(INTEGER_CALLS[name], I.astype(dtype), tolerance=NEAR)


def test_dlpack_is_a_view() -> None:
    def f(x: Any) -> Any:
        np.from_dlpack(x)[0] = 7
        np.from_dlpack(x, copy=True)[1] = 9
        return x.sum()

    check(f, X)
