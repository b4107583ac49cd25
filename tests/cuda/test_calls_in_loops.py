"""Products and Fourier transforms in loops on a GPU are launches, in graphs with the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_cublas import NOT_SUPPORTED
from fake_cupy import FakeCupy, as_gpu

import fusec
from fusec.codegen.kernels import kernel_nodes
from fusec.core import gpus

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(4, 16)) + 1j * RNG.normal(size=(4, 16))
K = np.exp(-np.arange(16.0))
A, V = RNG.normal(size=(50, 50)), RNG.normal(size=(50, 60))
TIMES = 200


def spectral(z: Any, k: Any, n: Any) -> Any:
    for _ in range(n):
        z = np.fft.ifft(np.fft.fft(z) * k)
    return z


def power(a: Any, v: Any, n: Any) -> Any:
    for _ in range(n):
        v = a @ v
        v = v / np.abs(v).max()
    return v


PROGRAMS: list[tuple[Callable[..., Any], Any, Any]] = [(spectral, Z, K), (power, A, V)]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    """Loops of any size are the device's."""
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    with as_gpu(monkeypatch, 3) as fake:
        fake.pool.keeps = True
        yield fake


def asked(cupy: FakeCupy, jitted: Any, program: Any, x: Any, y: Any) -> Counter[str]:
    """A call, and what it asked for."""
    there = cupy.asarray(x), cupy.asarray(y)
    cupy.calls.clear()
    got = jitted(*there, np.int64(TIMES)).get()
    np.testing.assert_allclose(got, program(x, y, TIMES), rtol=1e-9, atol=1e-12)
    return Counter(cupy.calls)


@pytest.mark.parametrize(("program", "x", "y"), PROGRAMS)
def test_iterations_are_graphs(cupy: FakeCupy, program: Any, x: Any, y: Any) -> None:
    """Most of them, and nobody waits between."""
    jitted = fusec.jit(program)
    for _ in range(3):
        calls = asked(cupy, jitted, program, x, y)
    assert calls["graph"] > 10 and not calls["to host"], calls
    assert max(calls["cublasDgemm"], calls["cufftZ2Z"]) < TIMES / 2, calls


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("program", "x", "y"), PROGRAMS)
def test_what_is_refused_is_cupys(
    cupy: FakeCupy, program: Any, x: Any, y: Any, late: bool
) -> None:
    """Before there are graphs, or after."""
    jitted = fusec.jit(program)
    if late:
        asked(cupy, jitted, program, x, y)
        jitted = fusec.jit(program)  # with graphs of its own
    cupy.cublas.status = cupy.cufft.status = NOT_SUPPORTED
    for _ in range(2):
        calls = asked(cupy, jitted, program, x, y)
    assert calls["numpy.matmul"] + calls["numpy.fft.fft"] == TIMES, calls


@pytest.mark.parametrize(("program", "x", "y"), PROGRAMS)
def test_what_is_refused_in_graphs_is_launched(
    cupy: FakeCupy, program: Any, x: Any, y: Any
) -> None:
    jitted = fusec.jit(program)
    cupy.cublas.spoils = cupy.cufft.spoils = True
    for _ in range(2):
        calls = asked(cupy, jitted, program, x, y)
    assert not calls["graph"] and not calls["numpy.matmul"] + calls["numpy.fft.fft"], calls
    said = "loops on GPU 0 launch kernels one by one, as CUDA makes no graph: cu"
    assert any(note.startswith(said) for note in gpus.notes), gpus.notes
