"""Arguments after a call that raises are those that NumPy leaves, however loops changed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def check_after_loop(x: Any, y: Any, z: Any, k: Any) -> Any:
    j = 0
    while j < 50 and x[0] < 10**9:
        x[j % 4] += 1
        j += 1
    return z[np.array([1, 700]) * k], j


def loop_after_loop(x: Any, y: Any, z: Any, k: Any) -> Any:
    for j in range(x.size):
        x[j] += 500
    w = 0
    for j in range(x.size):
        w += y[j + k]
    return w


def writes_after_loop(x: Any, y: Any, z: Any, k: Any) -> Any:
    for j in range(x.size):
        x[j] = x[j] * 2 + 1
    z *= 2
    for j in range(x.size):
        y[j + k] += 1
    return x


def between_kernels(x: Any, y: Any, z: Any, k: Any) -> None:
    x += 1
    for j in range(x.size):
        z[j] = x[j] + z[0]
    x *= 2
    for j in range(x.size):
        y[j + k] += x[j]


def read_by_an_earlier_index(x: Any, y: Any, z: Any, k: Any) -> Any:
    t = np.sort(z[x])
    for j in range(x.size):
        x[j] += 500
    for j in range(x.size):
        y[j + k] += 1
    return t


def later_loop_is_planned_first(x: Any, y: Any, z: Any, k: Any) -> Any:
    for j in range(4):
        x[(j + k) * 30] += 1
    x[:] = z[:100] - z.sum()
    for j in range(4 * k):
        z[j] = z[j - 1] * 2
    return x


def swapped(x: Any, y: Any, z: Any, k: Any) -> Any:
    x[:], y[:] = y.copy(), x.copy()
    return x[np.arange(100) + k]


PROGRAMS = (check_after_loop, loop_after_loop, writes_after_loop, between_kernels,
            read_by_an_earlier_index, later_loop_is_planned_first, swapped)


def arguments() -> list[np.ndarray]:
    return [np.arange(100), 2 * np.arange(100), np.arange(120) + 100]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_arguments_are_as_numpy_leaves_them(program: Callable[..., Any]) -> None:
    jitted, k = fusec.jit(program), np.int64(1)
    for _ in range(2):
        plain, compiled = arguments(), arguments()
        with pytest.raises(IndexError) as expected:
            program(*plain, k)
        with pytest.raises(IndexError) as found:
            jitted(*compiled, k)
        assert str(found.value) == str(expected.value)
        for got, want in zip(compiled, plain, strict=True):
            np.testing.assert_array_equal(got, want)


def adds_at_indices(x: Any, y: Any, z: Any, k: Any) -> Any:
    x += 1
    np.add.at(y, np.array([1, 700]) * k, 0.5)  # by NumPy: products of float32 and a float
    return x.sum()


def puts_at_indices(x: Any, y: Any, z: Any, k: Any) -> None:
    x *= 2
    y[np.array([1, 700]) * k, ...] = z[:2]
    np.copyto(x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("program", [adds_at_indices, puts_at_indices])
def test_library_calls_that_write(program: Callable[..., Any], dtype: str) -> None:
    """The arguments' state at such a call is the one before what it writes itself."""
    jitted, k = fusec.jit(program), np.int64(1)
    plain, compiled = ([a.astype(dtype) for a in arguments()] for _ in range(2))
    for function, arrays in ((program, plain), (jitted, compiled)):
        with pytest.raises(IndexError, match="700 is out of bounds"):
            function(*arrays, k)
    for got, want in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(got, want)
