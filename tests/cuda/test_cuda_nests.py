"""Reductions, scans and stores in order on the emulated device, which checks every access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_harness import (
    BACKEND,
    SEEDED,
    assert_equal_bits,
    compile_all,
    run_on_cuda,
    run_program,
)
from kernel_harness import REDUCTIONS, build, run_graph
from test_random_kernels import random_graph

import fusec
from fusec.codegen import backends
from fusec.codegen.kernels.reference import run_kernel
from fusec.ops import get
from fusec.ops.graphs.evaluate import evaluate

RNG = np.random.default_rng(7)


def near(got: Any, want: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def test_every_choice_of_axes() -> None:
    x = RNG.uniform(0.5, 1.5, (5, 9, 41))
    cases = []
    for axes in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]:
        for v in (x, x[::2, :, ::-3], x.T):
            cases.append((axes, build(
                lambda b, a, axes=axes: [b.emit(op, a, axes=axes) for op in REDUCTIONS], v), v))
    compile_all([(graph, [v]) for _, graph, v in cases])
    for axes, graph, v in cases:
        for op, got in zip(REDUCTIONS, run_graph(graph, [v], run_on_cuda), strict=True):
            near(got, get(op).reference(v, axes=axes))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4"])
def test_extrema_and_their_places_in_every_dtype(dtype: str) -> None:
    """Bit for bit, with many ties."""
    x = RNG.integers(0, 5, (3, 700)).astype(dtype)
    ops = ["Max", "Min", "ArgMax", "ArgMin"]
    for axes in ((0,), (1,), (0, 1)):
        graph = build(lambda b, a, axes=axes: [b.emit(op, a, axes=axes) for op in ops], x)
        for got, want in zip(run_graph(graph, [x], run_on_cuda),
                             run_graph(graph, [x], run_kernel), strict=True):
            assert_equal_bits(got, want, f"{dtype} {axes}")


def test_the_first_nan_is_found_wherever_it_is() -> None:
    for size, places in ((5, [4]), (3000, [2999, 1700]), (3000, [0]), (99_000, [50_001, 98_999])):
        x = RNG.standard_normal(size)
        x[places] = np.nan
        graph = build(lambda b, a: [b.emit(op, a, axes=(0,)) for op in ("ArgMax", "Max")], x)
        at, most = run_graph(graph, [x], run_on_cuda)
        assert at == min(places) and np.isnan(most)


@pytest.mark.parametrize("size", [0, 1, 31, 33, 5000, 300_001])
def test_integer_sums_are_exact_at_every_size(size: int) -> None:
    x = np.arange(size) * 7 - 3
    rows = np.stack([x, -x, x + 1])
    for a, axes in ((x, (0,)), (rows, (1,)), (rows.T.copy(), (0,))):
        graph = build(lambda b, v, axes=axes: b.emit("Sum", v, axes=axes), a)
        np.testing.assert_array_equal(run_graph(graph, [a], run_on_cuda)[0], a.sum(axes))


def test_the_order_of_a_sum_follows_from_the_sizes_alone() -> None:
    """Each launch runs blocks and threads in another order."""
    x = RNG.standard_normal((40, 5000)).astype("f4")
    for axes in ((0, 1), (0,), (1,)):
        graph = build(lambda b, v, axes=axes: b.emit("Sum", v, axes=axes), x)
        first, *others = (run_graph(graph, [x], run_on_cuda)[0] for _ in range(4))
        for other in others:
            assert_equal_bits(other, first, "sum")
        near(first, x.astype("f8").sum(axes), 1e-5)
    assert SEEDED.launched


def softmax(x: np.ndarray) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def normalised(x: np.ndarray) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def normalised_columns(x: np.ndarray) -> Any:
    return (x - x.mean(0)) / x.std(0)


@pytest.mark.parametrize("f", [softmax, normalised, normalised_columns])
@pytest.mark.parametrize("shape", [(7, 33), (3, 9000)])
def test_rows_and_columns_in_stages(f: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """The rows of the second shape do not fit into shared memory."""
    x = RNG.standard_normal(shape)
    near(run_program(f, x), f(x), 1e-11)


def test_a_short_row_is_kept_on_chip() -> None:
    x = RNG.standard_normal((7, 33))
    run_program(softmax, x)
    graph = build(lambda b, v: _softmax_graph(b, v), x)
    compile_all([(graph, [x])])
    near(run_graph(graph, [x], run_on_cuda)[0], softmax(x))
    assert any("on_chip" in one.written.text for each in BACKEND.kernels._recent for one in each)


def _softmax_graph(b: Any, x: Any) -> Any:
    most = b.emit("ExpandDims", b.emit("Max", x, axes=(1,)), axes=(1,))
    e = b.emit("Exp", b.emit("Sub", x, most))
    return b.emit("Div", e, b.emit("ExpandDims", b.emit("Sum", e, axes=(1,)), axes=(1,)))


def scans(x: np.ndarray) -> Any:
    return (np.cumsum(x, axis=1), np.cumprod(x, axis=1), np.maximum.accumulate(x, axis=1),
            np.cumsum(x, axis=0), np.cumsum(x > 0, axis=1))


@pytest.mark.parametrize("shape", [(5, 77), (3, 3001)])
def test_scans(shape: tuple[int, ...]) -> None:
    x = RNG.uniform(0.9, 1.1, shape)
    for got, want in zip(run_program(scans, x), scans(x), strict=True):
        near(got, want)


def stored_in_order(x: np.ndarray, i: np.ndarray, k: np.ndarray) -> Any:
    last, sums, most = np.zeros(50), np.zeros(50), np.full(50, -9)
    last[i] = x
    np.add.at(sums, i, x)
    np.maximum.at(most, i, k)
    return last, sums, most, np.bincount(i, minlength=50), np.histogram(x, 10, (-3.0, 3.0))[0]


@pytest.mark.parametrize("size", [3, 700, 9000])
def test_stores_at_one_place_are_in_the_order_of_the_points(size: int) -> None:
    """Bit for bit, sums of floats too; several blocks share the places of many points."""
    x, i = RNG.standard_normal(size), RNG.integers(0, 50, size)
    k = RNG.integers(-5, 5, size)
    for got, want in zip(run_program(stored_in_order, x, i, k), stored_in_order(x, i, k),
                         strict=True):
        assert_equal_bits(got, want, "stored")


@pytest.mark.parametrize("seed", [0, 3])
def test_blocks_of_points_keep_the_order_of_their_points(seed: int) -> None:
    """Each of NumPy's blocks of 65,536 weights has sums of its own, whose points are in order."""
    x, w = RNG.standard_normal(66_000), RNG.standard_normal(66_000)

    def f(x: np.ndarray, w: np.ndarray) -> Any:
        return np.histogram(x, 12, (-2.5, 2.5), weights=w)[0]

    with fusec.config.override(cuda_host_seed=seed):
        assert_equal_bits(run_program(f, x, w), f(x, w), "sums of weights")


def test_blocks_own_places() -> None:
    def sums(i: np.ndarray, x: np.ndarray) -> Any:
        y = np.zeros(50)
        np.add.at(y, i, x)
        return y

    with backends.using("cudahost"):
        f = fusec.jit(sums)
        f(RNG.integers(0, 50, 5000), RNG.standard_normal(5000))
    (text,) = (k.asm["cu"] for k in f.traces[0].kernels if "__shared__ u64 keys" in k.asm["cu"])
    assert "atomicAdd(" not in text


def rows_and_numbers(x: np.ndarray, i: np.ndarray) -> Any:
    rows, numbers, flags = np.zeros((9, 4)), np.zeros(9, complex), np.zeros(9, bool)
    rows[i] = x
    np.add.at(numbers, i, x[:, 0] + 1j * x[:, 1])
    np.logical_or.at(flags, i, x[:, 2] > 1)
    shifted = rows.copy()
    shifted[i, i % 4] = shifted[i, 0] + x[:, 3]
    return rows, numbers, flags, shifted


def test_stores_of_rows_of_complex_numbers_and_of_what_is_read() -> None:
    x, i = RNG.standard_normal((600, 4)), RNG.integers(0, 9, 600)
    for got, want in zip(run_program(rows_and_numbers, x, i), rows_and_numbers(x, i), strict=True):
        np.testing.assert_array_equal(got, want)


def test_random_graphs() -> None:
    cases = [random_graph(seed) for seed in range(12)]
    compile_all(cases)
    for graph, arrays in cases:
        for got, want in zip(run_graph(graph, arrays, run_on_cuda), evaluate(graph, arrays),
                             strict=True):
            near(got, want, 1e-11)


def test_blocks_share_a_few_long_rows() -> None:
    x = RNG.standard_normal((2, 3, 50_003))
    x[1, 2, 40_000] = np.nan
    k = np.arange(3 * 40_000).reshape(3, 40_000)

    def reduced(x: np.ndarray, k: np.ndarray) -> Any:
        return x.sum(axis=2), x.argmax(axis=2), np.sqrt((x * x).mean(axis=2)), k.sum(axis=1)

    with backends.using("cudahost"):
        f = fusec.jit(reduced)
        got = f(x, k)
    assert any("chunks" in kernel.asm["cu"] for kernel in f.traces[0].kernels)
    for one, other in zip(got, reduced(x, k), strict=True):
        near(one, other)
