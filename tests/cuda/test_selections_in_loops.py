"""Loops whose sizes data decide, by masks inside of them or before them, are one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_cupy import as_gpu
from test_sizes_of_the_run import HOST, compared

import fusec
from fusec.codegen.kernels import kernel_nodes
from tests.programs.corpus import programs

RNG = np.random.default_rng(7)


def selected(x: Any, n: Any) -> Any:
    """A selection of a selection; a sum, a maximum and an element of it."""
    total = 0.0
    for i in range(n):
        a = x[x > 0.1 * i]
        b = a[a < 1.5]
        if len(b) > 2:
            total = total + b.sum() + b.max()
            x[i] = b[-1] + 0.5
    return x, total


def empty(x: Any, n: Any) -> Any:
    """Fewer and fewer, and nothing in the end."""
    total = 0.0
    for i in range(n):
        y = x[x > 0.5 + i]
        total = total + y.sum() + len(y)
    return total


def rows(x: Any, n: Any) -> Any:
    x = x.reshape(-1, 10)
    total = np.zeros(x.shape[1])
    for i in range(n):
        y = x[x[:, 0] > 0.1 * i]
        total = total + y.sum(0) + (y.mean() if len(y) else 0)
    return total


def strided(x: Any, n: Any) -> Any:
    """Of columns, by steps."""
    x, total = x.reshape(-1, 10), 0.0
    for i in range(n):
        column = x[:, i]
        total = total + column[column > 0.1].sum() + np.flatnonzero(column[::3] > 0.1).sum()
    return total


def bins(x: Any, n: Any) -> Any:
    """Of integers, with what is not 0 as a condition."""
    k = (x * 9).astype(np.int32)
    counts = np.zeros(8, np.int64)
    for i in range(n):
        counts[i % 8] = k[(k % 8) == i].sum() + np.flatnonzero(k - i)[0]
    return counts


def of_a_selection(x: Any, n: Any) -> Any:
    """A size that is known when the loop begins; a sum over it."""
    y, total = x[x > 0.5], 0.0
    while total < n:
        total = total + np.abs(y).sum() + y[0]
        y = np.sqrt(np.abs(y)) + 0.1
    return y, total


def shrinking(x: Any, n: Any) -> Any:
    y = x[2:]
    for _ in range(n):
        y = y[y < 5] + 0.5
    return y


PROGRAMS = (selected, empty, rows, strided, bins, of_a_selection, shrinking)


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of any size are the device's."""
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    monkeypatch.setattr(kernel_nodes, "ONE_KERNEL", 0)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("size", [200, 20_000])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_loop_is_one_kernel(program: Callable[..., Any], size: int) -> None:
    """By one block, and by several, in another order each."""
    x, jitted = RNG.normal(size=size), fusec.jit(program, device=HOST)
    with fusec.config.override(cuda_host_seed=size):
        for n in (9, 0, 4):
            compared(jitted(x.copy(), np.int64(n)), program(x.copy(), n))
    kinds = [control.reason for control in jitted.concrete(x, np.int64(9)).control]
    assert kinds and all("one kernel that does all of it" in kind for kind in kinds), kinds


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "f8"])
def test_what_is_not_0(dtype: str) -> None:
    """In each dtype: NaN is not 0, and -0.0 is."""
    x = RNG.integers(0, 3, 700).astype(dtype)
    if x.dtype.kind == "f":
        x[::7], x[::5] = np.nan, -0.0

    def places(x: Any, n: Any) -> Any:
        found = np.zeros(4, np.int64)
        for i in range(n):
            found[i] = np.flatnonzero(x[i:])[i] + len(x[i:].nonzero()[0])
        return found

    jitted = fusec.jit(places, device=HOST)
    np.testing.assert_array_equal(jitted(x, np.int64(4)), places(x, 4))
    assert "one kernel" in jitted.concrete(x, np.int64(4)).control[0].reason


@pytest.mark.usefixtures("on_device")
def test_a_call_is_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the sizes."""
    x = RNG.normal(size=400)
    with as_gpu(monkeypatch) as cupy:
        jitted = fusec.jit(empty)
        for n in (5, 5, 3):
            given = cupy.asarray(x)
            cupy.calls.clear()
            np.testing.assert_allclose(jitted(given, np.int64(n)), empty(x, n), rtol=1e-12)
        assert cupy.calls.count("persistent") == 1
        assert cupy.calls.count("to host") <= 1, cupy.calls


# Whose sizes data or the counter decide, where this is one kernel at sizes that pay.
NAMED = ("crr_american_put", "kmeans", "berlekamp_massey", "longest_increasing")


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("name", NAMED)
def test_programs_of_the_corpus(name: str) -> None:
    program = next(p for p in programs() if p.name == name)
    jitted = fusec.jit(program.function, device=HOST)
    want = program.function(*program.inputs(program.small))
    compared(jitted(*program.inputs(program.small)), want)
    controls = jitted.traces[0].control
    assert any("one kernel that does all of it" in c.reason for c in controls)


def test_small_loops_are_a_cpus() -> None:
    """`explain` says why."""
    x, jitted = RNG.normal(size=300), fusec.jit(selected, device=HOST)
    jitted(x.copy(), np.int64(4))
    assert "it goes through elements one by one, beside arrays of fewer than 16,384" in str(
        fusec.explain(jitted, x.copy(), np.int64(4)))


def test_a_library_call_beside_them_is_named() -> None:
    def solved(x: Any, n: Any) -> Any:
        total = 0.0
        for i in range(n):
            y = x[x > 0.01 * i]
            total = total + np.convolve(y, y[:3]).sum()
        return total

    x, jitted = RNG.normal(size=300_000), fusec.jit(solved, device=HOST)
    jitted(x, np.int64(1))
    text = str(fusec.explain(jitted, x, np.int64(1)))
    assert "Convolve" in text and "no kernel for Loop" in text


def test_an_array_that_becomes_empty_and_grows_again() -> None:
    """It begins with nothing, on whichever device; it was said that an index is out of bounds."""
    def grows(x: Any) -> Any:
        w = x * 1.0
        for _ in range(23):
            w = w[::-1][1:]
        for _ in range(40):
            w = np.concatenate([w, x[:1]])
        return w

    x = np.arange(12.0)
    np.testing.assert_array_equal(fusec.jit(grows, device=HOST)(x), grows(x))
