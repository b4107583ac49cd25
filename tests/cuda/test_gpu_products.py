"""Products of matrices on a GPU: by cuBLAS called directly, in CUDA graphs with the kernels around
them; by CuPy where that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import optree
import pytest
from fake_cublas import NOT_SUPPORTED
from fake_cupy import FakeCupy, as_gpu

import fusec
from fusec.codegen.cuda.products import cublas
from fusec.codegen.cuda.products.matrix_product import Laid, matrix_product
from fusec.passes.gpu import narrow_products

RNG = np.random.default_rng(0)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    monkeypatch.setattr(narrow_products, "forced", "library")  # small as they are here
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def numbers(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    made = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if dtype(0).imag is dtype else 0)
    return np.asarray(made).astype(dtype)


def agree(cupy: FakeCupy, f: Callable[..., Any], *args: np.ndarray, rtol: float = 1e-12) -> Any:
    """The jitted function on the GPU, called as often as calls change, and with NumPy's arrays;
    all requests of the former."""
    g, want = fusec.jit(f), [np.asarray(x) for x in optree.tree_leaves(f(*args))]
    there = [cupy.asarray(a) for a in args]
    cupy.calls.clear()
    for _ in range(5):
        got = g(*there)
        for one, other in zip(optree.tree_leaves(got), want, strict=True):
            one = one.get() if hasattr(one, "get") else one
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    asked = [*cupy.calls]
    step_by_step = fusec.jit(f, device="GPU:0")(*args)
    for one, other in zip(optree.tree_leaves(step_by_step), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    return g, asked


def blas_calls(asked: list[str]) -> list[str]:
    return [a for a in asked if "cublas" in a or "matmul" in a]


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "plain": (lambda a, b: a @ b, (numbers(5, 7), numbers(7, 3))),
    "left transposed": (lambda a, b: a.T @ b, (numbers(7, 5), numbers(7, 3))),
    "right transposed": (lambda a, b: a @ b.T, (numbers(5, 7), numbers(3, 7))),
    "both transposed": (lambda a, b: a.T @ b.T, (numbers(7, 5), numbers(3, 7))),
    "a column order": (lambda a, b: a @ b, (np.asfortranarray(numbers(5, 7)), numbers(7, 3))),
    "rows apart": (lambda a, b: a[::2] @ b, (numbers(9, 7), numbers(7, 3))),
    "parts": (lambda a, b: a[1:, 2:] @ b[:-2, 1:], (numbers(5, 9), numbers(9, 4))),
    "parts of temporaries": (lambda a, b: (a * 2)[1:, 2:] @ (b + 1)[:-2, 1:],
                             (numbers(5, 9), numbers(9, 4))),
    "a vector": (lambda a, b: a @ b, (numbers(5, 7), numbers(7))),
    "a vector before": (lambda a, b: a @ b, (numbers(5), numbers(5, 7))),
    "every other of a vector": (lambda a, b: a @ b[::2], (numbers(5, 7), numbers(14))),
    "a row": (lambda a, b: a @ b, (numbers(1, 7), numbers(7, 3))),
    "a column": (lambda a, b: a @ b, (numbers(5, 7), numbers(7, 1))),
    "one by one": (lambda a, b: a @ b, (numbers(1, 1), numbers(1, 1))),
    "outer": (lambda a, b: a @ b, (numbers(5, 1), numbers(1, 3))),
    "itself": (lambda a: a @ a.T, (numbers(5, 7),)),
    "a batch": (lambda a, b: a @ b, (numbers(4, 5, 7), numbers(4, 7, 3))),
    "a batch of one matrix": (lambda a, b: a @ b, (numbers(4, 5, 7), numbers(7, 3))),
    "one matrix of a batch": (lambda a, b: a @ b, (numbers(5, 7), numbers(4, 7, 3))),
    "two axes": (lambda a, b: a @ b, (numbers(2, 3, 5, 7), numbers(2, 3, 7, 3))),
    "a vector of a batch": (lambda a, b: a @ b, (numbers(4, 5, 7), numbers(7))),
    "a vector before a batch": (lambda a, b: a @ b, (numbers(7), numbers(4, 7, 3))),
    "a transposed batch": (lambda a, b: a @ b.swapaxes(1, 2), (numbers(4, 5, 7), numbers(4, 3, 7))),
    "a batch of ones": (lambda a, b: a @ b, (numbers(1, 5, 7), numbers(4, 7, 3))),
    "axes of a batch exchanged": (lambda a, b: a.swapaxes(0, 1) @ b,
                                  (numbers(2, 3, 5, 7), numbers(3, 2, 7, 3))),
    "heads of attention": (lambda q, k: q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1),
                           (numbers(2, 5, 3, 7), numbers(2, 6, 3, 7))),
    "einsum": (lambda a, b: np.einsum("bihd,bjhd->bhij", a, b),
               (numbers(2, 5, 3, 7), numbers(2, 6, 3, 7))),
    "dot of stacks": (lambda a, b: np.dot(a, b), (numbers(2, 5, 7), numbers(3, 7, 4))),
    "a constant": (lambda a: a @ np.arange(21.0).reshape(7, 3) + 1, (numbers(5, 7),)),
    "one dtype of two": (lambda a, b: a @ b, (numbers(5, 7, dtype=np.float32), numbers(7, 3))),
}


OF_KERNELS = ("outer", "one by one")


@pytest.mark.parametrize("name", CASES)
def test_products(cupy: FakeCupy, name: str) -> None:
    """By one call of cuBLAS, if by no kernel."""
    f, args = CASES[name]
    _, asked = agree(cupy, f, *args)
    assert {*blas_calls(asked)} == ({"cublasDgemm"} if name not in OF_KERNELS else set())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_dtypes(cupy: FakeCupy, dtype: Any) -> None:
    a, b = numbers(5, 7, dtype=dtype), numbers(7, 3, dtype=dtype)
    agree(cupy, lambda a, b: (a * 2) @ b, a, b, rtol=1e-5 if dtype(0).nbytes < 8 else 1e-12)


@pytest.mark.parametrize(("f", "args"), [
    (lambda a, b: a[:, ::2] @ b, (numbers(5, 14), numbers(7, 3))),
    (lambda a, b: np.broadcast_to(a, (5, 7)) @ b, (numbers(7), numbers(7, 3))),
], ids=["columns apart", "rows that are one"])
def test_what_gemm_cannot_is_left_to_cupy(
    cupy: FakeCupy, f: Callable[..., Any], args: tuple[np.ndarray, ...]
) -> None:
    agree(cupy, f, *args)


def loss(weights: Any, x: np.ndarray, y: np.ndarray) -> Any:
    hidden = np.tanh(x @ weights[0] + weights[1])
    z = hidden @ weights[2] + weights[3]
    z = z - z.max(axis=1, keepdims=True)
    return -((z - np.log(np.exp(z).sum(axis=1, keepdims=True))) * y).sum() / len(x)


def test_a_training_step_is_one_graph(cupy: FakeCupy) -> None:
    """Products, kernels and updates; the loss alone is fetched."""
    weights = [numbers(30, 20), numbers(20), numbers(20, 5), numbers(5)]
    x, y = numbers(16, 30), np.eye(5)[RNG.integers(0, 5, 16)]

    def step(*given: np.ndarray) -> Any:
        *weights, x, y = given
        value, slopes = fusec.value_and_grad(loss)(weights, x, y)
        return value, [w - 0.1 * s for w, s in zip(weights, slopes, strict=True)]

    f = fusec.jit(step)
    there = [cupy.asarray(a) for a in (*weights, x, y)]
    want = fusec.jit(step)(*weights, x, y)
    for _ in range(12):
        cupy.calls.clear()
        got = f(*there)
    assert cupy.calls == ["graph", "to host"]
    for one, other in zip(optree.tree_leaves(got), optree.tree_leaves(want), strict=True):
        one = one.get() if hasattr(one, "get") else one
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert "5 of them by cuBLAS, one CUDA graph" in str(f.traces[0].gpu_call)


def attention(weights: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """Of four heads, by einsum."""
    q, k, v = (np.einsum("btd,de->bte", x, w).reshape(*x.shape[:2], 4, -1) for w in weights[:3])
    scores = np.einsum("bihd,bjhd->bhij", q, k)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = np.einsum("bhij,bjhd->bihd", scores / scores.sum(axis=-1, keepdims=True), v)
    return ((mixed.reshape(x.shape) @ weights[3] - y) ** 2).mean()


def test_gradients_of_attention_are_one_graph(cupy: FakeCupy) -> None:
    weights = [0.1 * numbers(32, 32) for _ in range(4)]
    x, y = numbers(2, 20, 32), numbers(2, 20, 32)
    f = fusec.jit(fusec.grad(attention))
    there, want = cupy.asarray(x), f(weights, x, y)
    given = [cupy.asarray(w) for w in weights], there, cupy.asarray(y)
    for _ in range(12):
        cupy.calls.clear()
        got = f(*given)
    assert cupy.calls == ["graph"]
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one.get(), other, rtol=1e-10, atol=1e-12)


def test_graphs_in_several_threads(cupy: FakeCupy) -> None:
    """One handle of cuBLAS; each call has its stream and its workspace."""
    f, args = fusec.jit(lambda a, b: np.tanh(a @ b) @ b), [numbers(20, 20), numbers(20, 20)]
    want = np.tanh(args[0] @ args[1]) @ args[1]

    def calls(_: int) -> None:
        with cupy.cuda.Stream(non_blocking=True):
            there = [cupy.asarray(a) for a in args]
            for _ in range(20):
                np.testing.assert_allclose(f(*there).get(), want)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(calls, range(4)))


@pytest.mark.parametrize("what", ["no library", "no function", "status", "wrong numbers"])
def test_without_cublas_cupy_does_it(
    cupy: FakeCupy, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And `explain` says why."""
    if what == "no library":
        def load() -> Any:
            raise OSError("CuPy has loaded no libcublas.so")
        monkeypatch.setattr(cublas, "loaded_library", load)
        reason = "CuPy has loaded no libcublas.so"
    elif what == "no function":
        monkeypatch.setattr(cublas, "loaded_library", lambda: object())
        reason = "no attribute 'cublasCreate_v2'"
    elif what == "status":
        cupy.cublas.status, reason = NOT_SUPPORTED, "gemmStridedBatched: not supported (15)"
    else:
        cupy.cublas.wrong, reason = True, "cuBLAS gives another product than NumPy"
    g, asked = agree(cupy, lambda a, b: np.tanh(a @ b), numbers(5, 7), numbers(7, 3))
    assert "numpy.matmul" in asked and blas_calls(asked).count("cublasDgemm") <= 1
    assert reason in str(g.traces[0].gpu_call)


@pytest.mark.parametrize("calls", range(4))
def test_a_product_that_is_refused_later(cupy: FakeCupy, calls: int) -> None:
    """In a launch, while a graph is captured, or with NumPy's arrays: CuPy does it from then on."""
    def f(a: np.ndarray, b: np.ndarray) -> Any:
        a += np.tanh(a @ b)
        return a

    g, host, want = fusec.jit(f), fusec.jit(f, device="GPU:0"), numbers(6, 6)
    there, b = cupy.asarray(want), numbers(6, 6)
    for number in range(6):
        if number == calls:
            cupy.cublas.status = NOT_SUPPORTED
        want = f(want, b)
        np.testing.assert_allclose(g(there, cupy.asarray(b)).get(), want, rtol=1e-10)
    np.testing.assert_allclose(host(want.copy(), b), f(want, b), rtol=1e-10)
    assert "numpy.matmul" in cupy.calls


def test_an_argument_becomes_a_product_of_itself(cupy: FakeCupy) -> None:
    @fusec.jit
    def f(x: np.ndarray, w: np.ndarray) -> Any:
        x[...] = x @ w
        return x + 1

    host = [numbers(6, 6), numbers(6, 6)]
    there = [cupy.asarray(a) for a in host]
    for _ in range(5):
        host[0] = host[0] @ host[1]
        np.testing.assert_allclose(f(*there).get(), host[0] + 1)
        np.testing.assert_allclose(there[0].get(), host[0])


def test_rows_of_a_batch_are_rows_of_one_matrix() -> None:
    """A batch of rows by one matrix is one product."""
    def laid(*shape: int) -> Laid:
        return Laid(shape, np.empty(shape).strides)

    made = matrix_product(np.dtype(float), laid(8, 16, 32), laid(32, 5), laid(8, 16, 5))
    assert made is not None and made.batch == 1 and made.columns == 128


def test_sizes_that_gemm_cannot_count() -> None:
    big, n = 1 << 31, 8
    a, b = Laid((big, 2), (2 * n, n)), Laid((2, 3), (3 * n, n))
    assert matrix_product(np.dtype(float), a, b, Laid((big, 3), (3 * n, n))) is None


def test_fast_permits_tf32(cupy: FakeCupy) -> None:
    """Of float32 alone; the products of others have all digits, before and after one."""
    def f(a: Any, b: Any, c: Any) -> Any:
        return a @ b + 1, c @ c

    a, b, c = numbers(6, 40, dtype=np.float32), numbers(40, 6, dtype=np.float32), numbers(5, 5)
    there = [cupy.asarray(x) for x in (a, b, c)]
    exact, fast = fusec.jit(f), fusec.jit(f, fp="fast")
    for _ in range(4):  # step by step, prepared, as a graph
        for g, far in ((exact, False), (fast, True), (exact, False)):
            product, doubles = (x.get() for x in g(*there))
            error = np.abs(product - 1 - a.astype(float) @ b.astype(float))
            room = np.abs(a) @ np.abs(b)
            assert (error <= (2.0 ** -10 if far else 2.0 ** -21) * (1 + room)).all()
            assert (error.max() > 2.0 ** -16) == far
            np.testing.assert_allclose(doubles, c @ c, rtol=1e-12)
    np.testing.assert_allclose(fusec.jit(f, fp="fast")(a, b, c)[0], a @ b + 1, rtol=1e-4, atol=1e-5)


def test_a_library_without_tf32_leaves_products_to_cupy(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupy.cublas, "cublasSetMathMode", lambda *args: NOT_SUPPORTED)
    a = numbers(6, 6, dtype=np.float32)
    f = fusec.jit(lambda a: a @ a, fp="fast")
    for _ in range(4):
        np.testing.assert_allclose(f(cupy.asarray(a)).get(), a @ a, rtol=1e-4, atol=1e-5)
    assert "numpy.matmul" in cupy.calls
    assert "cublasSetMathMode: not supported" in str(f.traces[0].gpu_call)
