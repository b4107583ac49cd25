"""Cached calls with arrays of a GPU whose plans have library calls, or read NumPy's arrays from
outside: the device does its work late, in several orders."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu
from fake_streams import CUDARuntimeError, OutOfMemoryError

import fusec

RNG = np.random.default_rng(0)
X, W, B = RNG.normal(size=(20, 30)), RNG.normal(size=(30, 30)), RNG.normal(size=30)
CONSTANT = RNG.normal(size=(30, 5))


@pytest.fixture(params=range(3))
def cupy(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[FakeCupy]:
    """A pool that gives memory again, as CuPy's does."""
    with as_gpu(monkeypatch, request.param) as fake:
        fake.pool.keeps = True
        yield fake


@pytest.fixture
def lazy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def agree(fake: FakeCupy, f: Callable[..., Any], *args: np.ndarray, calls: int = 5) -> list[str]:
    """Call it again and again, each time with other numbers, and look at the results when all calls
    have been made; the last one's requests to CuPy."""
    g, host, found = fusec.jit(f), fusec.jit(f), []
    for number in range(calls):
        mine = [np.array(a + 0.125 * number, order="K") for a in args]
        there = [fake.asarray(a) for a in mine]
        fake.calls.clear()
        got = g(*there)
        asked = [*fake.calls]
        found.append(((got, there), (host(*mine), mine)))
    for got, want in found:
        for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
            one = one.get() if isinstance(one, FakeArray) else one
            assert type(one) is type(other)
            # Sums of 30 products: BLAS adds them in another order where an operand is transposed.
            tolerance = 4e-6 if np.asarray(other).dtype == np.float32 else 1e-8
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    assert g.trace_count == 1 and g.traces[0].gpu_call.function is not None, g.traces[0].gpu_call
    return asked


def layer(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Any:
    return np.tanh(x @ w + b)


def test_a_layer(cupy: FakeCupy) -> None:
    """A product and a launch; nobody waits, nothing is copied."""
    asked = agree(cupy, layer, X, W, B)
    assert [a.partition("_")[0] for a in asked] == ["cublasDgemm", "nest"]


def layers(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Any:
    y = np.exp(x - x.max())
    y = y / y.sum() + x
    z = np.sort(y, axis=1) - b
    z = z / np.abs(z).max() * z.sum()
    return np.sort(z), np.sort(y @ w), (z * 2).sum(axis=1)


def test_kernels_between_library_calls_are_graphs(cupy: FakeCupy) -> None:
    f = fusec.jit(layers)
    there = [cupy.asarray(a) for a in (X, W, B)]
    for _ in range(40):
        cupy.calls.clear()
        f(*there)
    assert cupy.calls.count("graph") == 2 and cupy.calls.count("numpy.sort") == 3
    assert "Sort, Sort, Sort of CuPy, " in str(fusec.explain(f, *there))
    assert "2 CUDA graphs where memory is the same again" in str(fusec.explain(f, *there))
    agree(cupy, layers, X, W, B)


def of_libraries(x: np.ndarray) -> Any:
    a = x.T @ x + 30 * np.eye(30)
    y = np.linalg.solve(a, x[0] + 1) * 2
    s = np.linalg.svd(x, compute_uv=False)
    z = np.fft.rfft(np.sort(x, axis=1) - 1)
    return y, s.sum(), z * 2, np.einsum("ij,ik->jk", x, x), np.linalg.inv(a)


def of_numbers(x: np.ndarray) -> Any:
    a = x.T @ x / 100 + np.eye(30)
    sign, log = np.linalg.slogdet(a)
    return x * np.linalg.det(a), sign, log + 1, np.dot(x[0], x[1]) * x


def of_views(x: np.ndarray, w: np.ndarray) -> Any:
    y = (x * 2)[::2, 1:] @ w[1:, ::3]
    return y, (x + 1).T @ x[::-1], np.sort(y.T, axis=0), x[3] @ w


def of_constants(x: np.ndarray) -> Any:
    return x @ CONSTANT.copy() + 1, (x * 2) @ np.eye(30)[:, 3:], x @ CONSTANT


def assigns(x: np.ndarray, w: np.ndarray) -> Any:
    x[...] = x @ w
    w *= 2
    return x


def of_complex(x: np.ndarray) -> Any:
    z = np.fft.fft(x + 1j * x[::-1])
    return z @ z.T.conj(), z.real


@pytest.mark.parametrize(("program", "args"), [
    (of_libraries, (X,)), (of_numbers, (X,)), (of_views, (X, W)), (of_constants, (X,)),
    (assigns, (X, W)), (of_complex, (X,)), (of_views, (np.asfortranarray(X), W.T)),
    (layer, (X.astype("f4"), W.astype("f4"), B.astype("f4"))),
])
def test_programs(cupy: FakeCupy, program: Callable[..., Any], args: Any) -> None:
    agree(cupy, program, *args)


def test_a_result_that_is_a_view_is_copied(lazy: FakeCupy, monkeypatch: Any) -> None:
    """Functions of CuPy may give one: the program's result has memory of its own."""
    def view(a: FakeArray) -> FakeArray:
        return type(a)(a.shape, a.dtype, a.data, a.strides)

    monkeypatch.setattr(lazy, "sort", view)
    f, x = fusec.jit(lambda x: np.sort(x)), lazy.asarray(X)
    for _ in range(4):
        y = f(x)
        np.testing.assert_array_equal(y.get(), X)
        assert y.data.ptr != x.data.ptr


def test_a_result_that_lies_differently_is_copied(lazy: FakeCupy, monkeypatch: Any) -> None:
    sort = lazy.sort

    def turned(a: FakeArray) -> FakeArray:
        made, (rows, columns) = sort(a), a.shape
        lying = type(a)((rows, columns), a.dtype, None, (8, 8 * rows))
        lying[...] = made
        return lying

    monkeypatch.setattr(lazy, "sort", turned)
    f, x = fusec.jit(lambda x: (np.tanh(np.sort(x)), np.sort(x))), lazy.asarray(X)
    for _ in range(4):
        for got, want in zip(f(x), (np.tanh(np.sort(X)), np.sort(X)), strict=True):
            np.testing.assert_allclose(got.get(), want)
            assert got.strides == want.strides


def test_a_matrix_that_is_refused(lazy: FakeCupy) -> None:
    f = fusec.jit(lambda a: np.linalg.inv(a * 1.0) + 1)
    good = lazy.asarray(np.eye(3))
    for _ in range(4):
        np.testing.assert_allclose(f(good).get(), np.eye(3) + 1)
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            f(lazy.asarray(np.zeros((3, 3))))
    assert f.traces[0].gpu_call.function is not None


def test_a_refused_matrix_is_judged_by_numpy(
    lazy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cuSOLVER names its routine; and may refuse matrices that LAPACK takes."""
    def refuse(*_: Any) -> Any:
        raise np.linalg.LinAlgError("Error reported by dgetrf in cuSOLVER. devInfo = [2].")

    monkeypatch.setattr(lazy.linalg, "inv", refuse, raising=False)
    f = fusec.jit(lambda a: np.linalg.inv(a * 2.0) + 1)
    for _ in range(3):
        np.testing.assert_array_equal(f(lazy.asarray(np.eye(3))).get(), np.eye(3) / 2 + 1)
        with pytest.raises(np.linalg.LinAlgError, match=r"^Singular matrix"):
            f(lazy.asarray(np.zeros((3, 3))))


@pytest.mark.parametrize("f", [
    lambda a: np.linalg.svd(a + a.T, False, False, True),
    lambda a: np.linalg.svd(a + a.T, hermitian=True, compute_uv=False),
    lambda a: np.sort(a, 0, "heapsort")])
def test_arguments_that_cupy_has_not(lazy: FakeCupy, f: Callable[..., Any]) -> None:
    lazy.calls.clear()
    x = X[:, :20]
    np.testing.assert_allclose(fusec.jit(f)(lazy.asarray(x)).get(), f(x), rtol=1e-12)
    assert not {"numpy.linalg.svd", "numpy.sort"} & set(lazy.calls), lazy.calls


def test_a_check_before_a_library_call(lazy: FakeCupy) -> None:
    """Nothing is assigned when it fails, though the call goes on."""
    @fusec.jit
    def f(x: np.ndarray, i: np.ndarray, w: np.ndarray) -> Any:
        y = x[i] @ w
        x[...] = x * 2
        return y + 1

    w = lazy.asarray(W)
    for _ in range(4):
        x = lazy.asarray(X)
        with pytest.raises(IndexError, match="index 99 is out of bounds"):
            f(x, lazy.asarray(np.array([1, 99])), w)
        np.testing.assert_array_equal(x.get(), X)
        got = f(x, lazy.asarray(np.array([1, 2])), w)
        np.testing.assert_allclose(got.get(), X[[1, 2]] @ W + 1)
        np.testing.assert_array_equal(x.get(), X * 2)


def test_no_room_for_a_library(lazy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool is emptied and the call made again, once; then the error names the bytes asked for,
    and the next call is as ever."""
    f, there = fusec.jit(lambda x, b: np.sort(x) + b), [lazy.asarray(a) for a in (X, B)]
    want = np.sort(X) + B
    for _ in range(3):
        f(*there)
    sort = lazy.sort
    full = [1]

    def without_room(*args: Any) -> Any:
        full[0] -= 1
        if full[0] >= 0:
            raise OutOfMemoryError
        return sort(*args)

    names = f.traces[0].gpu_call.function.__globals__
    names |= {name: without_room for name in names if name.startswith("call_")}
    monkeypatch.setattr(lazy, "sort", without_room)
    np.testing.assert_allclose(f(*there).get(), want)
    full[0] = 2
    lazy.calls.clear()
    np.testing.assert_allclose(f(*there).get(), want)
    assert lazy.calls.count("free_all_blocks") == 1
    full[0] = 99
    with pytest.raises(MemoryError, match="GPU 0 has no room for 4800 bytes"):
        f(*there)
    full[0] = 0
    np.testing.assert_allclose(f(*there).get(), want)


def test_a_library_that_fails_names_kernels(lazy: FakeCupy) -> None:
    f, there = fusec.jit(lambda x: np.sort(np.sin(x))), [lazy.asarray(X)]
    for _ in range(3):
        f(*there)

    def fails(*args: Any) -> None:
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access")

    names = f.traces[0].gpu_call.function.__globals__
    names |= {name: fails for name in names if name.startswith("call_")}
    with pytest.raises(RuntimeError, match="work on GPU 0 has failed: cudaErrorIll") as error:
        f(*there)
    assert f.concrete(*there).kernels[0].name in str(error.value)
    assert "np.sort(np.sin(x))" in str(error.value)


def test_variables_in_library_calls(cupy: FakeCupy) -> None:
    with fusec.device("GPU:0"):
        w = fusec.Variable(np.eye(30))

    @fusec.jit
    def step(x: np.ndarray) -> Any:
        y = x @ w
        w.assign_sub(0.125 * (x.T @ y))
        return y

    want, x, found = np.eye(30), cupy.asarray(X), []
    for _ in range(5):
        found.append((step(x), X @ want))
        want = want - 0.125 * (X.T @ (X @ want))
    for got, wanted in found:
        np.testing.assert_allclose(got.get(), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(w.numpy(), want, rtol=1e-6, atol=1e-6)
    assert step.traces[0].gpu_call.function is not None


def test_other_streams(cupy: FakeCupy) -> None:
    """Copies of constants and arrays from outside are a stream's own."""
    f = fusec.jit(lambda x: x @ np.ones((30, 5)) + B[:5])
    x = cupy.asarray(X)
    cupy.driver.synchronize()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    found = []
    for number in range(9):
        with streams[number % 3]:
            found.append((streams[number % 3], f(x)))
    for stream, got in reversed(found):
        with stream:
            np.testing.assert_allclose(got.get(), X.sum(1, keepdims=True) + B[:5])


# ---------------------------------------------------------------- arrays from outside


@pytest.mark.parametrize("shape", [(20, 30), (300, 400)])  # compared, and copied each time
def test_arrays_from_outside_are_never_old(cupy: FakeCupy, shape: tuple[int, int]) -> None:
    """They may be changed in place, be others, lie differently or be of another kind."""
    x = RNG.normal(size=shape)
    outside = types.SimpleNamespace(w=np.ones(shape), n=2.0)
    f, there, found = fusec.jit(lambda x: x * outside.w + outside.n), cupy.asarray(x), []
    values = [*[np.full(shape, float(n)) for n in range(4)], np.asfortranarray(x), x.copy()[::-1],
              np.arange(4.0 * x.size).reshape(2 * shape[0], 2 * shape[1])[::2, ::2],
              x.astype("f4"), x[0].copy(), np.ones(shape),
              np.ones((1, shape[1]))]
    for value in values:
        outside.w = value.copy("K") if value.flags.forc else value
        for number in range(3):
            outside.w += 1
            outside.n += 0.5
            found.append((f(there), x * outside.w + outside.n))
            assert number < 3
    outside.w[...] = np.nan
    for got, want in found:
        np.testing.assert_allclose(got.get(), want, rtol=1e-6, atol=1e-6)


def test_numbers_from_outside(lazy: FakeCupy) -> None:
    outside: Any = types.SimpleNamespace(n=2.0)
    f, x = fusec.jit(lambda x: x * outside.n + 1), lazy.asarray(X)
    for number in (2.0, 3.0, 3, 2j, np.float32(2), True, 2.5, 2j, np.complex64(1), -0.0):
        outside.n = number
        for _ in range(3):
            got, want = f(x), X * number + 1
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got.get(), want)


def test_what_has_not_changed_is_not_copied(lazy: FakeCupy) -> None:
    """That is known of few bytes, which are compared; many are copied each time."""
    small, large, x = np.ones(30), np.ones((100, 20, 30)), lazy.asarray(X)
    f, g = fusec.jit(lambda x: x * small), fusec.jit(lambda x: x * large)
    for call, outside, copies in ((f, small, 0), (g, large, 1)):
        for _ in range(4):
            lazy.calls.clear()
            call(x)
        assert sum("to device" in c for c in lazy.calls) == copies
        outside += 1
        np.testing.assert_array_equal(call(x).get(), X * outside)


def test_an_array_that_is_changed_while_it_is_copied(
    lazy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another thread: the copy has the elements that it is compared by."""
    w, x = np.ones(30), lazy.asarray(X)
    f = fusec.jit(lambda x: x * w)
    for _ in range(3):
        f(x)
    copy, runtime = lazy.cuda.runtime.memcpyAsync, lazy.cuda.runtime

    def late(*args: Any) -> None:
        w[...] = 5
        copy(*args)

    w[...] = 3
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "memcpyAsync", late)
        np.testing.assert_array_equal(f(x).get(), X * 3)
    w[...] = 3
    np.testing.assert_array_equal(f(x).get(), X * 3)


def test_an_array_from_outside_that_is_written(lazy: FakeCupy) -> None:
    seen = np.zeros(30)

    @fusec.jit
    def f(x: np.ndarray) -> Any:
        seen[...] = seen + x[0]
        return x @ x.T

    x = lazy.asarray(X)
    for number in range(1, 5):
        np.testing.assert_allclose(f(x).get(), X @ X.T)
        np.testing.assert_allclose(seen, number * X[0])
    assert "an array from outside" in str(fusec.explain(f, x))


def test_weights_of_an_object(cupy: FakeCupy) -> None:
    model = types.SimpleNamespace(w=W.copy(), b=B.copy())
    f, x, found = fusec.jit(lambda x: np.tanh(x @ model.w + model.b)), cupy.asarray(X), []
    for _ in range(6):
        found.append((f(x), np.tanh(X @ model.w + model.b)))
        model.w *= 0.5
        model.b = model.b + 1
    for got, want in found:
        np.testing.assert_allclose(got.get(), want, rtol=1e-9)
    assert f.traces[0].gpu_call.function is not None
