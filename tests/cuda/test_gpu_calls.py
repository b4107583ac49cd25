"""Cached calls with arrays of a GPU: prepared launches, and CUDA graphs of several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu
from fake_streams import CUDARuntimeError, Stream

import fusec

X = np.random.default_rng(0).normal(size=(20, 30))
TRANSFERS = ("to device", "to host", "asarray")


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    """A pool that gives memory again, as CuPy's does."""
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def on_host(value: Any) -> Any:
    return value.get() if isinstance(value, FakeArray) else value


def agree(fake: FakeCupy, f: Callable[..., Any], *args: Any, calls: int = 6) -> list[str]:
    """Call it again and again, each time with other numbers in its arrays, as a program that keeps
    its last result; the last call's requests to CuPy."""
    g, want = fusec.jit(f), fusec.jit(f)
    for number in range(calls):
        given = [a + number if isinstance(a, np.ndarray) else a for a in args]
        there = [fake.asarray(a) if isinstance(a, np.ndarray) else a for a in given]
        fake.calls.clear()
        kept = g(*there)
        asked = [*fake.calls]
        wanted = want(*given)
        for one, other in zip(*map(optree.tree_leaves, (kept, wanted)), strict=True):
            one = on_host(one)
            assert type(one) is type(other)
            np.testing.assert_allclose(one, other, rtol=1e-13)
        for one, other in zip(there, given, strict=True):
            np.testing.assert_allclose(on_host(one), other, rtol=1e-13)
    assert g.trace_count == 1 and g.traces[0].gpu_call.function is not None, g.traces[0].gpu_call
    return asked


def softmax(x: np.ndarray) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def assigns(x: np.ndarray, y: np.ndarray) -> Any:
    y[...] = x * 2 + y
    x += y.sum()
    return x


def test_a_call_is_one_launch(cupy: FakeCupy) -> None:
    asked = agree(cupy, lambda x: np.sin(x) * x + 1, X)
    assert [a.startswith("nest") for a in asked] == [True]


def test_several_launches_are_a_graph(cupy: FakeCupy) -> None:
    """Nothing is copied and nobody waits, though kernels hand each other numbers."""
    assert agree(cupy, softmax, X) == ["graph"]


def test_numbers_that_are_given_are_copied_when_they_are_new(cupy: FakeCupy) -> None:
    f, x = fusec.jit(lambda x, a, b: (x * a + b, (x * b).sum(axis=0) * a)), cupy.asarray(X)
    for a, b in ((2.0, 3), (2.0, 4), (2.0, 3), (2.0, 3), (-0.0, 3), (0.0, 3), (2.0, 3)):
        cupy.calls.clear()
        y, z = f(x, a, b)
        np.testing.assert_array_equal(y.get(), X * a + b)
        np.testing.assert_allclose(z.get(), (X * b).sum(axis=0) * a, rtol=1e-12, atol=1e-12)
        copies = cupy.calls.count("to device")
    assert copies == 0
    f(x, 2.5, 3)
    assert cupy.calls.count("to device") == 1
    want = np.signbit((X * 3).sum(axis=0) * -0.0)
    np.testing.assert_array_equal(np.signbit(f(x, -0.0, 3)[1].get()), want)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "i2", "i4", "u1", "u2", "u4", "u8", "?", "c8",
                                   "c16"])
def test_numbers_of_every_kind(cupy: FakeCupy, dtype: str) -> None:
    number = np.dtype(dtype).type(3)
    agree(cupy, lambda x, a: (x + a, (x * a).sum()), np.round(4 * X).astype("f4"), number)


def test_numbers_that_are_computed(cupy: FakeCupy) -> None:
    """The call waits once for all of them."""
    asked = agree(cupy, lambda x: (x.sum(), (x > 0).any(), x.argmax(), (x * 1j).sum()), X)
    assert asked == ["nest_0_0", "to host"]


def test_results_and_layouts(cupy: FakeCupy) -> None:
    agree(cupy, lambda x: {"t": (x * 2).T, "part": x[3:, ::2], "rows": [x.sum(1), None, 4]}, X)
    agree(cupy, lambda x: (np.exp(x.T), (x + 1)[::-1], np.asfortranarray(x) * 2), X)


def test_arguments_are_written_after_kernels(cupy: FakeCupy) -> None:
    agree(cupy, assigns, X, X * 3)


def test_results_have_memory_of_their_own(cupy: FakeCupy) -> None:
    f, x = fusec.jit(softmax), cupy.asarray(X)
    kept = [f(x) for _ in range(8)]
    assert len({y.data.ptr for y in kept}) == 8
    for y in kept:
        np.testing.assert_allclose(y.get(), softmax(X), rtol=1e-13)


def test_a_result_is_the_next_argument(cupy: FakeCupy) -> None:
    """Two addresses in turn: each has a graph."""
    f, x, want = fusec.jit(softmax), cupy.asarray(X), X
    for number in range(12):
        if number == 11:
            cupy.calls.clear()
        x, want = f(x), softmax(want)
    np.testing.assert_allclose(x.get(), want, rtol=1e-12)
    assert cupy.calls[0] == "graph"


def test_what_differs_takes_another_way(cupy: FakeCupy) -> None:
    """Arrays of other kinds, layouts and places; arguments that overlap."""
    f = fusec.jit(assigns)
    for number in range(4):
        x, y = X + number, X * 2
        there = cupy.asarray(x), cupy.asarray(y)
        f(*there), assigns(x, y)
        np.testing.assert_allclose(there[0].get(), x, rtol=1e-13)
    one, mine = cupy.asarray(X), X.copy()
    f(one, one), assigns(mine, mine)
    np.testing.assert_allclose(one.get(), mine, rtol=1e-13)
    whole, mine = cupy.asarray(np.tile(X, (2, 1))), np.tile(X, (2, 1))
    f(whole.part(slice(0, 20)), whole.part(slice(5, 25)))
    fusec.jit(assigns)(mine[:20], mine[5:25])
    np.testing.assert_allclose(whole.get(), mine, rtol=1e-13)
    x, y = np.asfortranarray(X), X.astype(np.float32)
    there = cupy.asarray(X.T.copy()).part(), cupy.asarray(y)
    turned = type(there[0])((20, 30), np.float64, there[0].data, (8, 160))
    f(turned, there[1]), assigns(x, y)
    np.testing.assert_allclose(turned.get(), x, rtol=1e-6)


def test_a_check_that_fails(cupy: FakeCupy) -> None:
    f, x = fusec.jit(lambda x, i: (x[i] * 2).sum(axis=0)), cupy.asarray(X)
    good, bad = cupy.asarray(np.array([1, 3])), cupy.asarray(np.array([1, 30]))
    for _ in range(5):
        np.testing.assert_allclose(f(x, good).get(), (X[[1, 3]] * 2).sum(axis=0), rtol=1e-13)
        with pytest.raises(IndexError, match="index 30 is out of bounds"):
            f(x, bad)


def stored(x: np.ndarray, i: np.ndarray) -> Any:
    y = np.zeros(40)
    y[i] = x[0, :2]
    np.add.at(y, i + 1, 2.0)
    return y * 2


def assigned(x: np.ndarray, i: np.ndarray) -> None:
    x[i] = 7.0


@pytest.mark.parametrize("program", [stored, assigned])
def test_kernels_after_a_check_that_fails(
    cupy: FakeCupy, program: Callable[..., Any]
) -> None:
    """They run, since nobody waits in between, and touch no memory but their own."""
    f, host = fusec.jit(program), fusec.jit(program)
    for pair in ((0, 1), (1, 2), (1, 2), (1, 999), (-999, 2), (1, 2), (999, -999)):
        x, mine, i = cupy.asarray(X), X.copy(), np.array(pair)
        try:
            want = host(mine, i)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error).partition("\n")[0]):
                f(x, cupy.asarray(i))
        else:
            got = f(x, cupy.asarray(i))
            assert got is want is None or np.array_equal(got.get(), want)
        cupy.driver.synchronize()
        np.testing.assert_array_equal(x.get(), mine)
    assert f.traces[0].gpu_call.function is not None


def test_a_full_pool_is_emptied(cupy: FakeCupy) -> None:
    f, x = fusec.jit(softmax), cupy.asarray(X)
    for _ in range(4):
        f(x)
    cupy.pool.room, cupy.cached = 1000, 1 << 20
    cupy.calls.clear()
    np.testing.assert_allclose(f(x).get(), softmax(X), rtol=1e-13)
    assert "free_all_blocks" in cupy.calls


def test_a_program_that_captures_gets_the_kernels(cupy: FakeCupy) -> None:
    """CUDA launches no graph in a stream whose work is becoming one."""
    f, x = fusec.jit(softmax), cupy.asarray(X)
    cupy.driver.synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        y = [f(x) for _ in range(6)][-1]  # and the pool has memory for this stream
        stream.begin_capture()
        y = f(x)
        graph = stream.end_capture()
        assert len(graph.launches) >= 3
        x[...] = cupy.asarray(X + 1)
        graph.launch()
        stream.synchronize()
    np.testing.assert_allclose(y.get(), softmax(X + 1), rtol=1e-13)


def test_addresses_are_forgotten(cupy: FakeCupy) -> None:
    f, x = fusec.jit(softmax), cupy.asarray(X)
    kept = [f(x) for _ in range(50)]
    replays = f.traces[0].gpu_call.function.__globals__["launch0"]
    assert len(replays._known) <= 16 and len({y.data.ptr for y in kept}) == 50


def test_without_graphs(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where CUDA refuses, `explain` says so and kernels are launched."""
    def refuses(stream: Stream) -> Any:
        raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")

    monkeypatch.setattr(Stream, "end_capture", refuses)
    f, x = fusec.jit(softmax), cupy.asarray(X)
    for _ in range(6):
        cupy.calls.clear()
        np.testing.assert_allclose(f(x).get(), softmax(X), rtol=1e-13)
    assert "graph" not in cupy.calls and "to host" not in cupy.calls
    assert "no CUDA graph: CUDA refuses to make one: cudaErrorMem" in str(fusec.explain(f, x))


def test_a_cupy_that_cannot_capture(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(cupy.cuda.Stream), "begin_capture")
    f, x = fusec.jit(softmax), cupy.asarray(X)
    for _ in range(4):
        f(x)
    assert "this CuPy cannot capture graphs" in str(fusec.explain(f, x))


def test_explain_says_how_calls_run(cupy: FakeCupy) -> None:
    x, weights = cupy.asarray(X), np.arange(30.0)
    for f, words in (
        (softmax, "prepared launches, one CUDA graph where memory is the same again"),
        (lambda x: x + 1, "1 prepared launch, no CUDA graph: one kernel is launched as quickly"),
        (lambda x: np.sort(x), "Sort of CuPy, 0 prepared launches"),
        (lambda x: np.tanh(np.sort(x)) * 2, "Sort of CuPy, 1 prepared launch, no CUDA graph: one"),
        (lambda x: np.tanh(x @ x.T) * 2, "2 prepared launches, 1 of them by cuBLAS, one CUDA"),
        (lambda x: x * weights, "1 prepared launch, no CUDA graph"),
        (lambda x: np.nanquantile(x, 0.5, axis=0), "as the GPU does not do all of it"),
        (lambda x: x[x > 0] * 2, "as the"),
        (lambda x: (x * 2, np.arange(5) * 2.0), "as a result is an array that no kernel computes"),
    ):
        text = str(fusec.explain(fusec.jit(f), x))
        assert f"calls with arrays of the GPU: {words}"[:20] in text and words in text, text


def test_faults_name_the_program(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = fusec.jit(softmax), cupy.asarray(X)
    for _ in range(2):
        f(x)

    def fails(*args: Any) -> None:
        raise CUDARuntimeError("cudaErrorLaunchFailure")

    monkeypatch.setattr(cupy.driver, "launch", fails)
    with pytest.raises(RuntimeError, match="work on GPU 0 has failed: cudaErrorLaunchFailure"):
        f(x)


def test_the_fake_refuses_what_cuda_refuses(cupy: FakeCupy) -> None:
    """While a stream is capturing: to wait for it, to get memory that the pool does not have, a
    graph in it; the legacy stream never captures."""
    stream, x = cupy.cuda.Stream(non_blocking=True), cupy.asarray(X)
    stream.begin_capture()
    graph = None
    for refused in (stream.synchronize, lambda: cupy.cuda.alloc(1 << 20), stream.begin_capture):
        with pytest.raises(CUDARuntimeError):
            refused()
    graph = stream.end_capture()
    with pytest.raises(CUDARuntimeError):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises(CUDARuntimeError):
        graph.launch(stream)
    stream.end_capture()
    with pytest.raises(RuntimeError, match="legacy"):
        Stream(cupy.streams, 0).begin_capture()
    assert x.get().shape == X.shape
