"""Reductions: every axis choice, sizes around block boundaries, accuracy, order, task splits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from kernel_harness import REDUCTIONS, build, check, kernels_of, run_graph, run_on_cpu

from fusec.codegen.kernels import specialise as specialise_module
from fusec.codegen.kernels.specialise import (
    COLUMN_BLOCK,
    FLAT_BLOCK,
    MAP_BLOCK,
    TILE,
    LoopForm,
    specialise,
)
from fusec.ir import Graph, Value
from fusec.ops import Builder, get

BLOCK = 256  # elements of one cascade block in float64


def reduce_graph(op: str, x: np.ndarray, axes: tuple[int, ...]) -> Graph:
    return build(lambda b, v: b.emit(op, v, axes=axes), x)


def forms_of(graph: Graph, arrays: Sequence[np.ndarray]) -> list[LoopForm]:
    (kernel,) = kernels_of(graph)
    strides = [a.strides for a in arrays]
    strides += [np.empty(b.shape, b.dtype).strides for b in kernel.buffers[len(arrays):]]
    return [specialise(kernel, nest, strides) for nest in kernel.nests]


def mode_of(graph: Graph, arrays: Sequence[np.ndarray]) -> str:
    return forms_of(graph, arrays)[0].mode


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_every_choice_of_axes(op: str, axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).uniform(0.5, 1.5, (5, 9, 21))
    want = get(op).reference(x, axes=axes)
    rtol = 1e-13 if op in ("Sum", "Prod") else 0.0
    check(reduce_graph(op, x, axes), x, want=[want], rtol=rtol)
    check(reduce_graph(op, x[::2, :, ::-3], axes), x[::2, :, ::-3], rtol=rtol)
    check(reduce_graph(op, x.T, axes), x.T, rtol=rtol)


@pytest.mark.parametrize(("axis", "mode"), [(0, "column"), (1, "row")])
def test_strides_choose_the_vector_axis(axis: int, mode: str) -> None:
    x = np.zeros((30, 40))
    assert mode_of(reduce_graph("Sum", x, (axis,)), [x]) == mode
    assert mode_of(reduce_graph("Sum", x.T, (1 - axis,)), [x.T]) == mode


SIZES = [0, 1, 7, 8, 9, 15, 16, 17, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5, FLAT_BLOCK - 1,
         FLAT_BLOCK, FLAT_BLOCK + 1, 3 * FLAT_BLOCK + 123]


@pytest.mark.parametrize("size", SIZES)
def test_integer_sums_are_exact_at_every_size(size: int) -> None:
    x = np.arange(size, dtype=np.int64) * 7 - 3
    check(reduce_graph("Sum", x, (0,)), x, want=[x.sum()], source=size < 1000)
    two = np.stack([x, -x, x + 1])
    check(reduce_graph("Sum", two, (1,)), two, want=[two.sum(1)], source=False)
    if size < FLAT_BLOCK:
        check(reduce_graph("Sum", two.T.copy(), (0,)), two.T.copy(), want=[two.sum(1)],
              source=False)


@pytest.mark.parametrize("size", [n for n in SIZES if n])
def test_float_sums_are_exact_where_no_rounding_happens(size: int) -> None:
    x = np.resize(np.arange(-20.0, 31.0), size)
    check(reduce_graph("Sum", x, (0,)), x, want=[x.sum()], source=False)
    check(reduce_graph("Max", x, (0,)), x, want=[x.max()], source=False)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [1000, 33_000, 400_001])
def test_sums_are_as_accurate_as_numpys(size: int, dtype: str) -> None:
    """Mean error over several samples against the exact sum; NumPy's is the yardstick."""
    rng = np.random.default_rng(size)
    ours, theirs = [], []
    for _ in range(8):
        x = rng.uniform(0, 1, size).astype(dtype)
        exact = math.fsum(x.tolist())
        ours.append(abs(float(run_graph(reduce_graph("Sum", x, (0,)), [x], run_on_cpu)[0]) - exact))
        theirs.append(abs(float(x.sum()) - exact))
    unit = exact * float(np.finfo(dtype).eps)
    assert np.mean(ours) <= 1.5 * np.mean(theirs) + unit


@pytest.mark.parametrize("shape", [(40, 5000), (3, 40, 2000)])
def test_row_sums_are_as_accurate_as_numpys(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).uniform(0, 1, shape).astype(np.float32)
    axes = (len(shape) - 1,)
    got = run_graph(reduce_graph("Sum", x, axes), [x], run_on_cpu)[0].astype(np.float64)
    exact = np.sum(x, axis=axes, dtype=np.float64)
    assert np.abs(got - exact).mean() <= 1.5 * np.abs(x.sum(axes) - exact).mean() + 1e-4


def test_a_sum_that_pairwise_summation_saves() -> None:
    """Adding 2**25 ones one by one in float32 stops at 2**24."""
    x = np.ones(2**25, np.float32)
    assert run_graph(reduce_graph("Sum", x, (0,)), [x], run_on_cpu)[0] == 2.0**25


# ------------------------------------------------------------------------------ argmin and argmax

TIES = {
    "ties": [3.0, 5, 5, 1, 1, 5, 1, 3, 5],
    "equal": [2.0] * 9,
    "nan first": [np.nan, 1, 2, 3, np.nan],
    "nan last": [4.0, 1, 2, 3, np.nan],
    "infinite": [-np.inf, -np.inf, np.inf, np.inf],
    "all -inf": [-np.inf] * 5,
    "zeros": [0.0, -0.0, 0.0],
}


@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_first_of_equals_and_first_nan(op: str, name: str) -> None:
    few = np.array(TIES[name])
    for x in (few, np.resize(few, 100), np.concatenate([np.resize(few, 5000), few])):
        want = get(op).reference(x, axes=(0,))
        check(reduce_graph(op, x, (0,)), x, want=[want], source=x.size < 200)
    rows = np.stack([np.roll(np.resize(few, 37), k) for k in range(70)])
    for axis in (0, 1):
        check(reduce_graph(op, rows, (axis,)), rows, want=[get(op).reference(rows, axes=(axis,))])


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u8", "i8", "f4"])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin", "Max", "Min"])
def test_extrema_of_every_dtype(op: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 2 if dtype == "?" else 100, (33, 65)).astype(dtype)
    for axes in ((0,), (1,), (0, 1)):
        check(reduce_graph(op, x, axes), x, want=[get(op).reference(x, axes=axes)])


def test_argmax_across_tasks_takes_the_first() -> None:
    x = np.zeros(5 * FLAT_BLOCK + 3)
    x[[FLAT_BLOCK + 7, 3 * FLAT_BLOCK, 5 * FLAT_BLOCK + 2]] = 1
    check(reduce_graph("ArgMax", x, (0,)), x, want=[np.int64(FLAT_BLOCK + 7)], source=False)


@pytest.mark.parametrize("op", ["Any", "All"])
def test_any_and_all(op: str) -> None:
    for fill in (False, True):
        x = np.full((20, 70), fill)
        x[3, 50] = not fill
        for axes in ((0,), (1,), (0, 1)):
            check(reduce_graph(op, x, axes), x, want=[get(op).reference(x, axes=axes)])


# ---------------------------------------------------------------------------- splitting into tasks

SPLITS = {
    "map": (lambda b, x: b.emit("Sqrt", b.emit("Mul", x, x)), (7, MAP_BLOCK + 1000)),
    "row": (lambda b, x: b.emit("Sum", x, axes=(1,)), (50, 777)),
    "column": (lambda b, x: b.emit("Sum", x, axes=(0,)), (33, 5 * COLUMN_BLOCK + 13)),
    "tiled": (lambda b, x: b.emit("Max", x, axes=(0,)), (300, 2 * TILE + 77)),
    "flat": (lambda b, x: [b.emit("Sum", x, axes=(0, 1)), b.emit("ArgMax", x, axes=(0, 1))],
             (5, 2 * FLAT_BLOCK + 99)),
}


@pytest.mark.parametrize("mode", SPLITS)
def test_any_split_of_the_tasks_gives_the_same_bits(mode: str) -> None:
    function, shape = SPLITS[mode]
    whole = np.random.default_rng(11).standard_normal((shape[0], shape[1] + 1))
    x = whole[:, :-1]  # rows that do not collapse
    graph = build(function, x)
    assert mode_of(graph, [x]) == mode
    rng = np.random.default_rng(12)
    want = run_graph(graph, [x], run_on_cpu)
    for pieces in (1, 2, 5, 1000):
        def split(tasks: int, pieces: int = pieces) -> list[int]:
            return sorted(set(rng.integers(0, tasks + 1, pieces - 1).tolist()))

        got = run_graph(graph, [x], lambda k, b, split=split: run_on_cpu(k, b, split))
        assert [g.tobytes() for g in got] == [w.tobytes() for w in want], pieces


@pytest.fixture
def always_tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays too are reduced as those that lie in memory far apart."""
    monkeypatch.setattr(specialise_module, "FAR_ROWS", 0)
    monkeypatch.setattr(specialise_module, "MANY_BYTES", 0)


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "u1"])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_tiles_of_columns(op: str, dtype: str) -> None:
    """Bit for bit as registers of columns, over one loop of rows and over two."""
    rng = np.random.default_rng(6)
    for columns in (64, 97, TILE - 1, TILE, TILE + 1, 2 * TILE + 40):
        x = (rng.standard_normal((3, 9, columns + 5)) * 9).astype(dtype)
        if dtype[0] == "f":
            x[rng.random(x.shape) < 0.01] = np.nan
            x[rng.random(x.shape) < 0.1] = 0
        for axes in ((0,), (1,), (0, 1)):
            part = x[:, ::-1, 2: 2 + columns]
            want = get(op).reference(part, axes=axes)
            rtol = 1e-5 if op in ("Sum", "Prod") and dtype == "f4" else 1e-12 if (
                op in ("Sum", "Prod") and dtype == "f8") else 0.0
            check(reduce_graph(op, part, axes), part, want=[want], rtol=rtol, source=False)


@pytest.mark.usefixtures("always_tiled")
def test_tiles_of_several_stages() -> None:
    """A pass that needs the totals of the one before, and stores after the last."""
    x = np.random.default_rng(7).standard_normal((40, TILE + 71))

    def normalised(b: Builder, v: Value) -> list[Value]:
        top = b.emit("Max", v, axes=(0,))
        powers = b.emit("Exp", b.emit("Sub", v, b.emit("ExpandDims", top, axes=(0,))))
        total = b.emit("Sum", powers, axes=(0,))
        return [b.emit("Add", b.emit("Log", total), top), b.emit("ArgMin", v, axes=(0,)), total]

    graph = build(normalised, x)
    assert "tiled" in [f.mode for f in forms_of(graph, [x])]
    check(graph, x, rtol=1e-13, source=False)


def test_only_large_arrays_are_tiled() -> None:
    for shape, mode in (((600, 1100), "tiled"), ((300, 1100), "column"), ((20000, 50), "column")):
        x = np.zeros(shape)
        assert mode_of(reduce_graph("Sum", x, (0,)), [x]) == mode


def test_column_results_do_not_depend_on_the_number_of_columns() -> None:
    x = np.random.default_rng(4).standard_normal((50, 200))
    full = run_graph(reduce_graph("Sum", x, (0,)), [x], run_on_cpu)[0]
    for width in (2, 7, 8, 9, 31, 33, 63, 65, 129):
        part = x[:, 3: 3 + width]
        got = run_graph(reduce_graph("Sum", part, (0,)), [part], run_on_cpu)[0]
        assert got.tobytes() == full[3: 3 + width].tobytes(), width


def test_code_is_not_shared_between_strides_that_are_zero_and_not() -> None:
    """The code for a broadcast operand never moves along the broadcast axis."""
    x = np.arange(12.0).reshape(4, 3)[:, :1]
    still = np.broadcast_to(x[:1], x.shape)
    for y in (still, x):
        check(reduce_graph("Sum", y, (1,)), y, want=[y.sum(1)])
        check(build(lambda b, v: b.emit("Neg", v), y), y, want=[-y])
