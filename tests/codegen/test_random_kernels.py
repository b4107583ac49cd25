"""Random graphs of every kind of op: machine code and reference against NumPy's own evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import assert_same, make_inputs, run_graph, run_on_cpu, run_source

from fusec.codegen.kernels.reference import run_kernel
from fusec.ir import Graph, Value
from fusec.ops import Builder
from fusec.ops.graphs.evaluate import evaluate

SIDE = 6


def step(b: Builder, pool: list[Value], rng: np.random.Generator) -> Value:
    """One more (SIDE, SIDE) value made of two earlier ones."""
    x, y = (pool[i] for i in rng.integers(0, len(pool), 2))
    axis = int(rng.integers(0, 2))
    builders = [
        lambda: b.emit("Add", x, y),
        lambda: b.emit("Sin", b.emit("Sub", x, y)),
        lambda: b.emit("Sqrt", b.emit("Abs", x)),
        lambda: b.emit("Where", b.emit("Less", x, y), x, y),
        lambda: b.emit("Transpose", x, perm=(1, 0)),
        lambda: _centred(b, x, y, (axis,)),
        lambda: _centred(b, x, y, (0, 1)),
        lambda: _best(b, x, y, axis),
        lambda: _flipped(b, x, axis),
        lambda: _updated(b, x, y, rng),
        lambda: _rolled(b, x, axis, int(rng.integers(1, SIDE))),
        lambda: b.emit("Maximum", x, _row(b, y, int(rng.integers(0, SIDE)))),
    ]
    return builders[rng.integers(0, len(builders))]()


def _centred(b: Builder, x: Value, y: Value, axes: tuple[int, ...]) -> Value:
    total = b.emit("Sum", b.emit("Tanh", x), axes=axes)
    return b.emit("Sub", y, b.emit("ExpandDims", total, axes=axes))


def _best(b: Builder, x: Value, y: Value, axis: int) -> Value:
    at = b.emit("Cast", b.emit("ArgMax", b.emit("Tanh", x), axes=(axis,)), dtype=x.dtype)
    return b.emit("Mul", y, b.emit("ExpandDims", at, axes=(axis,)))


def _flipped(b: Builder, x: Value, axis: int) -> Value:
    starts, steps = [0, 0], [1, 1]
    starts[axis], steps[axis] = SIDE - 1, -1
    return b.emit("Slice", x, starts=tuple(starts), steps=tuple(steps), sizes=(SIDE, SIDE))


def _updated(b: Builder, x: Value, y: Value, rng: np.random.Generator) -> Value:
    steps = tuple(int(s) for s in rng.choice([1, 1, 2, -1], 2))
    sizes = tuple(int(s) for s in rng.integers(1, 4, 2))
    starts = tuple(
        int(rng.integers(0, SIDE - (n - 1) * s)) if s > 0 else int(rng.integers((n - 1), SIDE))
        for s, n in zip(steps, sizes, strict=True)
    )
    part = b.emit("Slice", y, starts=(1, 0), steps=(1, 2), sizes=(3, 3))
    part = b.emit("Slice", part, starts=(0, 0), steps=(1, 1), sizes=sizes)
    return b.emit("SliceUpdate", x, part, starts=starts, steps=steps, sizes=sizes)


def _rolled(b: Builder, x: Value, axis: int, by: int) -> Value:
    def part(start: int, size: int) -> Value:
        starts, sizes = [0, 0], [SIDE, SIDE]
        starts[axis], sizes[axis] = start, size
        return b.emit("Slice", x, starts=tuple(starts), steps=(1, 1), sizes=tuple(sizes))

    return b.emit("Concat", part(SIDE - by, by), part(0, SIDE - by), axis=axis)


def _row(b: Builder, x: Value, row: int) -> Value:
    one = b.emit("Slice", x, starts=(row, 0), steps=(1, 1), sizes=(1, SIDE))
    return b.emit("Squeeze", one, axes=(0,))


def random_graph(seed: int) -> tuple[Graph, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    whole = rng.standard_normal((3, SIDE, 2 * SIDE))
    arrays = [whole[0, :, :SIDE], whole[1, :, SIDE:].T, np.ascontiguousarray(whole[2, :, ::2])]
    b = Builder()
    xs = make_inputs(b, *arrays)
    pool = list(xs)
    for _ in range(int(rng.integers(3, 16))):
        pool.append(step(b, pool, rng))
    return Graph.build(xs, [*pool[-2:], b.emit("Sum", pool[-1], axes=(0,))]), arrays


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    graph, arrays = random_graph(seed)
    want = evaluate(graph, arrays)
    engines = {"reference": run_kernel, "cpu": run_on_cpu}
    if seed % 4 == 0:
        engines["source"] = run_source
    for name, run in engines.items():
        for i, out in enumerate(run_graph(graph, arrays, run)):
            assert_same(out, np.asarray(want[i]), 1e-11, f"{name}, output {i}\n{graph}")
