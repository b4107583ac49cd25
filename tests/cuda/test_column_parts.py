"""Reductions over the first axis of long arrays: blocks share a column's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from fake_cupy import as_gpu

import fusec
from fusec import config
from fusec.codegen.cuda.kernels.reductions.column_parts import parts_of
from fusec.codegen.kernels.specialise import LoopForm, specialise

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)

PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(0),
    "extrema": lambda x: (x.max(0), x.min(axis=0, keepdims=True) * 2),
    "positions": lambda x: (x.argmax(0), x.argmin(0)),
    "later stages": lambda x: np.sqrt((x * x).mean(0)) + 1,
    "several": lambda x: (x.sum(0), (x * x).sum(0), (x > 2).any(0)),
    "two passes": lambda x: x.var(0),
    "rows at last": lambda x: (x - x.mean(0)) / x.std(0),
}
SHAPES = ((2048, 3), (5000, 40), (3000, 1), (2100, 2, 33))


def agree(got: Any, want: Any, rtol: float) -> None:
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(name: str, shape: tuple[int, ...]) -> None:
    program = PROGRAMS[name]
    for dtype in (np.float64, np.float32):
        x = RNG.normal(size=shape).astype(dtype)
        agree(fusec.jit(program, device=HOST)(x), program(x), 1e-11 if x.itemsize == 8 else 1e-3)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_integers_are_exact(dtype: str) -> None:
    x = RNG.integers(0, 2, (4000, 37)).astype(dtype)
    for program in (lambda x: x.sum(0), lambda x: x.max(0), lambda x: x.argmax(0)):
        np.testing.assert_array_equal(fusec.jit(program, device=HOST)(x), program(x))


def test_nans_and_ties() -> None:
    x = RNG.integers(0, 3, (3000, 5)).astype(float)
    x[1234, 2] = x[2345, 2] = x[7, 3] = np.nan
    for program in (lambda x: x.argmax(0), lambda x: x.argmin(0), lambda x: x.max(0)):
        np.testing.assert_array_equal(fusec.jit(program, device=HOST)(x), program(x))


def test_the_order_of_the_device_changes_nothing() -> None:
    x, jitted = RNG.normal(size=(4000, 33)), fusec.jit(PROGRAMS["rows at last"], device=HOST)
    first = jitted(x)
    for seed in (1, 2, 3):
        with config.override(cuda_host_seed=seed):
            np.testing.assert_array_equal(jitted(x), first)


def form_of(program: Callable[..., Any], shape: tuple[int, ...]) -> LoopForm:
    (kernel,) = fusec.jit(program).lower(np.empty(shape, np.int8)).kernels
    strides = [place.strides for place in kernel.step.places]
    return specialise(kernel.step.kernel, kernel.step.kernel.nests[0], strides)


@pytest.mark.parametrize(("shape", "parts"), [
    ((65_536, 512), 64), ((1_048_576, 32), 1024), ((4096, 8192), 4), ((1000, 512), 1),
    ((1536, 8), 1), ((30_000, 30_000), 1)])
def test_parts_follow_from_sizes(shape: tuple[int, ...], parts: int) -> None:
    assert parts_of(form_of(lambda x: x.max(0), shape)) == parts


def test_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each pass over the rows, and one for what follows from the last."""
    counts = {"sum": 2, "two passes": 3, "rows at last": 3}
    for name, count in counts.items():
        with as_gpu(monkeypatch) as cupy:
            cupy.pool.keeps = True
            jitted, x = fusec.jit(PROGRAMS[name]), RNG.normal(size=(2048, 40))
            there = cupy.asarray(x)
            jitted(there)
            cupy.calls.clear()
            agree(jitted(there).get(), PROGRAMS[name](x), 1e-11)
            assert sum(call.startswith("nest") for call in cupy.calls) == count, cupy.calls
