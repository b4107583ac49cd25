"""Scans: cumulative sums and their kin, fused, along every axis, in NumPy's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary, specials
from harness import check

import fusec

SCANS: dict[str, Callable[..., Any]] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "nancumsum": np.nancumsum,
    "nancumprod": np.nancumprod, "maximum": np.maximum.accumulate, "minimum":
    np.minimum.accumulate, "add": np.add.accumulate, "multiply": np.multiply.accumulate,
    "logical_and": np.logical_and.accumulate, "logical_or": np.logical_or.accumulate,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCANS)
def test_dtypes_and_special_values(name: str, dtype: str) -> None:
    scan, x = SCANS[name], specials(dtype)
    if name in ("maximum", "minimum"):  # which zero wins is not promised
        check(lambda x: scan(x) + 0, x, source=True)
        return
    check(lambda x: scan(x), x, source=True)
    for value in (-0.0, np.nan, -np.inf) if dtype[0] == "f" else (0,):
        check(lambda x: scan(x), np.array([value, 1, value, 2]).astype(dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["cumsum", "nancumprod", "maximum", "logical_or"])
def test_layouts_and_axes(name: str, layout: str) -> None:
    scan, x = SCANS[name], LAYOUTS[layout]("f8")
    if not x.ndim:
        return
    for axis in (*range(x.ndim), -1):
        check(lambda x, a=axis: scan(x, a), x, source=True)
        check(lambda x, a=axis: scan(x * 2, axis=a)[::-1] + 1, x)
    if name == "cumsum":
        check(lambda x: (np.cumsum(x), x.cumsum()), x)


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (0, 3), (1, 5), (5, 1), (2, 3, 4)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = ordinary("f8", *shape)
    for axis in range(len(shape)):
        check(lambda x, a=axis: (np.cumsum(x, a), np.maximum.accumulate(x, a)), x, source=True)
    check(lambda x: np.cumprod(x), x)


@pytest.mark.parametrize("count", [7, 8, 9, 33, 70_001])
def test_long(count: int) -> None:
    """Whole vectors and the rest; one order whatever the length."""
    x = ordinary("f8", count)
    check(lambda x: np.cumsum(x), x, engines=count < 100)
    check(lambda x: np.cumsum(np.sqrt(np.abs(x)) + 1) * 2, x, engines=count < 100)
    check(lambda x: np.cumsum(x.reshape(-1, 1).repeat(3, 1), 0), x, engines=count < 100)
    check(lambda x: np.cumsum(x.astype("f4")), x, engines=count < 100)


def test_rows_and_columns_in_parallel() -> None:
    x = ordinary("f8", 700, 300)
    check(lambda x: (np.cumsum(x, 0), np.cumsum(x, 1), x.T.cumsum(0)), x, engines=False)


def kernels(f: Callable[..., Any], *args: Any) -> tuple[int, int]:
    concrete = fusec.jit(f).concrete(*args)
    return len(concrete.kernels), len(concrete.externs)


def test_producers_and_epilogues_are_fused() -> None:
    x, i = ordinary("f8", 30, 20), np.arange(20)[::-1].copy()
    programs: list[Callable[..., Any]] = [
        lambda x: np.cumsum(x * 2 - 1, axis=1) * 3, lambda x: np.cumsum(np.cumsum(x, 0), 0),
        lambda x: (np.cumsum(x, 0), np.cumprod(x, 0), x + 1),
        lambda x: np.cumsum(x[:, None, :] * x[:20, :].T[None], axis=2),
    ]
    for f in programs[:3]:
        check(f, x, source=True)
        assert kernels(f, x) == (1, 0)
    check(lambda x, i: np.cumsum(x[:, i], axis=1), x, i, source=True)
    assert kernels(lambda x, i: np.cumsum(x[:, i], axis=1), x, i) == (1, 0)


def test_with_reductions_and_other_indices() -> None:
    x = np.rint(ordinary("f8", 30, 20))
    check(lambda x: np.cumsum(x, 1).max(1), x)
    check(lambda x: np.cumsum(x - x.max(1, keepdims=True), 1), x)
    check(lambda x: np.cumsum(x, 1)[:, 5:] - np.cumsum(x, 1)[:, :-5], x)
    check(lambda x: np.cumsum(x, 1) - np.cumsum(x, 0), x)
    check(lambda x: np.cumsum(x, 0)[-1] == x.sum(0), x)
    check(lambda x: np.cumsum(np.concatenate([x[0], x[1]])), x)

    def moving_average(x, n=5):
        c = np.cumsum(x)
        c[n:] = c[n:] - c[:-n]
        return c[n - 1:] / n

    check(moving_average, x[0].copy())


def test_arguments_updated_by_a_scan() -> None:
    def f(x):
        x[:] = np.cumsum(x, 1)

    def g(x):
        x += np.maximum.accumulate(x, 0)

    check(f, ordinary("f8", 6, 9))
    check(g, ordinary("f8", 6, 9))
    check(lambda x: np.cumsum(x, 1, out=x) + 1, ordinary("f8", 6, 9))


def test_what_numpy_refuses() -> None:
    check(lambda x: np.cumsum(x, 2), ordinary("f8", 3, 4))
    check(lambda x: np.add.accumulate(x, 5), ordinary("f8", 3, 4))
    check(lambda x: np.cumsum(x, dtype="f4"), ordinary("f8", 3, 4))
    check(lambda x: np.subtract.accumulate(x), ordinary("f8", 3, 4))
