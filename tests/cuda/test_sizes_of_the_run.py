"""Kernels over sizes that only the run knows: layouts are those of their text, whatever the sizes;
loops in which slices are as long as the iteration says are one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from fake_cupy import as_gpu

import fusec
from fusec.codegen.cuda.persistent import choice
from fusec.codegen.cuda.persistent import program as persistent_programs
from fusec.codegen.kernels import kernel_nodes

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(5)


def short_rows(x: Any, y: Any) -> Any:
    return (x[x > 0][:, None] * y[None, :]).sum(1)


def columns(x: Any, y: Any) -> Any:
    return (x[x > 0][:, None] * y[None, :]).sum(0)


def apart(x: Any, y: Any) -> Any:
    m = x[x > 0]
    return m[1:] - m[:-1] * y[0]


def normalised(x: Any, y: Any) -> Any:
    m = x[x > 0][:, None] * y[None, :]
    return m / m.sum(1, keepdims=True)


def total(x: Any, y: Any) -> Any:
    m = x[x > 0] * y[0]
    return m.sum() + m.max()


PROGRAMS = (short_rows, columns, apart, normalised, total)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_results_are_numpys(program: Callable[..., Any]) -> None:
    """Rows of 24 float32, which share a warp where sizes are known; neighbours at addresses that
    are not aligned."""
    jitted = fusec.jit(program, device=HOST)
    for size in (3, 700, 5003):
        x = np.abs(RNG.normal(size=size)).astype(np.float32)
        x[::3] *= -1
        y = RNG.uniform(1, 2, 24).astype(np.float32)
        np.testing.assert_allclose(jitted(x, y), program(x, y), rtol=1e-5, atol=1e-7)


# ------------------------------------------------------------------ in loops that are one kernel


def triangle(a: Any, n: Any) -> Any:
    """Products of rows as long as the iteration says, and roots on the way."""
    rows = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] - rows[i, :j] @ rows[j, :j]
            if i == j:
                rows[i, i] = np.sqrt(np.abs(s) + 1)
            else:
                rows[i, j] = s / rows[j, j]
    return rows


def eliminated(a: Any, n: Any) -> Any:
    """With rows exchanged: a check of indices, and a store in the operand that is checked."""
    a, order = a.copy(), np.arange(len(a))
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            order[[k, p]] = order[[p, k]]
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return a, order


def reduced(a: Any, n: Any) -> Any:
    """Rows, columns and all of a part; a mean, whose divisor is a size of the run."""
    out = np.zeros((len(a), 4))
    for k in range(1, n):
        part = a[k:, :k]
        out[k, 0] = part.sum(1).max()
        out[k, 1] = part.sum(0).min()
        out[k, 2] = part.mean()
        out[k, 3] = np.argmin(a[k, k:])
    return out


def softened(a: Any, n: Any) -> Any:
    """Rows whose values a later stage needs again."""
    a = a.copy()
    for k in range(1, n):
        e = np.exp(a[:k, k:] - a[:k, k:].max(1, keepdims=True))
        a[:k, k:] = e / e.sum(1, keepdims=True) + a[:k, k:]
    return a


def strided(a: Any, n: Any) -> Any:
    """Steps that the run decides."""
    x = a.ravel().copy()
    for k in range(2, n):
        x[k * k::k] = k
        x[:k] += 0.5
        x[k::2] *= 1.25
    return x


def halved(a: Any, n: Any) -> Any:
    """A size that is divided, and two arrays that change places."""
    x, m = a.ravel().copy(), n * n
    while m > 1:
        m = m // 2
        low, high = x[:2 * m:2].copy(), x[1:2 * m:2].copy()
        x[:m], x[m:2 * m] = (low + high) / 2, (low - high) / 2
    return x


LOOPS = (triangle, eliminated, reduced, softened, strided, halved)


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of any size are the device's."""
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    monkeypatch.setattr(kernel_nodes, "ONE_KERNEL", 0)


def compared(got: Any, want: Any) -> None:
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("program", LOOPS, ids=lambda p: p.__name__)
def test_a_loop_is_one_kernel(program: Callable[..., Any]) -> None:
    a, jitted = RNG.uniform(1, 2, (17, 17)), fusec.jit(program, device=HOST)
    with fusec.config.override(cuda_host_seed=3):
        for n in (17, 2, 9):
            compared(jitted(a.copy(), np.int64(n)), program(a.copy(), n))
    control = jitted.concrete(a, np.int64(9)).control[0]
    assert "one kernel that does all of it" in control.reason


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("seed", [0, 5])
def test_blocks_share_what_is_large(seed: int) -> None:
    a, jitted = RNG.uniform(1, 2, (130, 130)), fusec.jit(softened, device=HOST)
    with fusec.config.override(cuda_host_seed=seed):
        compared(jitted(a.copy(), np.int64(4)), softened(a.copy(), 4))
    run: Any = jitted.concrete(a, np.int64(4)).control[0].run
    assert run.program.code.shape.at({})[0] > 1


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("program", [triangle, eliminated], ids=lambda p: p.__name__)
def test_calls_are_prepared(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = RNG.uniform(1, 2, (9, 9))
    with as_gpu(monkeypatch) as cupy:
        jitted, given = fusec.jit(program), cupy.asarray(a)
        for n in (9, 9, 4, 7):
            cupy.calls.clear()
            got = optree.tree_map(lambda x: x.get(), jitted(given, np.int64(n)))
            compared(got, program(a.copy(), n))
        assert cupy.calls.count("persistent") == 1
        (trace,) = jitted.traces
        assert trace.gpu_call.function is not None, trace.gpu_call.reason


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("program", [triangle, halved], ids=lambda p: p.__name__)
def test_where_no_kernel_can_be_made_launches_run(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistent_programs, "MOST_LINES", 0)
    a = RNG.uniform(1, 2, (6, 6))
    jitted = fusec.jit(program, device=HOST)
    compared(jitted(a.copy(), np.int64(6)), program(a.copy(), 6))
    control = jitted.concrete(a, np.int64(6)).control[0]
    assert "kernels (not one for all iterations: " in control.reason
    assert "lines of code" in control.reason


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("program", LOOPS, ids=lambda p: p.__name__)
def test_a_loop_is_launches(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one kernel is not chosen: reductions, steps and checks at sizes of the run."""
    monkeypatch.setattr(choice, "forced", "launched")
    a, jitted = RNG.uniform(1, 2, (17, 17)), fusec.jit(program, device=HOST)
    with fusec.config.override(cuda_host_seed=3):
        for n in (17, 2, 9):
            compared(jitted(a.copy(), np.int64(n)), program(a.copy(), n))
    assert "text that launches" in jitted.concrete(a, np.int64(9)).control[0].reason


def shifted(x: Any, n: Any) -> Any:
    """A part into itself, of an array that a loop before has made shorter."""
    w = np.zeros(30) + x[0]
    for i in range(n):
        w = w[1:]
        if x[i] > 1:
            break
    for _ in range(20):
        w[1:] = w[:-1]
        w[0] += 1
    return w


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("way", ["persistent", "launched"])
def test_a_part_of_what_is_shorter_goes_into_itself(
    way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy between had no memory, and was written all the same."""
    monkeypatch.setattr(choice, "forced", way)
    x, jitted = np.linspace(0, 1.2, 40), fusec.jit(shifted, device=HOST)
    for n in (7, 3, 29, 0):
        np.testing.assert_array_equal(jitted(x, np.int64(n)), shifted(x, n))
    reason = jitted.concrete(x, np.int64(7)).control[-1].reason
    assert ("one kernel that does" if way == "persistent" else "launches") in reason


def wrong_index(a: Any, n: Any) -> Any:
    for k in range(n):
        a[[k, k + 2]] = a[[k + 2, k]] + 1
        a[k:, 0] *= 2
    return a


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("way", ["persistent", "launched"])
def test_checks_of_what_is_changed_come_first(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", way)
    a = RNG.uniform(1, 2, (6, 6))
    there = fusec.jit(wrong_index, device=HOST)
    np.testing.assert_array_equal(there(a.copy(), np.int64(4)), wrong_index(a.copy(), 4))
    with pytest.raises(IndexError) as want:
        fusec.jit(wrong_index)(a.copy(), np.int64(6))
    with pytest.raises(IndexError) as got:
        there(a.copy(), np.int64(6))
    assert str(got.value) == str(want.value)
    reason = there.concrete(a, np.int64(6)).control[0].reason
    assert ("one kernel that does" if way == "persistent" else "launches") in reason
