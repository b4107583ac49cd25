"""Searches in tables that are known while tracing: fused loads, NumPy's results bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check

import fusec

RNG = np.random.default_rng(20261121)
NAN, INF = float("nan"), float("inf")
DTYPES = ("?", "i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
FLOAT_TABLES = (
    [0.5], [-1.0, 0.0, 0.0, 0.0, 2.0], [-INF, -1.0, 0.5, INF, INF], [-0.0, 0.0, 1.0],
    [-2.0, 1.0, NAN, NAN], [0.0, 1.0, INF, NAN], list(np.linspace(-3, 3, 64)),
)
INT_TABLES = ([3], [-3, -3, 0, 2, 2, 2, 5], [-128, 0, 127, 127], list(range(-16, 16)))
ORDINATES = ([1.0, 3.0, -2.0, 0.5, 7.0], [-0.0, -0.0, -0.0, 0.0, 1.0], [INF, 1.0, 1.0, NAN, 2.0],
             [-INF, INF, INF, -INF, 3.0], [1e308, -1e308, 1e308, 2.0, 2.0])
ABSCISSAE = ([-1.0, -0.5, 0.0, 0.25, 2.0], [-1.0, 0.0, 0.0, 0.0, 2.0], [-INF, -1.0, 0.5, 1.0, INF],
             [-INF, -INF, 0.5, INF, INF], [-1e308, -1.0, 0.0, 1.0, 1e308], [-2, -1, 0, 1, 2])


def keys(dtype: str) -> np.ndarray:
    """Small numbers with ties, and the extremes; of odd length, in two axes, Fortran order."""
    kind = np.dtype(dtype)
    data = RNG.integers(0 if kind.kind in "ub" else -6, 7, 119)
    if kind.kind == "f":
        special = [NAN, -NAN, INF, -INF, 0.0, -0.0, np.finfo(kind).max, np.finfo(kind).tiny]
        data = np.concatenate([data / 2, special, [0.1]]).astype(kind)
    elif kind.kind == "b":
        data = np.concatenate([data > 3, [True] * 9])
    else:
        ends = np.iinfo(kind)
        data = np.concatenate([data.astype(kind), np.array([ends.min, ends.max] * 4 + [1], kind)])
    return np.asfortranarray(data.reshape(4, 32)[:, :31])


def fused(f: Callable[..., Any], *args: Any) -> None:
    """Compared with NumPy, and no library call among the steps."""
    check(f, *args, fp="strict")
    assert not fusec.jit(f, fp="strict").lower(*args).externs


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("table", [*FLOAT_TABLES, *INT_TABLES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_searchsorted(dtype: str, table: list[Any], side: Any) -> None:
    fused(lambda x: np.searchsorted(table, x, side=side), keys(dtype))
    fused(lambda x: np.searchsorted(np.array(table), x[:, ::2], side), keys(dtype))


@pytest.mark.parametrize("table_dtype", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_promotion(dtype: str, table_dtype: str) -> None:
    table = np.sort(keys(table_dtype).ravel()).tolist()
    with np.errstate(all="ignore"):
        fused(lambda x: np.searchsorted(np.array(table, table_dtype), x), keys(dtype))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("table", [*FLOAT_TABLES[:4], *INT_TABLES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_digitize(dtype: str, table: list[Any], right: bool) -> None:
    fused(lambda x: np.digitize(x, table, right), keys(dtype))
    fused(lambda x: np.digitize(x, np.array(table[::-1]), right=right), keys(dtype))


@pytest.mark.parametrize("fp", ORDINATES)
@pytest.mark.parametrize("xp", ABSCISSAE)
def test_interp(xp: list[float], fp: list[float]) -> None:
    between = np.concatenate([np.linspace(-2.5, 2.5, 101), xp, keys("f8").ravel(), [1e308, -9e307]])
    with np.errstate(all="ignore"):
        for x in (between, between[:3], between.astype("f4"), np.asfortranarray(keys("i4"))):
            fused(lambda x: np.interp(x, xp, fp), x)
            fused(lambda x: np.interp(x, xp, fp, left=-1, right=np.float32(0.1)) * 2, x)
            fused(lambda x, y: np.interp(x, xp, y), x, np.array(fp))
            fused(lambda x, y: np.interp(x, xp, y[::2] + 1), x, np.repeat(np.float32(fp), 2))


@pytest.mark.parametrize("n", [2, 3, 255, 256, 1000])
def test_tables_of_few_and_of_many_steps(n: int) -> None:
    x = RNG.normal(size=3001) * 300
    fused(lambda x: np.searchsorted(np.arange(float(n)) - n // 2, x), x)
    fused(lambda x: np.interp(x, np.arange(float(n)), np.arange(float(n)) ** 2), x)


LIBRARY_CASES: dict[str, Callable[..., Any]] = {
    "unsorted": lambda x: np.searchsorted([3.0, 1.0, 2.0], x),
    "argument": lambda x: np.searchsorted(x[0], x),
    "sorter": lambda x: np.searchsorted([3.0, 1.0], x, sorter=[1, 0]),
    "empty": lambda x: np.searchsorted(np.array([]), x),
    "number": lambda x: np.searchsorted([1.0, 2.0], x[0, 0]),
    "bad side": lambda x: np.searchsorted([1.0, 2.0], x, side="middle"),
    "two axes": lambda x: np.searchsorted([[1.0, 2.0]], x),
    "bins not monotonic": lambda x: np.digitize(x, [1.0, 3.0, 2.0]),
    "bins NaN": lambda x: np.digitize(x, [1.0, NAN]),
    "interp unsorted": lambda x: np.interp(x, [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]),
    "interp period": lambda x: np.interp(x, [1.0, 3.0], [1.0, 2.0], period=2.5),
    "interp complex": lambda x: np.interp(x, [1.0, 3.0], [1j, 2.0]),
    "interp one point": lambda x: np.interp(x, [1.0], [2.0]),
    "interp lengths": lambda x: np.interp(x, [1.0, 2.0], [2.0]),
    "interp NaN": lambda x: np.interp(x, [1.0, NAN], [2.0, 3.0]),
}


@pytest.mark.parametrize("name", LIBRARY_CASES)
def test_other_tables_are_library_calls(name: str) -> None:
    check(LIBRARY_CASES[name], np.ascontiguousarray(keys("f8")), fp="strict")


def test_contents_of_an_outer_table_are_read_at_each_call() -> None:
    table = np.array([1.0, 2.0, 3.0])
    f = fusec.jit(lambda x: np.searchsorted(table, x))
    x = np.array([0.5, 2.5])
    np.testing.assert_array_equal(f(x), [0, 2])
    table += 2
    np.testing.assert_array_equal(f(x), [0, 0])


def test_any_number_of_keys() -> None:
    f = fusec.jit(lambda x: np.interp(x, [0.0, 1.0, 4.0], [1.0, 2.0, -1.0]))
    for n in (10, 1000):
        x = np.linspace(-1, 5, n)
        np.testing.assert_array_equal(f(x), np.interp(x, [0.0, 1.0, 4.0], [1.0, 2.0, -1.0]))
