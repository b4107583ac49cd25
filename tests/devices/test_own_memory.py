"""A device whose kernels read memory of their own: arrays are copied there and back."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from heap_backend import BACKEND, KIND, HeapBackend

import fusec
from fusec.codegen import backends

AWAY = "/device:HEAP:0"


@pytest.fixture(autouse=True)
def away(monkeypatch: pytest.MonkeyPatch) -> HeapBackend:
    monkeypatch.setitem(backends.KINDS, "heap", KIND)
    assert backends.backend("heap") is BACKEND
    monkeypatch.setattr(BACKEND, "ran", 0)
    return BACKEND


def check(function: Any, *args: Any, **options: Any) -> Any:
    jitted = fusec.jit(function, device=AWAY, **options)
    for _ in range(2):
        got = jitted(*args)
    want = function(*args)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert type(a) is type(b) and np.shape(a) == np.shape(b)
    return jitted


X = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("x", [
    X, X[:, ::2], X[::-1], X.T, X[::2].T[::3], np.broadcast_to(np.arange(3.0), (4, 3)), X[:0],
    X[:1], np.float32(X)], ids=str)
def test_arguments_of_any_layout(x: np.ndarray, away: HeapBackend) -> None:
    check(lambda x: (np.sin(x) + 1, x * 2), x)
    assert away.ran


def test_what_has_no_kernel_runs_on_the_host(away: HeapBackend) -> None:
    def f(x):
        y = np.exp(x - x.max(axis=1, keepdims=True))
        z = np.sort(y @ y.T, axis=0)
        return z / z.sum(), y

    jitted = check(f, X)
    parts = jitted.concrete(X).partitions
    ops = {name.rpartition("/")[2]: {n.op for n in graph.nodes} for name, graph in parts.items()}
    assert {"MatMul", "Sort"} <= ops["device:CPU:0"] and "Fused" in ops["device:HEAP:0"]
    assert not {"MatMul", "Sort"} & ops["device:HEAP:0"]


def test_numbers_scalars_and_sums() -> None:
    check(lambda x, n: (x.sum() * n, x.mean(), (x > 3).any(), x.argmax()), X, 3)


def test_loops_and_branches() -> None:
    def f(x, n):
        total = np.zeros_like(x)
        for i in range(n):
            total = total + np.sin(x * i)
        if total.sum() > 0:
            total = total * 2
        return total

    check(f, X, 5)
    assert np.isfinite(fusec.jit(f, device=AWAY)(X, 3)).all()


def test_arguments_that_are_written(away: HeapBackend) -> None:
    def f(x):
        x *= 2
        x[1] = 7
        return x.sum()

    mine, numpys = X.copy(), X.copy()
    assert fusec.jit(f, device=AWAY)(mine) == f(numpys)
    np.testing.assert_array_equal(mine, numpys)
    assert away.ran


def test_layouts_of_results() -> None:
    def f(x):
        return np.sin(x).T, np.cos(x)[:, 1:3], np.stack([x, x + 1])

    got, want = fusec.jit(f, device=AWAY)(X), f(X)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b)
        assert a.strides == b.strides and a.flags.writeable


def test_memory_is_given_back(away: HeapBackend) -> None:
    gc.collect()
    before = away.arrays.heap.used
    jitted = fusec.jit(lambda x: np.sin(x).sum(axis=0), device=AWAY)
    jitted(X)
    gc.collect()
    assert away.arrays.heap.used == before


def test_errors_of_kernels() -> None:
    def f(x, i):
        return x[i] + 1

    jitted = fusec.jit(f, device=AWAY)
    index = np.array([1, 2])
    np.testing.assert_array_equal(jitted(X, index), f(X, index))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        jitted(X, np.array([1, 9]))
    np.testing.assert_array_equal(jitted(X, index), f(X, index))


def test_half_of_the_bits_on_the_way() -> None:
    @fusec.jit
    def f(x):
        with fusec.device("CPU:0", sends="bfloat16"):
            y = np.sin(x)
        with fusec.device(AWAY, sends="bfloat16"):
            z = y * 2
        with fusec.device("CPU:0"):
            return np.sort(z)

    x = np.float32(X)
    np.testing.assert_allclose(f(x), np.sort(np.sin(x) * 2), rtol=2e-2)


def test_variables() -> None:
    count = fusec.Variable(np.zeros(6))

    @fusec.jit
    def f(x):
        with fusec.device(AWAY):
            total = x.sum(axis=0)
        count.assign_add(total)
        with fusec.device(AWAY):
            return count.read_value() * 2

    f(X)
    np.testing.assert_array_equal(f(X), 4 * X.sum(axis=0))
    np.testing.assert_array_equal(count.numpy(), 2 * X.sum(axis=0))


def test_many_sizes() -> None:
    def f(x):
        y = np.cumsum(x, axis=0)[::2]
        return y.T * 3, y.max(axis=0)

    jitted = fusec.jit(f, device=AWAY)
    for rows in (2, 3, 7, 8, 20):
        x = np.arange(6.0 * rows).reshape(rows, 6)
        for a, b in zip(jitted(x), f(x), strict=True):
            np.testing.assert_array_equal(a, b)
