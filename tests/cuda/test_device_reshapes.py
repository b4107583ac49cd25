"""Reshapes on a device: views of arrays in C order, else copies by kernels, and never the CPU's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu

import fusec

X = np.random.default_rng(0).normal(size=(40, 30))
TRANSFERS = {"to host", "to device", "asarray"}


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def row_sums(x: Any) -> Any:
    return x.reshape(-1, 10).sum(1)


def stencil(x: Any) -> Any:
    a = x.reshape(-1, 100)
    return a[1:-1, 1:-1] + a[:-2, 1:-1]


def transposed(x: Any) -> Any:
    return x.T.reshape(-1) * 2


def result_of_a_view(x: Any) -> Any:
    return x.T.reshape(-1, 10), x[1:-1, ::3].reshape(-1)


def in_fortran_order(x: Any) -> Any:
    return (x + 1).ravel("F"), x.reshape(30, 40, order="F") * 2


def broadcast(x: Any) -> Any:
    return np.broadcast_to(x[:, None, :], (40, 3, 30)).reshape(-1, 30) * 2


def read_twice(x: Any) -> Any:
    y = x.T.reshape(-1)
    return y, y + 1


def none_and_one(x: Any) -> Any:
    return x[:0].reshape(0, 5).sum(1), x[3, 3:4].reshape(()) + x


def written(x: Any) -> Any:
    y = (x * 2).T.reshape(40, 30)
    x[...] = y
    return x.sum(1)


PROGRAMS = (row_sums, stencil, transposed, result_of_a_view, in_fortran_order, broadcast,
            read_twice, none_and_one, written)


def same(got: Any, want: Any) -> None:
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        np.testing.assert_allclose(one.get() if isinstance(one, FakeArray) else one, other)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_arrays_of_a_gpu_stay_there(cupy: FakeCupy, program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    for number in range(4):
        given = X + number
        there = cupy.asarray(given)
        cupy.calls.clear()
        got = jitted(there)
        assert number < 2 or not TRANSFERS.intersection(cupy.calls)
        same((got, there), (program(given), given))
    assert jitted.traces[0].gpu_call.function is not None
    assert ", 0 library calls" in str(fusec.explain(jitted, there))


def test_sizes_that_vary(cupy: FakeCupy) -> None:
    """One launch a call, at any size."""
    jitted = fusec.jit(row_sums)
    for rows in (10, 20, 30, 40, 10, 20):
        there = cupy.asarray(X[:rows])
        cupy.calls.clear()
        same(jitted(there), row_sums(X[:rows]))
    assert jitted.trace_count == 2 and [call[:4] for call in cupy.calls] == ["nest"]


def strided(x: np.ndarray) -> np.ndarray:
    """The same numbers with gaps between them."""
    wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]))
    part = wide[::2, ::3]
    part[...] = x
    return part


@pytest.mark.parametrize("make", [np.copy, strided, np.asfortranarray])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_arrays_of_the_host(program: Callable[..., Any], make: Callable[..., Any]) -> None:
    jitted = fusec.jit(program, device="/device:CUDAHOST:0")
    given, plain = make(X), make(X)
    same((jitted(given), given), (program(plain), plain))


def loop(x: Any) -> Any:
    y = x.reshape(-1)
    for _ in range(30):
        y = y * 0.5 + x.reshape(-1)
        y = y.reshape(30, 40).T.reshape(-1)
    return y


def test_in_loops(cupy: FakeCupy) -> None:
    jitted, there = fusec.jit(loop), cupy.asarray(X)
    for _ in range(4):
        cupy.calls.clear()
        same(jitted(there), loop(X))
    assert not TRANSFERS.intersection(cupy.calls)


def of_rows(x: Any) -> Any:
    """A loop whose rows are sorted by the CPU: its body is divided, step by step."""
    total = x[0] * 0
    for row in x:
        total = np.sort(row.reshape(10, 3).T.reshape(-1)) + row.reshape(3, 10)[::-1].reshape(-1)
        total = total * 0.5
    return total


def test_in_the_body_of_a_divided_loop() -> None:
    """The fuzzer's c626: the device was asked for a library."""
    same(fusec.jit(of_rows, device="/device:CUDAHOST:0")(X), of_rows(X))


def of_one_memory(x: Any, y: Any, rows: Any, bound: Any) -> Any:
    """The fuzzer's c60870: a branch that runs step by step, whose arguments lie in one array."""
    s, t, q = 0.0, bound, 1.0
    if bound < -2.0:
        return s, t, q, x, y
    q -= (s if (t < 5 or s >= q) else (s * q) * 0.5)
    t = y[:2].sum()
    rows += rows[::-1]
    y[[0, 5]] = 0.5
    for k in range(10, 1, -3):
        x, y = y, x
        if not -1.0 < t < q:
            q = abs(rows[1, -(k % 8)])
        elif t > 0:
            rows[1, 0] = t
            q = rows[1, 1]
        else:
            rows[1, -1] += 0.5
            q = t
    return t, s, q, y, x


@pytest.mark.parametrize("bound", [-3.0, 1.0])
def test_reshapes_of_views_in_branches_that_run_step_by_step(bound: float) -> None:
    def args() -> tuple[Any, ...]:
        z = np.arange(40.0) / 8 - 2
        return z[16:28], np.arange(12.0) / 4 - 1, z[:32].reshape(4, 8), bound

    given, mine = args(), args()
    got, want = fusec.jit(of_one_memory, device="/device:CUDAHOST:0")(*given), of_one_memory(*mine)
    for one, other in zip((*got, *given), (*want, *mine), strict=True):
        np.testing.assert_array_equal(one, other)
