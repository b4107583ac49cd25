"""Sizes that one device learns and another one needs: nobody waits for a node that waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusec

HERE, THERE = "/device:CPU:0", "/device:CPU:1"
CUDA = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)
X, MASK = RNG.random((2, 30)), RNG.random(30) > 0.5


@pytest.fixture(autouse=True)
def two_devices() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2, verify=True):
        yield


def selected(x: Any, m: Any) -> Any:
    y = np.zeros(30)
    y[m] = x[0, m]
    return (y**2).sum()


def row_from_row(x: Any, m: Any) -> Any:
    x = x.copy()
    x[1, m] = x[0, m] * 2
    return (x**2).sum()


def row_in_place(x: Any, m: Any) -> Any:
    x = x.copy()
    x[1, m] *= 2
    return (x**2).sum()


def column_from_column(x: Any, m: Any) -> Any:
    x = x.T.copy()
    x[m, 1] = x[m, 0] * 2
    return (x**2).sum()


def after_an_ellipsis(x: Any, m: Any) -> Any:
    y = np.zeros(30)
    y[m] = x[..., m][0]
    return (y**2).sum()


def summed(x: Any, m: Any) -> Any:
    a = x[..., m]
    return (np.cumsum(a, axis=1) * np.ones_like(a)).sum()


@pytest.mark.parametrize("program", [
    selected, row_from_row, row_in_place, column_from_column, after_an_ellipsis, summed])
@pytest.mark.parametrize("mask", [MASK, np.zeros(30, bool)], ids=["some", "none"])
def test_gradients_on_a_device_that_leaves_calls_to_others(
    program: Callable[..., Any], mask: np.ndarray
) -> None:
    gradient = fusec.grad(program)
    np.testing.assert_allclose(
        fusec.jit(gradient, device=CUDA)(X, mask), fusec.jit(gradient)(X, mask), rtol=1e-12)


def two_ways(x: Any, m: Any) -> Any:
    with fusec.device(HERE):
        a = x[..., m]
    with fusec.device(THERE):
        b = np.sin(np.ones_like(a)) + 1
    with fusec.device(HERE):
        c = np.cumsum(a * b, axis=1)
    with fusec.device(THERE):
        return np.cumsum(c, axis=1).sum()


def test_gradients_over_two_devices() -> None:
    gradient = fusec.grad(two_ways)
    with fusec.config.override(logical_cpu_devices=1):
        want = fusec.jit(fusec.grad(undivided))(X, MASK)
    np.testing.assert_allclose(fusec.jit(gradient)(X, MASK), want, rtol=1e-12)


def undivided(x: Any, m: Any) -> Any:
    a = x[..., m]
    c = np.cumsum(a * (np.sin(np.ones_like(a)) + 1), axis=1)
    return np.cumsum(c, axis=1).sum()


def test_a_size_is_needed_beside_what_leads_to_it() -> None:
    """The sort needs nothing and nor does the row of ones, but its length comes of the sort."""
    @fusec.jit
    def f(x):
        with fusec.device(THERE):
            w = np.sort(x)
        with fusec.device(HERE):
            h = np.sort(x)
            c = np.sort(h + w)
        with fusec.device(THERE):
            y = np.unique(c)
        with fusec.device(HERE):
            return np.cumsum(np.ones_like(y)), np.cumsum(h), y

    x = np.round(X[0], 1)
    for got, want in zip(f(x), f.__wrapped__(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
