"""Branches and loops over arrays in blocks: run by each block, written out, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")

from tests.distributed.chunked import compared  # noqa: E402

RNG = np.random.default_rng(0)
X, V = RNG.standard_normal((60, 8)), RNG.standard_normal(60)
LONG = np.tile(V, 20)
POSITIVE = np.abs(V) + 1


# ----------------------------------------------------------------------------- within each block


def cube_root(x: Any) -> Any:
    y = x
    for _ in range(2000):
        y = y - (y * y * y - x) / (3 * y * y + 1.0)
    return y


def summed(x: Any) -> Any:
    """What is carried begins in no blocks, and is in blocks after an iteration."""
    s = np.zeros(x.shape[0])
    for k in range(x.shape[1]):
        s = s + x[:, k] * k
    return s


def filled(x: Any) -> Any:
    """Columns are written one by one."""
    y = np.zeros(x.shape)
    for k in range(x.shape[1]):
        y[:, k] = x[:, k] * 0.5 + y[:, k - 1]
    return y


def normalised(x: Any) -> Any:
    for k in range(40):
        x = x / np.sqrt((x * x).sum(axis=1))[:, None] + 0.1 * k
    return x


def counted(x: Any) -> Any:
    for k in range(40):
        x = x * 0.5 + np.arange(len(x)) * k
    return x


def nested(x: Any) -> Any:
    for k in range(20):
        for j in range(30):
            x = x * 0.9 + j * 0.1
        x = x - k
    return x[1:] - x[:-1]


def exchanged(x: Any, y: Any) -> Any:
    for k in range(50):
        x, y = y * 0.5 + k, x - 1.0
    return x


def unused_beside(x: Any, y: Any) -> Any:
    """Blocks that need one of the carried values run a loop that has no other."""
    for k in range(50):
        x, y = x * 0.5 + k, y - 1.0
    return x, y.sum()


def while_numbers(x: Any, limit: float) -> Any:
    step = 1.0
    while step > limit:
        x = np.sin(x) + step
        step = step * 0.7
    return x, step


def branched(x: Any, n: int) -> Any:
    if n > 3:
        for k in range(n):
            x = np.sin(x) + k
    else:
        x = x * 2
    return x


def by_data(x: Any, table: Any) -> Any:
    """Whether a loop goes on is decided by data that are the same everywhere."""
    k = 0
    while table[k] > 0:
        if table[k + 1] > 2:
            x = x * table[k] - 1
        k += 1
    return x, k


def edges_from_outside(x: Any, y: Any) -> Any:
    """What is not carried may be read beside the block."""
    for k in range(50):
        x = x * 0.5 + (y[1:] - y[:-1]) * k
    return x


WITHIN = {
    "cube root": (cube_root, (V,), (11,)),
    "begins whole": (summed, (X,), ((7, 8),)),
    "columns": (filled, (X,), ((7, 8),)),
    "rows": (normalised, (X,), ((7, 8),)),
    "counters": (counted, (V,), (13,)),
    "nested": (nested, (V,), (13,)),
    "exchanged": (exchanged, (V, V + 1), (13, 17)),
    "while": (while_numbers, (V, 0.01), (13, None)),
    "branch": (branched, (V, 50), (13, None)),
    "other side": (branched, (V, 2), (13, None)),
    "by data": (by_data, (V, np.array([3, 1.0, 4, 1, 5, 0, 2])), (13, None)),
    "edges": (edges_from_outside, (V[1:], V), (13, 13)),
    "blocks of both axes": (cube_root, (X,), ((7, 3),)),
}


@pytest.mark.parametrize("name", WITHIN)
def test_each_block_runs_the_loop(name: str) -> None:
    function, args, chunks = WITHIN[name]
    compared(function, *args, chunks=chunks)
    cut = [a if c is None else da.from_array(a, chunks=c) for a, c in zip(
        args, chunks, strict=True)]
    assert len(fusec.explain(fusec.jit(function), *cut).stages) <= 2


def test_blocks_that_need_one_carried_value_carry_no_other() -> None:
    compared(unused_beside, V, V + 1, chunks=(13, 13), exact=[True, False])


def test_one_task_a_block() -> None:
    blocks = 40
    x = da.from_array(np.ones(400), chunks=10)
    lazy = fusec.jit(cube_root)(x)
    assert len(dict(lazy.dask)) == len(dict(x.dask)) + blocks + 1  # and the stage's graphs
    report = fusec.explain(fusec.jit(cube_root), x)
    assert report.tasks == blocks
    assert "a loop within each block at" in str(report)
    assert "test_loops_in_blocks.py:" in str(report)


# ------------------------------------------------------------------------------------ written out


def heat(u: Any, steps: int) -> Any:
    for _ in range(steps):
        v = u.copy()
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = v
    return u


def plate(u: Any) -> Any:
    for _ in range(20):
        v = u.copy()
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u = v
    return u


def power(a: Any, n: int) -> Any:
    v = np.ones(a.shape[1])
    for _ in range(n):
        w = a.T @ (a @ v)
        v = w / np.sqrt((w * w).sum())
    return v


def descent(x: Any, y: Any, rate: float, n: int) -> Any:
    w = np.zeros(x.shape[1])
    for k in range(n):
        w = w - rate / (1 + 0.1 * k) * (x.T @ (x @ w - y) / len(y))
    return w


def means(x: Any, c: Any, n: int) -> Any:
    for _ in range(n):
        labels = ((x[:, None, :] - c[None]) ** 2).sum(axis=2).argmin(axis=1)
        member = (labels[:, None] == np.arange(c.shape[0])[None]).astype(float)
        c = (member.T @ x) / np.maximum(member.sum(axis=0), 1)[:, None]
    return c, labels


def converged(x: Any, tolerance: float) -> Any:
    """Data end it, and a number at the latest."""
    number = 0
    while number < 30:
        number += 1
        y = x - (x * x - 2) / (2 * x)
        if np.abs(y - x).max() < tolerance:
            break
        x = y
    return x, number


def standardised(x: Any, n: int) -> Any:
    for k in range(n):
        x = x - x.mean()
        x = x / x.std() + k
    return x


def picked(x: Any, n: int) -> Any:
    s = 0.0
    for k in range(n):
        s = s + x[k] * k
        x = x * 0.9 + s
    return x, s


def shortest(d: Any) -> Any:
    for k in range(d.shape[0]):
        d = np.minimum(d, d[:, k][:, None] + d[k][None, :])
    return d


def triangle(x: Any) -> Any:
    """The numbers of the inner loop's iterations are the outer one's."""
    for k in range(6):
        for j in range(k):
            x = x - x.max() * j
    return x


WRITTEN_OUT = {
    "heat": (heat, (V, 20), (11, None), True),
    "heat of long blocks": (heat, (LONG, 60), (100, None), True),
    "plate": (plate, (X,), ((12, 8),), True),
    "plate along both axes": (plate, (X,), ((12, 4),), True),
    "power iteration": (power, (X, 20), ((13, 8), None), False),
    "gradient descent": (descent, (X, V, 0.1, 25), ((13, 8), 13, None, None), False),
    "k-means": (means, (X, X[:4], 20), ((13, 8), None, None), False),
    "data end it": (converged, (POSITIVE, 1e-10), (11, None), True),
    "variances": (standardised, (V, 20), (11, None), False),
    "positions": (picked, (V, 20), (11, None), True),
    "shortest paths": (shortest, (np.abs(X[:8]).round(2),), ((3, 8),), True),
    "triangle": (triangle, (V,), (11,), True),
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_iterations_are_written_out(name: str) -> None:
    function, args, chunks, exact = WRITTEN_OUT[name]
    compared(function, *args, chunks=chunks, exact=exact)


def sums_of_both(x: Any, n: int) -> Any:
    return x - x.mean() if n > 3 else x + x.sum()


def sums_by_data(x: Any, table: Any) -> Any:
    for k in range(6):
        x = x - x.max() if table[k] > 1 else x + x.min()
    return x


def test_a_branch_whose_sides_need_all_blocks() -> None:
    compared(sums_of_both, V, 5, chunks=(11, None), exact=False)
    compared(sums_of_both, V, 1, chunks=(11, None), exact=False)
    compared(sums_by_data, V, np.array([2, 0, 1, 5, 0, 3.0]), chunks=(11, None))


def contracted(x: Any, y: Any, n: int) -> Any:
    """Products that a sum takes, or does not: in an iteration, not between two."""
    p = x
    for k in range(n):
        q = p * 1.1
        x = x + q * (1.0 + k)
        p = x * y
        x = x + p.max()
    return x + p * 3.3, p


def test_products_are_contracted_as_in_the_loop() -> None:
    compared(contracted, V, V[::-1].copy() / 3, 20, chunks=(11, 11, None))


def test_edges_grow_until_they_are_stored() -> None:
    """Long blocks do many steps at once, short ones store what is carried."""
    def stages(x: Any, chunk: int, steps: int) -> Any:
        return fusec.explain(fusec.jit(heat), da.from_array(x, chunks=chunk), steps)

    long = stages(LONG, 200, 20)
    assert len(long.stages) == 1 and long.tasks == 6
    assert "edges: 20 elements of u along axis 0" in str(long)
    assert "a loop unrolled 20 times, of 1,000 at most at" in str(long)
    short = stages(V, 10, 20)
    assert len(short.stages) == 10 and short.tasks == 60
    assert "what it carries stored 9 times" in str(short)
    assert "edges: 2 elements of" in str(short)


def test_one_task_a_block_and_stage_and_the_trees() -> None:
    x = da.from_array(np.ones(400), chunks=10)
    lazy = fusec.jit(standardised)(x, 5)
    report = fusec.explain(fusec.jit(standardised), x, 5)
    names = [key[0] for key in dict(lazy.dask) if isinstance(key, tuple) and "stage" in key[0]]
    assert len(names) <= report.tasks == sum(stage.blocks for stage in report.stages)
    assert all(stage.blocks <= 40 for stage in report.stages)


def test_sums_have_the_same_bits_for_any_number_of_threads() -> None:
    x = da.from_array(RNG.standard_normal((300, 6)), chunks=(37, 6))
    f = fusec.jit(power)
    results = [f(x, 10).compute(scheduler=s, num_workers=n)
               for s, n in (("sync", 1), ("threads", 2), ("threads", 4))]
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_a_branch_on_what_is_in_no_blocks_in_a_loop_of_blocks() -> None:
    """Of its own nodes nobody knows places."""
    def f(x: Any, table: Any, n: int) -> Any:
        k = 0
        while k < n and table.sum() > 0:
            k = k + 1
            x = x * 0.5
        return x

    compared(f, V, POSITIVE, 30, chunks=(13, None, None))


def test_zeros_of_two_signs_are_two_numbers() -> None:
    """Which of them data decide is not known."""
    def f(x: Any, n: int) -> Any:
        s = 0.0
        for _ in range(n):
            x = np.copysign(1.0, s) * x - x.max() * 0.1
            s = 0.0 if x[0] > 0 else -0.0
        return x, s

    compared(f, V, 20, chunks=(13, None))


@pytest.mark.parametrize("times", (0, 30))
def test_what_an_iteration_replaces_is_the_result_of_none(times: int) -> None:
    """No iteration reads it; blocks that look alike read it where there is none."""
    def f(x: Any, y: Any, z: float, n: int) -> Any:
        k = 0
        while k < n and z > 0:
            k = k + 1
            y = np.sin(x) * k
        return y

    compared(f, V, V + 1, 0.5, times, chunks=(10, 10, None, None))
