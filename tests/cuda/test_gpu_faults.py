"""After a kernel's fault CUDA refuses everything: whatever a program does then says which kernels
may have done it.  Where memory is full, or a process was forked, nothing is broken."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_cupy import FakeCupy, as_gpu
from fake_streams import Streams
from forks import does_well

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.driver import pinned_buffers

X = np.random.default_rng(0).normal(size=(30, 30))
WEIGHTS, MANY = X[0].copy(), np.ones((10, 30, 30))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    monkeypatch.setattr(pinned_buffers, "LEAST_BYTES", 4096)
    monkeypatch.setattr(pinned_buffers, "PIECE", 1 << 15)
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def softmax(x: np.ndarray) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def layer(x: np.ndarray) -> Any:
    return np.tanh(x @ x + WEIGHTS)


def inverse(x: np.ndarray) -> Any:
    return np.linalg.inv(x + 9 * np.eye(30)) * 2


def weighted(x: np.ndarray) -> Any:
    return np.sin(x) * MANY


def mixed(x: np.ndarray) -> Any:
    return np.partition(np.cos(x), 3) + x


def counted(x: np.ndarray) -> Any:
    return np.cos(x).sum(), x[np.argsort(x[0])]


def grown(x: np.ndarray) -> Any:
    while x.sum() < 1000:
        x = x + 1
    return x


PROGRAMS = (softmax, layer, inverse, weighted, mixed, counted, grown)


def told(cupy: FakeCupy, call: Callable[[Any], Any], argument: Any, left: int) -> bool:
    """Whether a fault shows after so many calls of CUDA; then the program is told of it."""
    cupy.streams.left = left
    try:
        call(argument)
    except RuntimeError as error:
        assert "work on GPU 0 has failed: cudaErrorIll" in str(error)
        assert "kernel" in str(error)
    gc.collect()
    shown, cupy.streams.is_broken, cupy.streams.left = cupy.streams.is_broken, False, -1
    return shown


@pytest.mark.parametrize("calls", [0, 4])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_fault_is_told_wherever_it_shows(
    cupy: FakeCupy, program: Callable[..., Any], calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In calls with arrays of a GPU and of NumPy; first ones, prepared ones, and with graphs; at
    the first call of CUDA, at the next one, and so on.  Finalizers tell nothing."""
    f, host = fusec.jit(program), fusec.jit(program, device="GPU:0")
    x, seen, silent = cupy.asarray(X), fusec.jit(lambda x: np.sin(x) + 1), list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", silent.append)
    for call, argument in ((f, x), (host, X)):
        for _ in range(calls):
            call(argument)
        seen(x)
        count = 0
        while told(cupy, call, argument, count):
            count += 1 if count < 20 else 7
        assert count > 0
    assert not silent


def test_a_fault_is_told_to_who_reads_a_variable(cupy: FakeCupy) -> None:
    with fusec.device("GPU:0"):
        v = fusec.Variable(np.zeros((30, 30)))

    @fusec.jit
    def step(x: np.ndarray) -> None:
        v.assign_add(np.sin(x))

    x = cupy.asarray(X)
    step(x), step(x)
    cupy.streams.is_broken = True
    with pytest.raises(RuntimeError, match="work on GPU 0 has failed") as error:
        v.numpy()
    assert "v.assign_add(np.sin(x))" in str(error.value)
    cupy.streams.is_broken = False
    np.testing.assert_allclose(v.numpy(), 2 * np.sin(X))


@pytest.mark.parametrize("program", [*PROGRAMS, lambda x, a=2.5: (x * a).sum(axis=0)])
def test_a_full_gpu_is_emptied_once(cupy: FakeCupy, program: Callable[..., Any]) -> None:
    """Then the call goes on, or tells the bytes asked for and free; the next is as ever."""
    f, host = fusec.jit(program), fusec.jit(program, device="GPU:0")
    x = cupy.asarray(X)
    for call, argument in ((f, x), (host, X)):
        want = call(argument)
        call(argument), call(argument)
        cupy.pool.free.clear()  # what the pool had is gone to others
        room, cupy.pool.room, cupy.cached = cupy.pool.room, 4, 1 << 30
        cupy.calls.clear()
        got = call(argument)
        assert "free_all_blocks" in cupy.calls
        cupy.pool.room = 4
        with pytest.raises(MemoryError, match="GPU 0 has no room for") as error:
            call(argument), call(argument)
        assert "free" in str(error.value) and "largest arrays of fusec" in str(error.value)
        cupy.pool.room = room
        assert type(call(argument)) is type(got) is type(want)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA cannot be used there: the error says so, and finalizers there ask for nothing."""
    process, look = os.getpid(), Streams.look

    def looked(streams: Streams) -> None:
        if os.getpid() != process:
            streams.is_broken = True
        look(streams)

    monkeypatch.setattr(Streams, "look", looked)
    f, backend = fusec.jit(weighted), backends.backend("gpu")
    assert backend.arrays is not None
    x = cupy.asarray(X)
    kept = [*(f(x) for _ in range(4)), backend.arrays.bring(MANY)]

    def in_child() -> bool:
        kept.clear()
        gc.collect()
        asked = cupy.streams.is_broken
        with pytest.raises(RuntimeError) as refusal:
            f(x)
        return "get_context('spawn')" in str(refusal.value) and not asked

    assert does_well(in_child)
    np.testing.assert_allclose(f(x).get(), np.sin(X) * MANY)
