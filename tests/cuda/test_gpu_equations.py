"""Equations, inverses and Cholesky factors on a GPU: cuSOLVER, called directly, in CUDA graphs with
the kernels around them; matrices that it refuses are NumPy's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_cupy import FakeCupy, as_gpu
from fake_cusolver import NOT_SUPPORTED
from fake_streams import CUDARuntimeError, Graph, Stream

import fusec
from fusec.codegen.cuda.products import cusolver as library

RNG = np.random.default_rng(0)
N = 8


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch, 3) as fake:
        fake.pool.keeps = True
        yield fake


def numbers(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    made = RNG.normal(size=shape)
    return np.asarray(made + 1j * made[::-1] if np.dtype(dtype).kind == "c" else made).astype(dtype)


def positive(n: int = N, dtype: Any = np.float64) -> np.ndarray:
    a = numbers(n, n, dtype=dtype)
    return np.asarray(a @ a.T.conj() + n * np.eye(n)).astype(dtype)


def check(
    cupy: FakeCupy, f: Callable[..., Any], *args: np.ndarray, calls: int = 5
) -> tuple[Any, list[str]]:
    """The same numbers in each call, and with NumPy's arrays; the last call's requests."""
    g, want = fusec.jit(f), f(*args)
    there = [cupy.asarray(a) for a in args]
    near = 1e-4 if np.asarray(want).dtype.str[1:] in ("c8", "f4") else 1e-11
    found = []
    for _ in range(calls):
        cupy.calls.clear()
        found.append(g(*there).get())
    asked = [*cupy.calls]
    for got in found:
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
        np.testing.assert_array_equal(got, found[0])
    np.testing.assert_array_equal(fusec.jit(f, device="GPU:0")(*args), found[0])
    assert g.traces[0].gpu_call.function is not None, g.traces[0].gpu_call
    return g, asked


def solved(a: Any, b: Any) -> Any:
    return np.linalg.solve(a * 2, b + 1) * 3


def inverted(a: Any) -> Any:
    return np.linalg.inv(a * 2) + 1


def factored(a: Any) -> Any:
    return np.linalg.cholesky(a * 2) * 0.5


DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
IN_A_GRAPH = ["graph", "to host"]  # of which the copy is that of what was refused


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", [inverted, factored])
def test_of_a_matrix(cupy: FakeCupy, f: Any, dtype: Any) -> None:
    _, asked = check(cupy, f, positive(dtype=dtype))
    assert asked == IN_A_GRAPH, asked


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(N,), (N, 1), (N, 3), (N, N)])
def test_equations(cupy: FakeCupy, shape: tuple[int, ...], dtype: Any) -> None:
    """Rows are exchanged: the matrix has small numbers on its diagonal."""
    a = numbers(N, N, dtype=dtype) - 0.9 * np.diag(np.diag(numbers(N, N, dtype=dtype)))
    _, asked = check(cupy, solved, a.astype(dtype), numbers(*shape, dtype=dtype))
    assert asked == IN_A_GRAPH, asked


LAID: dict[str, Callable[[Any, Any], Any]] = {
    "as they are": lambda a, b: np.linalg.solve(a, b),
    "transposed": lambda a, b: np.linalg.solve(a.T, b.T[:N]),
    "parts": lambda a, b: np.linalg.solve(a[1:, 1:], b[1:, ::2]),
    "from the end": lambda a, b: np.linalg.solve(a[::-1], b[:, 1]),
    "an argument changed": lambda a, b: np.linalg.solve(a, np.tanh(b)) + a,
    "two": lambda a, b: np.linalg.solve(a, np.linalg.inv(a + 1) @ b),
    "a factor": lambda a, b: np.linalg.cholesky(a) @ b,
    "of its transpose": lambda a, b: np.linalg.cholesky(a.T) * 2,
    "a row of results": lambda a, b: np.linalg.solve(a, b)[0],
}


@pytest.mark.parametrize("name", LAID)
def test_wherever_they_lie(cupy: FakeCupy, name: str) -> None:
    _, asked = check(cupy, LAID[name], positive(), numbers(N, N))
    assert not any(x.startswith("numpy.linalg") for x in asked), asked


OTHERS: dict[str, Callable[[Any], Any]] = {
    "several": lambda a: np.linalg.inv(np.stack([a, a + 1])),
    "several sides": lambda a: np.linalg.solve(a, np.stack([a, a + 1])),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_cupys(cupy: FakeCupy, name: str) -> None:
    f, a = fusec.jit(OTHERS[name]), positive()
    for _ in range(3):
        np.testing.assert_allclose(f(cupy.asarray(a)).get(), OTHERS[name](a), rtol=1e-9, atol=1e-9)
    assert any(x.startswith("numpy.linalg") for x in cupy.calls)


REFUSED = [(solved, "Singular matrix"), (inverted, "Singular matrix"),
           (factored, "Matrix is not positive definite")]


@pytest.mark.parametrize(("f", "message"), REFUSED)
@pytest.mark.parametrize("calls", range(4))
def test_a_matrix_that_is_refused(cupy: FakeCupy, f: Any, message: str, calls: int) -> None:
    """At any call: NumPy's error, with the line; what was an argument is as it was, and the next
    call is right."""
    def changing(a: Any, b: Any) -> Any:
        b[...] = f(a, b) if f is solved else f(a)
        return b

    g, a, b = fusec.jit(changing), positive(), numbers(N, N)
    bad = a.copy()
    bad[:, 2] = bad[2] = 0
    for _ in range(calls):
        np.testing.assert_allclose(g(*map(cupy.asarray, (a, b))).get(), changing(a, b.copy()))
    there = cupy.asarray(b)
    with pytest.raises(np.linalg.LinAlgError, match=message) as caught:
        g(cupy.asarray(bad), there)
    assert "np.linalg." in "".join(caught.value.__notes__)
    np.testing.assert_array_equal(there.get(), b)
    with pytest.raises(np.linalg.LinAlgError, match=message):
        fusec.jit(changing, device="GPU:0")(bad, b)
    np.testing.assert_allclose(g(*map(cupy.asarray, (a, b))).get(), changing(a, b.copy()))


def test_after_it_nothing_may_go_on_for_ever(cupy: FakeCupy) -> None:
    """A loop that waits for what a refused matrix does not give is CuPy's to begin with."""
    def f(a: Any, b: Any) -> Any:
        x = np.linalg.solve(a, b)
        while not np.abs(x).sum() < 1.0:
            x = x * 0.5
        return x

    g, a, b = fusec.jit(f), positive(), numbers(N)
    for _ in range(3):
        np.testing.assert_allclose(g(*map(cupy.asarray, (a, b))).get(), f(a, b))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        g(cupy.asarray(a * 0), cupy.asarray(b))


def test_in_loops(cupy: FakeCupy) -> None:
    """Called directly, and waited for: NumPy raises in the iteration."""
    def f(a: Any, b: Any, n: Any) -> Any:
        for _ in range(n):
            b = np.linalg.solve(a, b) + 1
        return b

    g, a, b = fusec.jit(f), positive(), numbers(N)
    for _ in range(2):
        cupy.calls.clear()
        np.testing.assert_allclose(
            g(cupy.asarray(a), cupy.asarray(b), np.int64(4)).get(), f(a, b, 4))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        g(cupy.asarray(a * 0), cupy.asarray(b), np.int64(4))


@pytest.mark.parametrize("what", ["no library", "status", "wrong numbers", "silent"])
def test_without_cusolver_cupy_does_it(
    cupy: FakeCupy, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And `explain` says why."""
    if what == "no library":
        def load() -> Any:
            raise OSError("CuPy has loaded no libcusolver.so")
        monkeypatch.setattr(library, "loaded_library", load)
        reason = "CuPy has loaded no libcusolver.so"
    elif what == "status":
        cupy.cusolver.status, reason = NOT_SUPPORTED, "cusolverDnDgetrf: not supported (9)"
    elif what == "silent":
        cupy.cusolver.silent, reason = True, "cuSOLVER does not say which matrices it refuses"
    else:
        cupy.cusolver.wrong, reason = True, "cuSOLVER gives another result than NumPy"
    f, a, b = fusec.jit(solved), positive(), numbers(N)
    for _ in range(4):
        np.testing.assert_allclose(f(cupy.asarray(a), cupy.asarray(b)).get(), solved(a, b))
    assert "numpy.linalg.solve" in cupy.calls
    assert f"as cuSOLVER cannot be called ({reason})" in str(f.traces[0].gpu_call)


@pytest.mark.parametrize(("what", "reason"), [
    ("spoils", "it refuses to be in one: cusolverDnDgetrf: not supported (9)"),
    ("once", "its graph gives another result")])
def test_what_is_no_part_of_graphs(cupy: FakeCupy, what: str, reason: str) -> None:
    """It is launched, between graphs of what is around it."""
    setattr(cupy.cusolver, what, True)

    def f(a: Any, b: Any) -> Any:
        c = np.exp(a / a.max())
        x = np.linalg.solve(c + 9 * np.eye(N), b)
        return x / x.sum() * np.cos(x).sum()

    g, asked = check(cupy, f, positive(), numbers(N), calls=6)
    assert asked.count("graph") == 2 and asked.count("cusolver Dgetrf") == 1, asked
    assert "numpy.linalg.solve" not in asked
    text = str(fusec.explain(g, *map(cupy.asarray, (positive(), numbers(N)))))
    assert "1 of them by cuSOLVER" in text and f"cuSOLVER beside graphs, as {reason}" in text


@pytest.mark.parametrize("calls", range(4))
def test_what_is_refused_later(cupy: FakeCupy, calls: int) -> None:
    """In a launch or while a graph is captured: CuPy does it from then on."""
    f, a, b = fusec.jit(solved), positive(), numbers(N)
    there = cupy.asarray(a)
    for number in range(7):
        if number == calls:
            cupy.cusolver.status = NOT_SUPPORTED
        np.testing.assert_allclose(f(there, cupy.asarray(b)).get(), solved(a, b))
    other = fusec.jit(lambda a, b: solved(a + 1, b))
    cupy.calls.clear()
    np.testing.assert_allclose(other(there, cupy.asarray(b)).get(), solved(a + 1, b))
    assert "numpy.linalg.solve" in cupy.calls


def test_a_fault_in_a_graph_names_it(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its line, beside the kernels."""
    f, there = fusec.jit(solved), [cupy.asarray(positive()), cupy.asarray(numbers(N))]
    for _ in range(4):
        f(*there)

    def fails(*_: Any) -> None:
        raise CUDARuntimeError("cudaErrorIllegalAddress", 700)

    monkeypatch.setattr(Graph, "launch", fails)
    with pytest.raises(RuntimeError, match="cudaErrorIllegalAddress") as caught:
        f(*there)
    line = f"test_gpu_equations.py:{solved.__code__.co_firstlineno + 1}"
    assert "LinalgSolve by cuSOLVER, line " in str(caught.value) and line in str(caught.value)


@pytest.mark.parametrize(("name", "error"), [
    ("begin_capture", CUDARuntimeError("cudaErrorStreamCaptureUnsupported")),
    ("end_capture", CUDARuntimeError("cudaErrorMemoryAllocation: out of memory", 2))])
def test_where_cuda_makes_no_graph(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    method = getattr(Stream, name)

    def fails(stream: Stream) -> None:
        if name == "end_capture":
            method(stream)
        raise error

    monkeypatch.setattr(Stream, name, fails)
    g, asked = check(cupy, solved, positive(), numbers(N))
    assert "graph" not in asked and "cusolver Dgetrs" in asked
    said = str(g.traces[0].gpu_call)
    assert f"cuSOLVER beside graphs, as CUDA refuses it in one: {error}" in said


def test_a_gaussian_process_is_one_graph(cupy: FakeCupy) -> None:
    """A product, a factor, two equations and kernels."""
    def posterior(x: Any, y: Any, z: Any) -> Any:
        near = np.exp(-(x[:, None] - x[None, :]) ** 2) + 0.1 * np.eye(N)
        across = np.exp(-(z[:, None] - x[None, :]) ** 2)
        root = np.linalg.cholesky(near)
        v = np.linalg.solve(root, across.T)
        return across @ np.linalg.solve(near, y), 1 - (v * v).sum(0)

    f, args = fusec.jit(posterior), (numbers(N), numbers(N), numbers(12))
    there, want = [cupy.asarray(a) for a in args], posterior(*args)
    for _ in range(8):
        cupy.calls.clear()
        got = optree.tree_map(lambda x: x.get(), f(*there))
    assert cupy.calls == IN_A_GRAPH, cupy.calls
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
