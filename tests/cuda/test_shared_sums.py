"""Sums of integers at few places: in shared memory first, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)
MANY = 66_000


def counted(h: Any, i: Any) -> Any:
    h = h.copy()
    np.add.at(h, i, h.dtype.type(1))
    return h


def weighed(h: Any, i: Any) -> Any:
    h = h.copy()
    np.add.at(h, i[::-1] % 7 - 3, (i * 3 - 5).astype(h.dtype))
    return h


def is_shared(jitted: Any) -> bool:
    return any(" sums[" in kernel.asm["cu"] for kernel in jitted.traces[0].kernels)


@pytest.mark.parametrize("program", [counted, weighed])
@pytest.mark.parametrize("dtype", ["i8", "i4", "u4"])
def test_results_are_numpys(program: Any, dtype: str) -> None:
    h, i = RNG.integers(0, 9, 256).astype(dtype), RNG.integers(-256, 256, MANY)
    jitted, want = fusec.jit(program, device=HOST), program(h, i)
    for seed in (0, 3):
        with config.override(cuda_host_seed=seed):
            np.testing.assert_array_equal(jitted(h, i), want)
    assert is_shared(jitted)


@pytest.mark.parametrize(("places", "points", "shared"), [
    (4096, MANY, True), (4097, MANY, False), (1, MANY, True), (256, 1000, False)])
def test_where_places_are_few_and_points_many(places: int, points: int, shared: bool) -> None:
    h, i = np.zeros(places, "i8"), RNG.integers(0, places, points)
    jitted = fusec.jit(counted, device=HOST)
    np.testing.assert_array_equal(jitted(h, i), counted(h, i))
    assert is_shared(jitted) == shared


def test_places_of_two_axes_and_of_an_axis_with_gaps() -> None:
    def of_columns(h: Any, i: Any) -> Any:
        h = h.copy()
        np.add.at(h[:, 1], i, 1)
        np.add.at(h, (i, i % 3), 2)
        return h

    h, i = np.zeros((50, 3), "i8"), RNG.integers(0, 50, MANY)
    np.testing.assert_array_equal(fusec.jit(of_columns, device=HOST)(h, i), of_columns(h, i))


def test_an_index_out_of_range() -> None:
    i = np.zeros(MANY, int)
    i[-1] = 300
    with pytest.raises(IndexError, match="300"):
        fusec.jit(counted, device=HOST)(np.zeros(256, int), i)
