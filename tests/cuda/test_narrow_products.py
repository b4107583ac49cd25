"""Products of few columns, of vectors and over short axes as sums of products on a GPU: their
numbers, how they fuse, and when a library does them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_cupy import FakeCupy, as_gpu

import fusec

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(37)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def numbers(*shape: int, dtype: Any = "f8") -> np.ndarray:
    dtype = np.dtype(dtype)
    made = 3 * RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if dtype.kind == "c" else 0)
    return np.asarray(made).astype(dtype)


def exact(x: np.ndarray) -> np.ndarray:
    """In a type whose rounding is no part of a comparison."""
    return x.astype("c16") if x.dtype.kind == "c" else x.astype("f8") if x.dtype.kind == "f" else x


def agrees(f: Callable[..., Any], *args: Any) -> Any:
    """The jitted function on the emulated device has NumPy's numbers: each within the rounding of
    one sum of that many products of the operands' sizes."""
    jitted = fusec.jit(f, device=HOST)
    got, want = (optree.tree_leaves(x) for x in (
        jitted(*args), f(*optree.tree_map(exact, args))))
    room, plain = (optree.tree_leaves(f(*optree.tree_map(of, args)))
                   for of in (lambda x: np.abs(exact(x)), lambda x: x))
    for one, other, most, own in zip(got, want, room, plain, strict=True):
        one, own = np.asarray(one), np.asarray(own)
        assert (one.dtype, one.shape) == (own.dtype, own.shape)
        if one.dtype.kind not in "fc":
            np.testing.assert_array_equal(one, own)
            continue
        assert (np.abs(one - other) <= 8 * np.finfo(one.dtype).eps * most).all()
    return jitted


def left_to_libraries(jitted: Any) -> int:
    return sum(e.name == "np.matmul" for e in jitted.traces[0].externs)


COLUMNS = (1, 2, 3, 10, 16, 17)
DTYPES = ("f2", "f4", "f8", "c8", "c16", "i1", "u4", "i8")


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns(dtype: str) -> None:
    x, turned = numbers(9, 37, dtype=dtype), numbers(37, 9, dtype=dtype)
    weights = [numbers(37, n, dtype=dtype) for n in COLUMNS]
    f = agrees(lambda x, t, ws: [(x @ w, t.T @ w) for w in ws], x, turned, weights)
    assert left_to_libraries(f) == 2  # those of 17 columns


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_and_short_axes(dtype: str) -> None:
    x, w, v, u = (numbers(*s, dtype=dtype) for s in ((40, 21), (21, 5), (21,), (40,)))
    thin, wide = numbers(40, 16, dtype=dtype), numbers(16, 50, dtype=dtype)

    def f(x: Any, w: Any, v: Any, u: Any, thin: Any, wide: Any) -> Any:
        return (x @ v, u @ x, x.T @ u, v @ x.T, v @ v, v @ w, x[:1] @ w, x[:, :1].T @ x,
                thin @ wide, wide.T @ thin.T, thin[:, :2] @ wide[:2], u[:1] @ x[:1])

    assert left_to_libraries(agrees(f, x, w, v, u, thin, wide)) == 0


@pytest.mark.parametrize("f", [
    lambda x, w: x[::2] @ w[:, ::3],
    lambda x, w: x[::-1, 1:-1] @ w[1:-1],
    lambda x, w: x.T[:, 3:20] @ w[:17],
    lambda x, w: w.T @ x.T,
    lambda x, w: (x * 2 + 1) @ (w * w + w),
    lambda x, w: np.maximum(x, 0.5)[:, 4:] @ np.sqrt(np.abs(w[4:]) + 3),
    lambda x, w: np.broadcast_to(x[0], (5, 35)) @ w,
    lambda x, w: (x @ w) @ (x @ w).T,
    lambda x, w: (x @ w).T @ x,
    lambda x, w: np.maximum(x @ w + w[0], 0) * 2 + (x * x) @ w,
    lambda x, w: ((x @ w).sum(), (x @ w).max(axis=0), (x @ w).T, (x @ w)[1:, ::2]),
    lambda x, w: [(x @ w)[:, n] * (x @ w[:, n]) for n in range(3)],
], ids=range(12))
def test_views_and_computed_operands(f: Callable[..., Any]) -> None:
    agrees(f, numbers(33, 35), numbers(35, 9))


def lengths(x: Any) -> Any:
    return np.sqrt((x * x).sum(axis=1))[:, None]


@pytest.mark.parametrize("f", [
    lambda p: p[::-1] * lengths(p),
    lambda p: (p[::-1] + p) * p[:, ::-1],
    lambda p: p[np.arange(len(p))[::-1]] * lengths(p),
    lambda p: np.roll(p, 1, axis=0) * lengths(p),
], ids=range(4))
def test_totals_of_other_rows_come_from_memory(f: Callable[..., Any]) -> None:
    """A row's thread has none but its own."""
    agrees(lambda x, w, y: f(x @ w) * lengths(y), numbers(33, 40), numbers(40, 3), numbers(33, 3))


def test_many_products_of_one_matrix() -> None:
    """No thread keeps more totals than it has registers for."""
    weights = [numbers(20, 12) for _ in range(6)]
    f = agrees(lambda x, ws: [x @ w for w in ws], numbers(64, 20), weights)
    assert len(f.traces[0].kernels) == 3


def test_many_rows_of_a_turned_matrix() -> None:
    """Rows go to several blocks; each total of many is joined by all groups of threads."""
    agrees(lambda x, y: (x.T @ y, y.T @ x[:, 0], (x * 2).sum(axis=0)),
           numbers(5000, 3), numbers(5000, 16))


def test_rows_of_the_run() -> None:
    """Sizes are symbols; so is the emptiness of what is selected."""
    def f(x: Any, w: Any, v: Any) -> Any:
        chosen = x[x[:, 0] > 0]
        return chosen @ w, chosen @ v, chosen.T @ chosen[:, :3], np.tanh(chosen @ w + 1)

    x, w, v = numbers(50, 20), numbers(20, 7), numbers(20)
    jitted = fusec.jit(f, device=HOST)
    for sign in (1, -1, 0):
        x[:, 0] = sign * np.abs(x[:, 0]) if sign else RNG.normal(size=50)
        for one, other in zip(jitted(x, w, v), f(x, w, v), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_in_any_order_of_blocks_the_bits_are_the_same() -> None:
    f = fusec.jit(lambda x, w, y: (np.tanh(x @ w + 1), x.T @ y, w @ (x @ w).T), device=HOST)
    args = numbers(100, 50), numbers(50, 10), numbers(100, 7)
    seed, found = fusec.config.cuda_host_seed, []
    try:
        for fusec.config.cuda_host_seed in (0, 3, 8):
            found.append([a.tobytes() for a in f(*args)])
    finally:
        fusec.config.cuda_host_seed = seed
    assert found[0] == found[1] == found[2]


def test_column_order() -> None:
    agrees(lambda x, w: x @ w, np.asfortranarray(numbers(20, 30)), np.asfortranarray(
        numbers(30, 6)))


@pytest.mark.parametrize("shapes", [
    ((0, 5), (5, 3)), ((4, 0), (0, 3)), ((4, 5), (5, 0)), ((0,), (0,)), ((0, 5), (5,)),
    ((4, 0), (0,)), ((0,), (0, 4)),
])
def test_no_elements(shapes: tuple[tuple[int, ...], ...]) -> None:
    agrees(lambda a, b: a @ b, *(numbers(*s) for s in shapes))


def launches(cupy: FakeCupy, f: Callable[..., Any], *args: np.ndarray, rtol: float = 1e-12) -> Any:
    """What a call with arrays of the GPU asks for at first, and the jitted function; its numbers
    are those of the CPU."""
    jitted, want = fusec.jit(f), optree.tree_leaves(fusec.jit(f)(*args))
    there = [cupy.asarray(a) for a in args]
    asked = list[str]()
    for number in range(4):
        cupy.calls.clear()
        got = optree.tree_leaves(jitted(*there))
        asked = asked if number else [
            a for a in cupy.calls if a.startswith(("nest", "cublas", "numpy"))]
        for one, other in zip(got, want, strict=True):
            one = one.get() if hasattr(one, "get") else one
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    return asked, jitted


def loss(weights: Any, x: np.ndarray, y: np.ndarray) -> Any:
    hidden = np.tanh(x @ weights[0] + weights[1])
    z = hidden @ weights[2] + weights[3]
    z = z - z.max(axis=1, keepdims=True)
    return -((z - np.log(np.exp(z).sum(axis=1, keepdims=True))) * y).sum() / len(x)


def step(*given: np.ndarray) -> Any:
    *weights, x, y = given
    value, slopes = fusec.value_and_grad(loss)(weights, x, y)
    return value, [w - 0.1 * s for w, s in zip(weights, slopes, strict=True)]


@pytest.mark.parametrize(("batch", "sizes", "dtype"), [
    (64, (784, 128, 10), np.float32), (256, (64, 64, 10), np.float64)])
def test_a_training_step_is_six_launches(
    cupy: FakeCupy, batch: int, sizes: tuple[int, int, int], dtype: Any
) -> None:
    """Of the first layer's products by cuBLAS; activation and logits; loss, its gradient, the last
    bias; all that a hidden unit sums; the first layer's weights."""
    a, b, c = sizes
    weights = [numbers(*s, dtype=dtype) / 9 for s in ((a, b), (b,), (b, c), (c,))]
    x, y = numbers(batch, a, dtype=dtype), np.eye(c, dtype=dtype)[RNG.integers(0, c, batch)]
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    _, f = launches(cupy, step, *weights, x, y, rtol=rtol)
    assert "6 prepared launches, 2 of them by cuBLAS, one CUDA graph" in str(f.traces[0].gpu_call)


@pytest.mark.parametrize(("f", "count"), [
    (lambda x, w, b: np.tanh(x @ w + b), 1),
    (lambda x, w, b: np.maximum((x * 2 - 1) @ w + b, 0), 1),
    (lambda x, w, b: (x @ w[:, 0] + 1, x.sum(axis=1)), 1),
    (lambda x, w, b: (x.T @ (x @ w[:, 0]), x.mean(axis=0)), 2),
], ids=["a layer", "a scaled layer", "a vector and a sum", "and back"])
def test_what_is_around_is_in_the_kernel(
    cupy: FakeCupy, f: Callable[..., Any], count: int
) -> None:
    asked, _ = launches(cupy, f, numbers(300, 80), numbers(80, 10), numbers(10))
    assert len(asked) == count and not any("cublas" in a for a in asked)


def test_one_thread_of_a_warp_does_not_compute_for_many_rows(cupy: FakeCupy) -> None:
    """A kernel of its own has a thread for each number."""
    x, w = numbers(100_000, 64, dtype="f4"), numbers(64, 2, dtype="f4")
    asked, _ = launches(cupy, lambda x, w: np.tanh(x @ w) + 1, x, w, rtol=1e-4)
    assert len(asked) == 2 and not any("cublas" in a for a in asked)


@pytest.mark.parametrize("shapes", [
    ((64, 64), (64, 64)), ((100_000, 128), (128, 16)), ((64, 20_000), (20_000, 16)),
    ((3, 64, 8), (8, 5)),
])
def test_a_library_does_others(shapes: tuple[tuple[int, ...], ...], cupy: FakeCupy) -> None:
    """Many columns; few of so much that instructions count; a batch."""
    f = fusec.jit(lambda a, b: a @ b)
    args = [np.ones(s, np.float32) for s in shapes]
    got = f(*map(cupy.asarray, args)).get()
    np.testing.assert_allclose(got, args[0] @ args[1], rtol=1e-6)
    assert "cublasSgemm" in cupy.calls


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.uint8])
def test_a_gpu_computes_products_for_which_it_has_no_library(cupy: FakeCupy, dtype: Any) -> None:
    """They went to the CPU and back."""
    f = fusec.jit(lambda x, w, v: (x @ w + 1, x @ v))
    args = [RNG.integers(0, 9, s).astype(dtype) for s in ((30, 20), (20, 4), (20,))]
    for one, other in zip(f(*map(cupy.asarray, args)), (args[0] @ args[1] + 1, args[0] @ args[2]),
                          strict=True):
        np.testing.assert_array_equal(one.get(), other)
    assert not f.traces[0].externs
    assert "sums in a kernel; the device has no library for it" in str(f.traces[0].as_text())


def test_explain_says_which_and_why(cupy: FakeCupy) -> None:
    def f(x: Any, w: Any, u: Any) -> Any:
        return np.tanh(x @ w), x @ u

    args = [cupy.asarray(numbers(*s)) for s in ((300, 80), (80, 10), (80, 80))]
    text = str(fusec.explain(f, *args))
    section = text[text.index("narrow products on a GPU"):]
    (line,) = [one for one in section.splitlines() if "sums in a kernel" in one]
    assert "of 300 x 80 x 10, estimated at" in line and "us by cuBLAS" in line


def test_the_cpu_has_products_of_its_library() -> None:
    f = fusec.jit(lambda x, w: np.tanh(x @ w))
    x, w = numbers(300, 80), numbers(80, 10)
    np.testing.assert_allclose(f(x, w), np.tanh(x @ w), rtol=1e-12)
    assert left_to_libraries(f) == 1
