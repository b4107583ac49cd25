"""``repeat`` and ``tile``, and results that are a kernel's in another shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary
from harness import check

import fusec


def steps(f: Callable[..., Any], *args: Any) -> tuple[int, int]:
    """Kernels and library calls of the function."""
    concrete = fusec.jit(f).concrete(*args)
    return len(concrete.kernels), len(concrete.externs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    x = LAYOUTS[layout]("f8")
    for reps in (0, 1, 2, (2, 1), (1, 3), (2, 0), (2, 1, 3), (1, 1), (1,), ()):
        check(lambda x, r=reps: np.tile(x, r), x, source=True)
        check(lambda x, r=reps: np.tile(x + 1, r) * 2, x)
    for count in (0, 1, 3):
        check(lambda x, n=count: np.repeat(x, n), x, source=True)
        for axis in range(x.ndim):
            check(lambda x, n=count, a=axis: (x * 2).repeat(n, a) + 1, x, source=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x = ordinary(dtype, 5, 3)
    check(lambda x: (np.tile(x, 2), np.repeat(x, 2, axis=1), np.tile(x[0, 0], 3)), x)


def test_misuse() -> None:
    x = ordinary("f8", 3, 2)
    check(lambda x: np.tile(x, -1), x)
    check(lambda x: np.repeat(x, -1), x)
    check(lambda x: np.repeat(x, 2, axis=2), x)


IN_ANOTHER_SHAPE: list[Callable[..., Any]] = [
    lambda x: np.repeat(x, 3), lambda x: np.repeat(x, 3, axis=0), lambda x: np.tile(x, (2, 3)),
    lambda x: (x * 2).ravel(), lambda x: (x + 1).reshape(30, 40), lambda x: np.cumsum(x),
    lambda x: np.tile(np.exp(x) * 0, 2),
]


def test_values_in_another_shape() -> None:
    for f in IN_ANOTHER_SHAPE:
        check(f, ordinary("f8", 40, 30))


@pytest.mark.one_device  # a reshape is NumPy's, on the CPU
def test_one_kernel_and_no_copy() -> None:
    x = ordinary("f8", 40, 30)
    assert [steps(f, x)[1] for f in IN_ANOTHER_SHAPE] == [0] * 7
    assert [steps(f, x)[0] for f in IN_ANOTHER_SHAPE[:6]] == [1] * 6


def test_results_in_another_shape() -> None:
    x = ordinary("f8", 6, 4)

    def both(x):
        y = x * 2
        return y, y.reshape(-1)

    def fresh_twice(x):
        y = x * 2
        return y.ravel(), y.ravel() + 1, y.reshape(4, 6)

    def summed(x):
        y = x * 2
        return y.reshape(4, 6), y.sum()

    def written(x):
        y = (x * 2).reshape(-1)
        y[3:5] = 0
        return y

    for f in (both, fresh_twice, summed, written):
        check(f, np.rint(x))
        check(f, np.asfortranarray(np.rint(x)))
    check(lambda x: np.sort(x * 2).reshape(-1), x)
    check(lambda x: (x.T * 2).reshape(-1), x)
    check(lambda x: (x * 2).reshape(4, 6).T, x)
    check(lambda x: (x.sum().reshape(1), (x.sum(0) * 2).reshape(2, 2)), np.rint(x))
