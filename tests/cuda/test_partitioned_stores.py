"""Stores of many points at computed indices: sorted by owners, with the bits of the program's
order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_cupy import as_gpu

import fusec
from fusec import config
from fusec.codegen.cuda.kernels import partitioned_stores

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)
POINTS = 3000


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many points are few, for the emulated device takes its time."""
    monkeypatch.setattr(partitioned_stores, "MANY_POINTS", 1000)


def add(z: Any, i: Any, w: Any) -> Any:
    np.add.at(z, i, w)
    return z


def largest(z: Any, i: Any, w: Any) -> Any:
    np.maximum.at(z, i, w)
    return z


def put(z: Any, i: Any, w: Any) -> Any:
    z[i] = w
    return z


def histogram(z: Any, i: Any, w: Any) -> Any:
    np.add.at(z, i, w * w + 1)
    return z * 2


PROGRAMS = (add, largest, put, histogram)


def launched(cupy: Any) -> int:
    return sum(call.startswith("nest") for call in cupy.calls)


@pytest.mark.parametrize("places", [3, 700])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_order_is_the_programs(program: Callable[..., Any], places: int) -> None:
    i = RNG.integers(-places, places, POINTS)
    for dtype in (np.float64, np.float16):
        w = RNG.normal(size=POINTS).astype(dtype)
        got = fusec.jit(program, device=HOST, fp="strict")(np.zeros(places, dtype), i, w)
        np.testing.assert_array_equal(got, program(np.zeros(places, dtype), i, w))


def test_several_axes_and_parts_of_numbers() -> None:
    def program(z: Any, i: Any, j: Any, w: Any) -> Any:
        np.add.at(z, (i, j), w * 2)
        return z

    i, j = RNG.integers(0, 20, (60, 50)), RNG.integers(0, 30, (60, 50))
    for w in (RNG.normal(size=(60, 50)), RNG.normal(size=(60, 50)) * (1 + 2j)):
        got = fusec.jit(program, device=HOST)(np.zeros((20, 30), w.dtype), i, j, w)
        np.testing.assert_array_equal(got, program(np.zeros((20, 30), w.dtype), i, j, w))
    i[7, 9] = 20
    with pytest.raises(IndexError, match="index 20 is out of bounds for axis 0 with size 20"):
        fusec.jit(program, device=HOST)(np.zeros((20, 30)), i, j, w.real)


def test_the_order_of_the_device_changes_nothing() -> None:
    i, w = RNG.integers(0, 50, POINTS), RNG.normal(size=POINTS)
    jitted = fusec.jit(add, device=HOST)
    first = jitted(np.zeros(50), i, w)
    for seed in (1, 2, 3):
        with config.override(cuda_host_seed=seed):
            np.testing.assert_array_equal(jitted(np.zeros(50), i, w), first)


def test_five_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch) as cupy:
        cupy.pool.keeps = True
        jitted = fusec.jit(lambda i, w: add(np.zeros(50), i, w))
        args = [RNG.integers(0, 50, POINTS), RNG.normal(size=POINTS)]
        there = [cupy.asarray(x) for x in args]
        jitted(*there)
        cupy.calls.clear()
        np.testing.assert_array_equal(jitted(*there).get(), add(np.zeros(50), *args))
        assert launched(cupy) == 6, "the zeros, and five, of which the first checks the indices"


def test_a_wrong_index_of_a_prepared_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found where it is used, and the argument stays as it was."""
    z, i, w = np.ones(50), RNG.integers(0, 50, POINTS), RNG.normal(size=POINTS)
    wrong = i.copy()
    wrong[POINTS // 2] = 50
    for deterministic in (True, False):
        with config.override(deterministic=deterministic), as_gpu(monkeypatch) as cupy:
            cupy.pool.keeps = True
            jitted, there = fusec.jit(add), cupy.asarray(z)
            for _ in range(3):
                np.testing.assert_allclose(
                    jitted(cupy.asarray(z), cupy.asarray(i), cupy.asarray(w)).get(),
                    add(z.copy(), i, w), rtol=1e-9)
            assert jitted.traces[0].gpu_call.function is not None
            with pytest.raises(IndexError, match="index 50 is out of bounds"):
                jitted(there, cupy.asarray(wrong), cupy.asarray(w))
            np.testing.assert_array_equal(there.get(), z)
