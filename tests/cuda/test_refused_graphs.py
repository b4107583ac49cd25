"""CUDA graphs that cannot be made or launched: calls launch kernels instead, stay right, and
`explain` says so.  A fault inside of one names its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_cublas import NOT_SUPPORTED
from fake_cupy import FakeCupy, as_gpu
from fake_streams import CUDARuntimeError, Graph, Stream

import fusec
from fusec.codegen.cuda.persistent import choice
from fusec.codegen.kernels import kernel_nodes

X = np.random.default_rng(0).normal(size=(30, 30))
NO_MEMORY = CUDARuntimeError("cudaErrorMemoryAllocation: out of memory", 2)
UNSUPPORTED = CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted")
INVALID = CUDARuntimeError("cudaErrorStreamCaptureInvalidated: operation failed")


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops launch kernels, at any size."""
    monkeypatch.setattr(choice, "forced", "launched")
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def heat(u: Any, n: Any) -> Any:
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = u[1:].sum() / 900
        u[-1] = u.max()
    return u


def raises(monkeypatch: pytest.MonkeyPatch, of: Any, name: str, error: Exception) -> None:
    """A method that fails, and ends no capture that was begun."""
    method = getattr(of, name)

    def fails(self: Any, *args: Any) -> Any:
        if name == "end_capture":
            method(self, *args)
        raise error

    monkeypatch.setattr(of, name, fails)


REFUSALS = [(Stream, "begin_capture", UNSUPPORTED), (Stream, "end_capture", INVALID),
            (Stream, "end_capture", NO_MEMORY), (Graph, "launch", NO_MEMORY)]


@pytest.mark.parametrize(("of", "name", "error"), REFUSALS)
def test_calls_launch_kernels(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, of: Any, name: str, error: Exception
) -> None:
    f, x = fusec.jit(softmax), cupy.asarray(X)
    raises(monkeypatch, of, name, error)
    for _ in range(6):
        cupy.calls.clear()
        np.testing.assert_allclose(f(x).get(), softmax(X), rtol=1e-13)
    assert "graph" not in cupy.calls and "to host" not in cupy.calls
    text = str(fusec.explain(f, x))
    assert f"no CUDA graph: CUDA {'has no memory' if of is Graph else 'refuses'}" in text
    assert str(error) in text


@pytest.mark.usefixtures("launched")
@pytest.mark.parametrize(("of", "name", "error"), REFUSALS)
def test_loops_launch_kernels(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, of: Any, name: str, error: Exception
) -> None:
    f = fusec.jit(heat, device="GPU:0")
    raises(monkeypatch, of, name, error)
    for _ in range(2):
        got = f(X[0].copy(), np.int64(60))
    np.testing.assert_allclose(got, heat(X[0].copy(), 60), rtol=1e-12)
    assert "graph" not in cupy.calls
    text = str(fusec.explain(f, X[0].copy(), np.int64(60)))
    assert f"loops on GPU 0 launch kernels one by one, as CUDA makes no graph: {error}" in text


@pytest.mark.usefixtures("launched")
def test_loops_over_arrays_of_the_gpu_say_so(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent to a device there."""
    f, x, n = fusec.jit(heat), cupy.asarray(X[0]), np.int64(60)
    raises(monkeypatch, Stream, "begin_capture", UNSUPPORTED)
    f(x, n)
    assert f"one by one, as CUDA makes no graph: {UNSUPPORTED}" in str(fusec.explain(f, x, n))


def test_memory_that_runs_out_later(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    """After graphs were launched; those of other memory stay."""
    f, x = fusec.jit(softmax), cupy.asarray(X)
    for _ in range(5):
        f(x)
    assert cupy.calls[-1] == "graph"
    with monkeypatch.context() as patch:
        raises(patch, Graph, "launch", NO_MEMORY)
        np.testing.assert_allclose(f(x).get(), softmax(X), rtol=1e-13)
    cupy.calls.clear()
    np.testing.assert_allclose(f(x).get(), softmax(X), rtol=1e-13)
    assert "graph" not in cupy.calls


def test_a_fault_in_a_graph_names_its_kernels(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that the graph launches, each with its line."""
    f, x = fusec.jit(softmax), cupy.asarray(X)
    for _ in range(5):
        f(x)
    raises(monkeypatch, Graph, "launch", CUDARuntimeError("cudaErrorIllegalAddress", 700))
    with pytest.raises(RuntimeError, match="cudaErrorIllegalAddress") as caught:
        f(x)
    kernels, first = f.traces[0].kernels, softmax.__code__.co_firstlineno
    assert len(kernels) >= 2
    for kernel in kernels:
        assert f"{kernel.name}, line " in str(caught.value)
    assert f"test_refused_graphs.py:{first + 1}" in str(caught.value)


@pytest.mark.usefixtures("launched")
def test_a_fault_in_a_graph_of_a_loop(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    f = fusec.jit(heat, device="GPU:0")
    raises(monkeypatch, Graph, "launch", CUDARuntimeError("cudaErrorIllegalAddress", 700))
    with pytest.raises(RuntimeError, match="one of these kernels") as caught:
        for _ in range(2):
            f(X[0].copy(), np.int64(200))
    first = heat.__code__.co_firstlineno
    assert all(f"test_refused_graphs.py:{first + n}" in str(caught.value) for n in (2, 3, 4))


def test_a_refused_product_is_not_asked_for_again(cupy: FakeCupy) -> None:
    """The text is made anew with CuPy's function: no later call launches twice."""
    f, x = fusec.jit(lambda a: np.tanh(a @ a) * 2), cupy.asarray(X)
    for _ in range(3):
        f(x)
    assert "1 of them by cuBLAS" in str(fusec.explain(f, x))
    cupy.cublas.status = NOT_SUPPORTED
    for _ in range(4):
        cupy.calls.clear()
        np.testing.assert_allclose(f(cupy.asarray(X)).get(), np.tanh(X @ X) * 2, rtol=1e-12)
    last = cupy.calls[1:]  # after `asarray`
    assert len(last) == 2 and last[0] == "numpy.matmul", last
    text = str(fusec.explain(f, x))
    assert "of them by cuBLAS" not in text and "not supported (15)" in text


@pytest.mark.parametrize("ends", [True, False])
def test_a_product_that_is_refused_in_graphs(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """It is launched, by cuBLAS, and no graph is tried again, whether or not CUDA says that the one
    which was begun is spoilt."""
    f, x = fusec.jit(lambda a: np.tanh(a @ a) * 2), cupy.asarray(X)
    cupy.cublas.spoils = True
    if not ends:
        raises(monkeypatch, Stream, "end_capture", INVALID)
    for _ in range(8):
        cupy.calls.clear()
        np.testing.assert_allclose(f(x).get(), np.tanh(X @ X) * 2, rtol=1e-12)
    assert cupy.calls.count("cublasDgemm") == 1 and "numpy.matmul" not in cupy.calls
    assert "captured" not in cupy.calls
    assert "no CUDA graph: cuBLAS refuses to be in one: cublasDgemm_v2: not supported (15)" in (
        str(fusec.explain(f, x)))
