"""Reductions over every set of axes, in every dtype and layout, and matrix products."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary, specials
from harness import check
from tolerance import EXACT, NEAR, Tolerance, Ulp

AXES = [None, 0, 1, 2, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2), ()]
EXACT_ONES = ["max", "min", "any", "all", "argmax", "argmin", "count_nonzero", "ptp"]
ROUNDED = ["sum", "prod", "mean", "var", "std"]


def tolerance_of(name: str, dtype: str) -> Tolerance:
    """Integer sums are exact; float sums keep to a few ulp of the terms' magnitude."""
    if name in EXACT_ONES or (np.dtype(dtype).kind in "biu" and name in ("sum", "prod")):
        return EXACT
    return Ulp(8, scale=10.0)


def defined(name: str, dtype: str) -> bool:
    return not (name == "ptp" and dtype == "?")


@pytest.mark.parametrize("name", EXACT_ONES + ROUNDED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(name: str, dtype: str) -> None:
    function, x = getattr(np, name), ordinary(dtype, 4, 5, 6)
    if not defined(name, dtype):
        return
    axes = [None, 1] if name in ("argmax", "argmin") else [None, 0, (1, 2)]
    tolerance = tolerance_of(name, dtype)
    check(lambda x: tuple(function(x, axis=a) for a in axes), x, tolerance=tolerance)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(axis: Any, keepdims: bool) -> None:
    def f(x: Any) -> Any:
        return [getattr(x, n)(axis=axis, keepdims=keepdims) for n in ("sum", "max", "mean", "any")]

    for x in (ordinary("f8", 4, 5, 6), ordinary("f8", 6, 4, 5).transpose(1, 2, 0),
              ordinary("f8", 8, 5, 6)[::-2]):
        check(f, x, tolerance=Ulp(8, scale=10.0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    x = LAYOUTS[layout]("f8")

    def f(x: Any) -> Any:
        results = [x.sum(), np.sum(x * 2), x.prod(), x.any(), np.count_nonzero(x)]
        for axis in range(x.ndim):
            results += [x.sum(axis=axis), x.sum(axis=axis, keepdims=True)]
        return results

    check(f, x, tolerance=Ulp(8, scale=10.0))

    def extremes(x: Any) -> Any:
        results = [x.max(), x.argmin(), np.ptp(x)]
        for axis in range(x.ndim):
            results += [x.min(axis=axis), x.argmax(axis=axis), x.mean(axis=axis)]
        return results

    check(extremes, x, tolerance=Ulp(8, scale=10.0))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "any", "all", "sum", "mean"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_values(name: str, dtype: str) -> None:
    """NaN wins everywhere; infinities add up to themselves or NaN."""
    function = getattr(np, name)
    x = specials(dtype)
    for part in (x, x[:12], x[13:15], x[12:15], x[::-1], np.full(5, np.nan, dtype)):
        check(lambda x: function(x), part, tolerance=Ulp(16, scale=1.0))
    grid = np.stack([x, np.roll(x, 7), -x])
    check(lambda x: (function(x, axis=0), function(x, axis=1)), grid, tolerance=Ulp(16, scale=1.0))


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "u8"])
def test_integer_extremes_and_overflow(dtype: str) -> None:
    x = specials(dtype)
    check(lambda x: (x.sum(), x.prod(), x.max(), x.min(), x.argmax(), x.argmin()), x,
          tolerance=NEAR)
    # The extremes cancel: what is left of their sum depends on the order of addition.
    largest = float(np.abs(x.astype(np.float64)).max())
    check(lambda x: x.mean(), x, tolerance=Ulp(4, scale=largest))


@pytest.mark.parametrize("out", DTYPES)
@pytest.mark.parametrize("dtype", ["i1", "i4", "f4", "f8"])
def test_dtype_argument(dtype: str, out: str) -> None:
    if (np.dtype(out).kind in "biu" and dtype[0] == "f") or out == "?":
        return
    x = np.abs(ordinary(dtype, 3, 7))
    check(lambda x: (x.sum(dtype=out), x.sum(axis=0, dtype=out), np.prod(x, axis=1, dtype=out)), x,
          tolerance=Ulp(8, scale=10.0))


def test_out_argument() -> None:
    def f(x: Any, y: Any) -> Any:
        r = np.sum(x, axis=0, out=y)
        z = np.zeros(x.shape[0])
        x.max(axis=1, out=z)
        return r, z

    check(f, ordinary("f8", 4, 5), np.zeros(5), tolerance=NEAR)
    x = np.arange(20).reshape(4, 5)
    check(lambda x, y: np.add.reduce(x, axis=1, out=y), x, np.zeros(4, "i8"))


@pytest.mark.parametrize("ddof", [0, 1, 3, 7])
def test_spread(ddof: int) -> None:
    x = ordinary("f8", 5, 6)
    check(lambda x: (x.var(ddof=ddof), x.std(axis=0, ddof=ddof), np.var(x, axis=1, ddof=ddof)), x,
          tolerance=NEAR)
    check(lambda x: x.var(axis=0, ddof=ddof), ordinary("i2", 5, 6), tolerance=NEAR)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_to_reduce(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    check(lambda x: (x.sum(), x.prod(), x.any(), x.all(), x.sum(axis=0), x.prod(axis=-1)), x)
    check(lambda x: (x.mean(), x.var(), x.mean(axis=0)), x)
    for name, axis in itertools.product(["max", "min", "argmax", "argmin"], range(x.ndim)):
        check(lambda x, n=name, a=axis: getattr(x, n)(axis=a), x)
        check(lambda x, n=name: getattr(x, n)(), x)


def test_ufunc_reduce() -> None:
    x = ordinary("i4", 4, 5)
    check(lambda x: (np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x, None),
                     np.minimum.reduce(x, axis=(0, 1), keepdims=True),
                     np.logical_or.reduce(x > 3), np.logical_and.reduce(x, axis=1)), x)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layernorm(x: Any) -> Any:
    m, s = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - m) / np.sqrt(s + 1e-5)


def columns(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


def chained(x: Any) -> Any:
    total = x.sum()
    return x / total, (x / total).max(axis=0), ((x - total) ** 2).sum(axis=1).argmin()


def several(x: Any) -> Any:
    return x.sum(0), x.sum(1), x.max(), (x * x).sum(1) - x.sum(1) ** 2, x.argmax(1)


@pytest.mark.parametrize("f", [softmax, layernorm, columns, chained, several],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_fused_reductions(f: Callable[..., Any], dtype: str) -> None:
    for shape in ((7, 9), (1, 9), (7, 1), (33, 70)):
        x = ordinary(dtype, *shape)
        near = Ulp(16, scale=100.0)
        check(f, x, tolerance=near)
        check(f, np.asfortranarray(x), tolerance=near)


# -------------------------------------------------------------------------------- matrix products

PRODUCTS = [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)),
            ((2, 3, 4), (2, 4, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5))]


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_products(shapes: Any, dtype: str) -> None:
    a, b = (ordinary(dtype, *s, seed=k) for k, s in enumerate(shapes))
    near = Ulp(8, scale=100.0)
    check(lambda a, b: (a @ b, np.matmul(a + 1, b)), a, b, tolerance=near)
    check(lambda a, b: np.matmul(b.T, a.T), a, b, tolerance=near)
    if a.ndim < 3:
        check(lambda a, b: (np.dot(a, b), a.dot(b) * 2), a, b, tolerance=near)


def test_products_in_programs() -> None:
    def f(x: Any, w: Any, b: Any) -> Any:
        h = np.maximum(x @ w + b, 0)
        return h @ h.T, (h - h.mean(0)).T @ x

    check(f, ordinary("f8", 6, 4), ordinary("f8", 4, 5), ordinary("f8", 5),
          tolerance=Ulp(32, scale=100.0))

    def written_after(x: Any, y: Any) -> Any:
        product = x.T @ y
        x += 1
        return product, x.T @ y

    check(written_after, ordinary("f8", 4, 5), ordinary("f8", 4, 3), tolerance=Ulp(32, scale=100.0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (3, 100), (100, 3), (2, 40_000)])
def test_positions_where_nothing_beats_the_start(dtype: str, shape: tuple[int, ...]) -> None:
    """Rows of the worst value that there is, and of it and one other."""
    kind = np.dtype(dtype)
    worst = [-np.inf, np.inf] if kind.kind == "f" else [False, True] if kind.kind == "b" else [
        np.iinfo(kind).min, np.iinfo(kind).max]
    for value in worst:
        x = np.full(shape, value, kind)
        one = x.copy()
        one.flat[x.size // 2:] = worst[0] if value == worst[1] else worst[1]
        for array in (x, one):
            check(lambda x: (x.argmax(), x.argmin(), x.argmax(-1), x.argmin(0)), array)
    if kind.kind == "f":
        x = np.full(shape, -np.inf, kind)
        x.flat[x.size // 3::2] = np.nan
        check(lambda x: (x.argmax(), x.argmin(), x.argmax(-1), x.argmin(0)), x)
