"""Rows of few packs: several of them share a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import fusec
from fusec import config
from fusec.codegen.cuda.kernels.reductions.rows import has_parts_of_warps, row_layout
from fusec.codegen.kernels.specialise import specialise

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def centred(x: Any) -> Any:
    x -= x.mean(-1, keepdims=True)
    return x


PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(-1), "positions": lambda x: (x.argmax(-1), x.argmin(-1)),
    "softmax": softmax, "any": lambda x: (x > 1).any(-1), "in place": centred}
SHAPES = ((1, 5), (33, 64), (130, 61), (50, 4, 9), (999, 10), (257, 33))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(name: str, shape: tuple[int, ...]) -> None:
    program = PROGRAMS[name]
    for make in (np.copy, np.float32, np.asfortranarray):
        x = make(RNG.normal(size=shape))
        near = 1e-11 if x.itemsize == 8 else 1e-4
        got, want = fusec.jit(program, device=HOST)(x.copy()), program(x.copy())
        for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
            np.testing.assert_allclose(one, other, rtol=near, atol=near)


def test_the_order_of_the_device_changes_nothing() -> None:
    x, jitted = RNG.normal(size=(100, 10)), fusec.jit(softmax, device=HOST)
    first = jitted(x)
    for seed in (1, 2, 3):
        with config.override(cuda_host_seed=seed):
            np.testing.assert_array_equal(jitted(x), first)


@pytest.mark.parametrize(("columns", "threads"), [
    (1, (1, 256)), (10, (4, 64)), (33, (16, 16)), (64, (16, 16)), (65, (32, 8))])
def test_threads_of_a_row(columns: int, threads: tuple[int, int]) -> None:
    (kernel,) = fusec.jit(lambda x: x.argmax(-1)).lower(np.zeros((5000, columns), "f4")).kernels
    strides = [place.strides for place in kernel.step.places]
    form = specialise(kernel.step.kernel, kernel.step.kernel.nests[0], strides)
    assert form.mode == "row" and has_parts_of_warps(form) == (columns <= 64)
    assert row_layout(form, 4, False, columns <= 64).threads == threads
