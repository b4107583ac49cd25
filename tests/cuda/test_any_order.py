"""`config.deterministic = False`: floats are added to places in any order, by atomic operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)


def added(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.add.at(x, i, v * 2)
    return x


def stored(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    x[i] = v
    return x


def multiplied(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.multiply.at(x, i, v)
    return x


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i4"])
@pytest.mark.parametrize("points", [300, 70_000])
def test_sums_of_floats(points: int, dtype: str) -> None:
    x, v = RNG.normal(size=50).astype(dtype), (RNG.normal(size=points) * 3).astype(dtype)
    i = RNG.integers(-50, 50, points)
    near = {"f2": 1e-1, "f4": 1e-3}.get(dtype, 1e-10)
    with config.override(deterministic=False):
        jitted = fusec.jit(added, device=HOST)
        got = jitted(x, i, v)
        is_atomic = any(f"atomicAdd(reinterpret_cast<{word} *>" in kernel.asm["cu"]
                        for kernel in jitted.traces[0].kernels for word in ("float", "double"))
    want = added(x, i, v)
    if dtype == "f2":
        np.testing.assert_array_equal(got, want)  # no atomic operation: the program's order
    else:
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
    assert is_atomic == (dtype in ("f4", "f8", "c16"))
    np.testing.assert_array_equal(fusec.jit(added, device=HOST)(x, i, v), want)


@pytest.mark.parametrize("program", [stored, multiplied])
def test_what_is_no_sum_keeps_its_order(program: Any) -> None:
    x, v, i = RNG.normal(size=50), RNG.normal(size=300), RNG.integers(0, 50, 300)
    with config.override(deterministic=False):
        np.testing.assert_array_equal(fusec.jit(program, device=HOST)(x, i, v), program(x, i, v))


def test_an_index_out_of_range() -> None:
    x, i = np.zeros(5), np.array([0, 7])
    with config.override(deterministic=False), pytest.raises(IndexError, match="7"):
        fusec.jit(added, device=HOST)(x, i, np.ones(2))
