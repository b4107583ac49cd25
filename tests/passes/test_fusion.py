"""Fusion: how many kernels, their nodes, and why others stayed apart."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.kernels.lower import lower
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ops import Builder
from fusec.ops.graphs.evaluate import evaluate
from fusec.passes.fusion.fusion import fuse

F8 = np.dtype(np.float64)


def inputs(b: Builder, *shapes: tuple[int, ...]) -> list[Value]:
    return [
        b.emit("Input", name=f"x{i}", index=i, path=f"x{i}", type=TensorType(F8, s))
        for i, s in enumerate(shapes)
    ]


def kernels(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes if n.op == "Fused"]


def assert_same_meaning(graph: Graph, fused: Graph) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(v.shape) for v in graph.inputs]
    for got, want in zip(evaluate(fused, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def fused_of(xs: list[Value], *outputs: Value) -> Graph:
    graph = Graph.build(xs, outputs)
    fused = fuse(graph)
    assert_same_meaning(graph, fused)
    return fused


def test_a_chain_is_one_kernel() -> None:
    b = Builder()
    x, y = inputs(b, (5, 6), (6,))
    z = b.emit("Sqrt", b.emit("Abs", b.emit("Sub", b.emit("Mul", x, y), x)))
    fused = fused_of([x, y], z)
    assert [n.op for n in fused.nodes] == ["Input", "Input", "Fused"]


def softmax(b: Builder, x: Value) -> Value:
    peak = b.emit("ExpandDims", b.emit("Max", x, axes=(1,)), axes=(1,))
    e = b.emit("Exp", b.emit("Sub", x, peak))
    return b.emit("Div", e, b.emit("ExpandDims", b.emit("Sum", e, axes=(1,)), axes=(1,)))


def test_softmax_is_one_kernel() -> None:
    b = Builder()
    (x,) = inputs(b, (4, 9))
    (kernel,) = kernels(fused_of([x], softmax(b, x)))
    assert kernel.attrs["axes"] == (1,)
    assert kernel.attrs["boundaries"] == ()
    loads = {v.name for v in kernel.inputs}
    assert loads == {"x0:0"}


def test_layernorm_is_one_kernel() -> None:
    b = Builder()
    x, w = inputs(b, (4, 9), (9,))
    count = b.const(np.float64(9))
    mean = b.emit("ExpandDims", b.emit("Div", b.emit("Sum", x, axes=(1,)), count), axes=(1,))
    centred = b.emit("Sub", x, mean)
    var = b.emit("Div", b.emit("Sum", b.emit("Mul", centred, centred), axes=(1,)), count)
    scale = b.emit("ExpandDims", b.emit("Sqrt", var), axes=(1,))
    assert len(kernels(fused_of([x, w], b.emit("Mul", b.emit("Div", centred, scale), w)))) == 1


def test_a_stencil_is_one_kernel() -> None:
    b = Builder()
    (x,) = inputs(b, (10, 12))

    def at(i: int, j: int) -> Value:
        return b.emit("Slice", x, starts=(i, j), steps=(1, 1), sizes=(8, 10))

    total = b.emit("Add", b.emit("Add", at(0, 1), at(2, 1)), b.emit("Add", at(1, 0), at(1, 2)))
    new = b.emit("SliceUpdate", x, total, starts=(1, 1), steps=(1, 1), sizes=(8, 10))
    (kernel,) = kernels(fused_of([x], new))
    assert lower(kernel).bytes_stored == 10 * 12 * 8


def test_cheap_values_read_at_offsets_are_recomputed() -> None:
    b = Builder()
    (x,) = inputs(b, (20,))
    y = b.emit("Mul", x, x)
    left = b.emit("Slice", y, starts=(0,), steps=(1,), sizes=(19,))
    right = b.emit("Slice", y, starts=(1,), steps=(1,), sizes=(19,))
    assert len(kernels(fused_of([x], b.emit("Sub", right, left)))) == 1


def test_expensive_values_read_at_offsets_are_stored() -> None:
    b = Builder()
    (x,) = inputs(b, (20,))
    y = b.emit("Sin", b.emit("Exp", x))
    left = b.emit("Slice", y, starts=(0,), steps=(1,), sizes=(19,))
    right = b.emit("Slice", y, starts=(1,), steps=(1,), sizes=(19,))
    fused = fused_of([x], b.emit("Sub", right, left))
    assert len(kernels(fused)) == 2
    (reason,) = kernels(fused)[1].attrs["boundaries"]
    assert "iteration domains differ: (19,) and (20,)" in reason


def test_expensive_values_are_not_computed_by_two_kernels() -> None:
    """Read by two kernels at the same place: stored once by the first."""
    b = Builder()
    (x,) = inputs(b, (6, 7))
    y = b.emit("Sin", b.emit("Exp", x))
    rows = b.emit("Sum", b.emit("Mul", y, x), axes=(1,))
    columns = b.emit("Sum", b.emit("Add", y, x), axes=(0,))
    fused = fused_of([x], rows, columns)
    sines = [n for k in kernels(fused) for n in k.attrs["body"].nodes if n.op == "Sin"]
    assert len(sines) == 1
    assert len(kernels(fused)) == 2


def test_reductions_of_different_axes_are_two_kernels() -> None:
    b = Builder()
    (x,) = inputs(b, (6, 7))
    centred = b.emit("Sub", x, b.emit("Sum", x, axes=(0,)))
    fused = fused_of([x], b.emit("Sum", centred, axes=(1,)))
    assert len(kernels(fused)) == 2
    (reason,) = kernels(fused)[1].attrs["boundaries"]
    assert "not fused with Sum:0: reduced axes differ: (1,) and (0,)" in reason


def test_a_full_reduction_ends_its_kernel() -> None:
    b = Builder()
    (x,) = inputs(b, (6, 7))
    fused = fused_of([x], b.emit("Div", x, b.emit("Sum", x, axes=(0, 1))))
    assert len(kernels(fused)) == 2
    (reason,) = kernels(fused)[1].attrs["boundaries"]
    assert "needs the whole domain before its first use" in reason


def test_independent_results_over_one_domain_share_a_kernel() -> None:
    b = Builder()
    x, y = inputs(b, (8,), (8,))
    fused = fused_of([x, y], b.emit("Sin", x), b.emit("Cos", y), b.emit("Add", x, y))
    assert len(kernels(fused)) == 1
    assert len(kernels(fused)[0].types) == 3


def test_a_diamond_through_a_library_call_is_no_cycle() -> None:
    """a → MatMul → c and a → c: fusing a with c would need the product of its own result."""
    b = Builder()
    x, w = inputs(b, (5, 5), (5, 5))
    a = b.emit("Add", x, w)
    product = b.emit("MatMul", a, w)
    c = b.emit("Mul", a, product)
    fused = fused_of([x, w], c)
    assert [n.op for n in fused.nodes if n.op != "Input"] == ["Fused", "MatMul", "Fused"]
    reasons = kernels(fused)[1].attrs["boundaries"]
    assert any("a path leads through another kernel or library call" in r for r in reasons)


def test_independent_work_does_not_close_a_cycle_either() -> None:
    """Two chains through library calls in opposite order may not be merged crosswise."""
    b = Builder()
    x, w = inputs(b, (5, 5), (5, 5))
    a1, b1 = b.emit("Add", x, w), b.emit("Sub", x, w)
    a2, b2 = b.emit("MatMul", a1, w), b.emit("MatMul", b1, w)
    a3, b3 = b.emit("Sin", b.emit("Mul", a2, b1)), b.emit("Cos", b.emit("Mul", b2, a1))
    fused = fused_of([x, w], a3, b3)
    assert len(kernels(fused)) == 2


def test_random_mixtures_keep_their_meaning() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        b = Builder()
        pool = inputs(b, (6, 6), (6, 6))
        xs = list(pool)
        for _ in range(int(rng.integers(3, 14))):
            pool.append(_random_step(b, pool, rng))
        fused_of(xs, *pool[-3:])


def _random_step(b: Builder, pool: list[Value], rng: np.random.Generator) -> Value:
    x, y = (pool[i] for i in rng.integers(0, len(pool), 2))
    kind = rng.integers(0, 7)
    if kind == 0:
        return b.emit("MatMul", b.emit("Sin", x), b.emit("Cos", y))
    if kind == 1:
        axis = int(rng.integers(0, 2))
        total = b.emit("Sum", b.emit("Tanh", x), axes=(axis,))
        return b.emit("Sub", y, b.emit("ExpandDims", total, axes=(axis,)))
    if kind == 2:
        return b.emit("Transpose", b.emit("Sin", x), perm=(1, 0))
    if kind == 3:
        part = b.emit("Slice", x, starts=(5, 1), steps=(-2, 1), sizes=(3, 4))
        return b.emit("SliceUpdate", y, part, starts=(0, 0), steps=(1, 1), sizes=(3, 4))
    if kind == 4:
        part = b.emit("Slice", x, starts=(1, 0), steps=(1, 1), sizes=(3, 6))
        return b.emit("Concat", part, b.emit("Neg", part), axis=0)
    if kind == 5:
        return b.emit("Sin", b.emit("Exp", b.emit("Minimum", x, y)))
    return b.emit("Add", x, y)


@pytest.mark.alone
@pytest.mark.parametrize("length", [2000])
def test_long_chains_take_linear_time(length: int) -> None:
    def seconds(count: int) -> float:
        b = Builder()
        (x,) = inputs(b, (8,))
        value = x
        for _ in range(count):
            value = b.emit("Add", value, x)
        graph = Graph.build([x], [value])
        start = time.perf_counter()
        made = kernels(fuse(graph))
        assert sum(lower(kernel).operations for kernel in made) == count  # each is computed once
        return time.perf_counter() - start

    seconds(10)
    short, long = seconds(length // 4), seconds(length)
    assert long < 12 * short + 0.5
    assert long < 5


@pytest.mark.alone
def test_chains_of_library_calls_take_linear_time() -> None:
    """Every call ends a kernel: many groups, few candidates each."""
    b = Builder()
    x, w = inputs(b, (4, 4), (4, 4))
    value = x
    for _ in range(700):
        value = b.emit("Sin", b.emit("MatMul", value, w))
    start = time.perf_counter()
    fused = fuse(Graph.build([x, w], [value]))
    assert time.perf_counter() - start < 5
    assert len(kernels(fused)) == 700


def test_a_long_chain_is_not_computed_anew_by_every_kernel_that_reads_from_it() -> None:
    def steps(x: np.ndarray) -> np.ndarray:
        tops = []
        for _ in (None, "") * 10:  # Python goes over these
            top = np.sort(np.stack([x.sum(), x.max()]))[-1]
            x = np.remainder(np.sin(x) + top, 1.0) * 1.1
            tops.append(top)
        return np.array(tops)

    graph = fusec.jit(steps).trace(np.linspace(0, 1, 50)).optimize().graph
    bodies = [len(n.attrs["body"].nodes) for n in graph.nodes if n.op == "Fused"]
    assert len(bodies) >= 20 and sorted(bodies)[-2] < 20, bodies  # the last one stacks the tops


def test_the_reason_says_what_is_between_two_kernels() -> None:
    @fusec.jit
    def branches(x: Any) -> Any:
        y, total = np.exp(x) * 2, x.sum()
        if total > 3:
            total = total - y[0] * y[1]
        return y + total

    @fusec.jit
    def repeats(x: Any) -> Any:
        y, total = np.exp(x) * 2, x.sum()
        while total > 1e3:
            total = total * 0.5 - y[0]
        return y + total

    @fusec.jit
    def solves(x: Any) -> Any:
        y = np.exp(x) * 2
        return y + np.linalg.solve(np.eye(3) * 2 + x[0], y[:3])[0]

    for f, op, between in (
            (branches, "Cond", "branch or loop"), (repeats, "Loop", "branch or loop"),
            (solves, "LinalgSolve", "library call")):
        reasons = fusec.explain(f, np.arange(9.0)).boundaries
        assert any(f"({op}): a {between} is between them" in str(r) for r in reasons), reasons
