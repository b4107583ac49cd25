"""Kernels over sizes that only the run knows: their layout is that of the text, whatever the sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(5)


def short_rows(x: Any, y: Any) -> Any:
    return (x[x > 0][:, None] * y[None, :]).sum(1)


def columns(x: Any, y: Any) -> Any:
    return (x[x > 0][:, None] * y[None, :]).sum(0)


def apart(x: Any, y: Any) -> Any:
    m = x[x > 0]
    return m[1:] - m[:-1] * y[0]


def normalised(x: Any, y: Any) -> Any:
    m = x[x > 0][:, None] * y[None, :]
    return m / m.sum(1, keepdims=True)


def total(x: Any, y: Any) -> Any:
    m = x[x > 0] * y[0]
    return m.sum() + m.max()


@pytest.mark.parametrize("n", [3, 700, 40_000])
@pytest.mark.parametrize("program", [short_rows, columns, apart, normalised, total],
                         ids=lambda p: p.__name__)
def test_results_are_numpys(program: Callable[..., Any], n: int) -> None:
    """Rows of 24 float32, which share a warp where sizes are known; neighbours at addresses that
    are not aligned."""
    for size in (n, n + 13):  # one text for both
        x = np.abs(RNG.normal(size=size)).astype(np.float32)
        x[::3] *= -1
        y = RNG.uniform(1, 2, 24).astype(np.float32)
        got = fusec.jit(program, device=HOST)(x, y)
        np.testing.assert_allclose(got, program(x, y), rtol=1e-3)
