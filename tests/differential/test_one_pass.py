"""Reductions that are one kernel which reads its operand once, over every kind of axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import ordinary, specials
from harness import check
from tolerance import Ulp

import fusec


def log_sum_exp(x: Any, axis: Any) -> Any:
    m = x.max(axis, keepdims=True)
    return np.squeeze(m, axis) + np.log(np.exp(x - m).sum(axis))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "argmax": lambda x, a: x.argmax(a), "argmin": lambda x, a: np.argmin(x * 2, a),
    "var": lambda x, a: x.var(a), "std": lambda x, a: x.std(a, ddof=1),
    "ptp": lambda x, a: np.ptp(x, a), "log_sum_exp": log_sum_exp,
    "norm": lambda x, a: np.linalg.norm(x, axis=a),
    "count_nonzero": lambda x, a: np.count_nonzero(x > 0, a),
    "average": lambda x, a: np.average(x, a), "any": lambda x, a: (x > 2).any(a),
    "all": lambda x, a: (x > -2).all(a), "mean": lambda x, a: x.mean(a),
    "extremes": lambda x, a: (x.min(a), x.max(a), x.argmin(a)),
}
NEAR = Ulp(16, scale=10.0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_one_kernel_that_loads_once(name: str, axis: int) -> None:
    f, x = REDUCTIONS[name], ordinary("f8", 60, 50)
    for operand in (x, np.asfortranarray(x), x[:, ::-1]):
        check(lambda x: f(x, axis), operand, tolerance=NEAR)
    concrete = fusec.jit(lambda x: f(x, axis)).concrete(x)
    assert len(concrete.kernels) == 1 and not concrete.externs
    assert concrete.kernels[0].bytes_loaded == {"x": x.nbytes}


@pytest.mark.parametrize("name", ["argmax", "ptp", "norm", "count_nonzero", "any", "extremes"])
def test_over_everything(name: str) -> None:
    f, x = REDUCTIONS[name], ordinary("f8", 60, 50)
    axis = None
    check(lambda x: f(x, axis), x, tolerance=NEAR)
    concrete = fusec.jit(lambda x: f(x, axis)).concrete(x)
    assert len(concrete.kernels) == 1 and not concrete.externs


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u8", "f4", "f8"])
@pytest.mark.parametrize("count", [1, 7, 8, 31, 33, 70_000])
def test_first_extremum(dtype: str, count: int) -> None:
    """The first of equal elements, also where all are the lowest or highest of the dtype."""
    low = -np.inf if dtype[0] == "f" else 0 if dtype in "?u1u8" else np.iinfo(dtype).min
    high = np.inf if dtype[0] == "f" else 1 if dtype == "?" else np.iinfo(dtype).max
    for fill, other in ((low, high), (high, low)):
        x = np.full(count, fill, dtype)
        for place in (None, count // 2, count - 1):
            if place is not None:
                x[place] = other
            check(lambda x: (x.argmax(), x.argmin()), x, engines=count < 100)
            grid = np.stack([x, x[::-1], x])
            check(lambda x: (x.argmax(0), x.argmin(1), x.T.argmax(0)), grid, engines=count < 100)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_first_nan(dtype: str) -> None:
    for count in (5, 40, 70_000):
        x = np.resize(specials(dtype), count)
        check(lambda x: (x.argmax(), x.argmin()), x, engines=count < 100)
        for place in {0, 3, count // 2, count - 1}:
            y = np.where(np.isnan(x), np.inf, x).astype(dtype)
            y[place] = np.nan
            grid = np.stack([y, x])
            check(lambda x: (x.argmax(1), x.argmin(0)), grid, engines=count < 100)
