"""Row kernels: whole packs, ends of rows, memory that lies elsewhere, joins of several warps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import fusec
from fusec import config
from fusec.codegen.cuda.kernels.reductions.rows import row_layout
from fusec.codegen.kernels.specialise import specialise

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normed(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "softmax": softmax, "normed": normed,
    "several": lambda x: (x.sum(-1), x.max(-1), x.argmax(-1), x.min(-1), x.argmin(-1), x.std(-1)),
    "two axes": lambda x: (x.sum((-2, -1)), x.max((-2, -1)), x - x.mean((-2, -1), keepdims=True)),
    "wide scratch": lambda x: softmax(x.astype("f8") * 2).astype("f4"),
    "bytes": lambda x: ((x > 0) & (x < x.mean(-1, keepdims=True))).sum(-1)}
SHAPES = ((1, 2, 516), (1, 2, 1027), (3, 2, 260), (2, 3, 130))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_are_numpys(shape: tuple[int, ...], dtype: str) -> None:
    near = 1e-11 if dtype == "f8" else 1e-4
    x = RNG.normal(size=(*shape[:-1], shape[-1] + 8)).astype(dtype)
    for name, program in PROGRAMS.items():
        jitted = fusec.jit(program, device=HOST)
        for begin in (0, 4, 1):  # all rows aligned, as far as their length is; none
            part = x[..., begin:begin + shape[-1]]
            for given in (part, part.copy()):
                for one, other in zip(*map(optree.tree_leaves, (jitted(given), program(given))),
                                      strict=True):
                    np.testing.assert_allclose(one, other, rtol=near, atol=near, err_msg=name)


@pytest.mark.parametrize("length", [7, 64, 1030])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i4", "i8", "?"])
def test_extrema_and_their_positions(dtype: str, length: int) -> None:
    """Ties, NaN at several places, rows of nothing but infinities: NumPy's."""
    x = (RNG.normal(size=(6, length)) * 3).astype(dtype)
    if x.dtype.kind == "f":
        x[1, [length // 2, length - 1]] = np.nan
        x[2], x[3], x[4, :-1] = -np.inf, np.inf, -np.inf
    for program in (lambda a: (a.argmax(-1), a.argmin(-1)), lambda a: (a.max(-1), a.min(-1))):
        got = fusec.jit(program, device=HOST)(x)
        for one, other in zip(got, program(x), strict=True):
            np.testing.assert_array_equal(one, other)


def test_no_order_and_no_call_changes_a_sum() -> None:
    """Where a row's memory begins is no part of the order; nor is that of warps."""
    x = RNG.normal(size=(4, 2053)).astype("f4")
    jitted = fusec.jit(lambda a: (softmax(a), a.sum(-1)), device=HOST)
    first = jitted(x)
    store = np.zeros(4 * 2053 + 1, "f4")
    store[1:] = x.ravel()
    for given in (store[1:].reshape(4, 2053), x):
        for seed in (0, 1, 2):
            with config.override(cuda_host_seed=seed):
                for one, other in zip(jitted(given), first, strict=True):
                    np.testing.assert_array_equal(one, other)


def test_the_stated_order_of_a_sum() -> None:
    """docs/cuda.md: packs by thread, lanes by halves, then warps by halves."""
    x = RNG.normal(size=(3, 1500)).astype("f4")
    got = fusec.jit(lambda a: a.sum(-1), device=HOST)(x)
    team = 64
    for row, total in zip(x, got, strict=True):
        threads = np.zeros(team, "f4")
        for pack in range(0, 1500, 4):
            for element in row[pack:pack + 4]:
                threads[pack // 4 % team] += element
        warps = np.zeros(16, "f4")
        for warp in range(team // 32):
            lanes = threads[warp * 32:warp * 32 + 32]
            warps[warp] = _by_halves(lanes)
        assert total == _by_halves(warps)


def _by_halves(lanes: np.ndarray) -> np.float32:
    while len(lanes) > 1:
        lanes = lanes[:len(lanes) // 2] + lanes[len(lanes) // 2:]
    return lanes[0]


@pytest.mark.parametrize(("columns", "threads"), [
    (65, (32, 8)), (1024, (32, 8)), (1025, (64, 1)), (4096, (128, 1)), (100_000, (512, 1))])
def test_threads_of_a_row(columns: int, threads: tuple[int, int]) -> None:
    (kernel,) = fusec.jit(lambda x: x.argmax(-1)).lower(np.zeros((100, columns), "f4")).kernels
    strides = [place.strides for place in kernel.step.places]
    form = specialise(kernel.step.kernel, kernel.step.kernel.nests[0], strides)
    assert row_layout(form, 4, False, False).threads == threads


def test_several_results_of_rows_are_one_kernel() -> None:
    lowered = fusec.jit(PROGRAMS["several"]).lower(np.zeros((50, 300), "f4"))
    assert [len(k.step.kernel.nests) for k in lowered.kernels] == [1]
