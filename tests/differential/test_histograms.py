"""``bincount`` and ``histogram``: fused counting, NumPy's values and errors bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check, is_of_one_device

import fusec

RNG = np.random.default_rng(20261121)
NAN, INF = float("nan"), float("inf")
KEYS = ("i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8")
WEIGHTS = ("i4", "i8", "f2", "f4", "f8")
RANGES = ((-4.0, 4.0), (-1, 2), (0, 100), (0.1, 0.3), (2, 2), (-1e-3, 1e30))


def data(dtype: str, size: int = 3001) -> np.ndarray:
    """Numbers around zero with ties and special values."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return RNG.integers(-100 if kind.kind == "i" else 0, 101, size).astype(kind)
    special = [0.1, -0.0, 0.3, 2.0, -4.0, 4.0, np.nextafter(4.0, 5)]
    return np.concatenate([RNG.normal(size=size) * 2, special]).astype(kind)


def fused(f: Callable[..., Any], *args: Any, externs: int = 0) -> None:
    """Compared with NumPy to the last bit under every ``fp``; no more library calls than said, on
    one device: of several, views are some."""
    check(f, *args, fp="strict")
    for fp in ("strict", "contract"):
        compiled = fusec.jit(f, fp=fp)
        found, expected = compiled(*args), f(*args)
        for a, b in zip(found if isinstance(found, tuple) else (found,),
                        expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        if is_of_one_device(compiled.traces[-1]):
            assert len(compiled.lower(*args).externs) == externs


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8"])
def test_bincount_of_bounded_integers(dtype: str) -> None:
    x = np.abs(data(dtype))
    fused(lambda x: np.bincount(x % 7, minlength=7), x)
    fused(lambda x: np.bincount(x.astype(np.uint8), minlength=300), x)
    fused(lambda x: np.bincount(np.clip(x, 3, 9), minlength=10) * 2, x)


def test_bincount_of_bytes_and_masks() -> None:
    fused(lambda x: np.bincount(x, minlength=256), data("u1"))
    fused(lambda x: np.bincount(x > 0, minlength=2), data("f8"))
    fused(lambda x, y: np.bincount((x & 7) * 8 + (y & 7), minlength=64), data("i8"), data("i8"))


@pytest.mark.parametrize("dtype", WEIGHTS)
def test_weights_are_added_in_numpy_order(dtype: str) -> None:
    x, w = data("i8", 70001), (RNG.normal(size=70001) * 1e3).astype(dtype)
    fused(lambda x, w: np.bincount(x & 15, w, 16), x, w)
    check(lambda x, w: np.bincount(x * x, weights=w * w, minlength=2), x, w)
    y = RNG.normal(size=70001)
    if dtype != "f2":  # too many for half precision to add up without overflow
        fused(lambda y, w: np.histogram(y, 12, (-2.5, 2.5), weights=w), y, w)
    fused(lambda y, w: np.histogram(y[:999], 1, (-2.5, 2.5), weights=w[:999] > 0), y, w, externs=1)


@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_are_counted_at_the_same_time(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusec.config, "num_threads", threads)
    y, w, image = RNG.normal(size=300_001), RNG.normal(size=300_001), data("u1", 262_144)
    fused(lambda y: np.histogram(y, 40, (-2.5, 2.5)), y)
    fused(lambda y: np.histogram(y, 40), y * 3, externs=1)
    fused(lambda y, w: np.histogram(y * 2, 40, (-2.5, 2.5), weights=w), y, w)
    fused(lambda y: np.histogram(y, [-1, 0, 0.25, 1]), y)
    fused(lambda x: np.bincount(x, minlength=256), image)
    for x in (image.reshape(512, 512), image.reshape(512, 512).T, image.reshape(512, 512)[::2]):
        fused(lambda x: np.histogram(x, 16, (0, 256)), x)
        fused(lambda x: np.histogram(x // 2, 16, (0, 256))[0], x)


def test_density_of_weights_divides_by_a_sum_in_another_order() -> None:
    x, w = RNG.normal(size=70_001), RNG.random(70_001)

    def f(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.histogram(x, 64, (-3, 5), weights=w, density=True)[0]

    np.testing.assert_allclose(fusec.jit(f)(x, w), f(x, w), rtol=1e-15)


@pytest.mark.parametrize("minlength", [0, 5, 1000])
def test_bincount_whose_size_the_data_decide(minlength: int) -> None:
    x = np.abs(data("i4"))
    for extern_x in (x, x[::-3], x[:1], x[:0]):
        check(lambda x: np.bincount(x * 2, minlength=minlength), extern_x)
        check(lambda x: np.bincount(x, minlength=minlength), extern_x)
    kernels = fusec.jit(lambda x: np.bincount(x * 2)).lower(x).kernels
    assert len(kernels) == 2  # the extremes; the counts


def test_one_compilation_counts_other_sizes() -> None:
    f = fusec.jit(lambda x: np.bincount(x + 1))
    for top in (5, 900, 2):
        x = RNG.integers(0, top, 400)
        np.testing.assert_array_equal(f(x), np.bincount(x + 1))
    assert f.trace_count == 1


BAD: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (lambda x: np.bincount(x - 3), (np.arange(5),)),
    (lambda x: np.bincount(x), (np.array([1, -1]),)),
    (lambda x: np.bincount(x), (np.array([1.0]),)),
    (lambda x: np.bincount(x), (np.ones((2, 2), int),)),
    (lambda x: np.bincount(x, minlength=-1), (np.array([1]),)),
    (lambda x: np.bincount(x, np.ones(3)), (np.array([1]),)),
    (lambda x, w: np.bincount(x, w), (np.array([1]), np.array([1j]))),
    (lambda x: np.histogram(x, 0, (0, 1)), (np.ones(3),)),
    (lambda x: np.histogram(x, 4, (1, 0)), (np.ones(3),)),
    (lambda x: np.histogram(x, 4, (0, INF)), (np.ones(3),)),
    (lambda x: np.histogram(x, [1, 0]), (np.ones(3),)),
    (lambda x: np.histogram(x, 4), (np.array([1.0, NAN]),)),
    (lambda x: np.histogram(x, 4), (np.array([1.0, -INF]),)),
    (lambda x: np.histogram(x, 4), (np.array([1e308, -1e308]),)),
    (lambda x: np.histogram(x, 4, (0, 1), weights=np.ones(2)), (np.ones(3),)),
    (lambda x: np.histogram(x, 4, (0.0, 1e-323)), (np.ones(3),)),
]


@pytest.mark.parametrize(("f", "args"), BAD)
def test_errors(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with pytest.raises(Exception) as expected:
        f(*args)
    with pytest.raises(expected.type) as found:
        fusec.jit(f)(*args)
    assert str(found.value).startswith(str(expected.value))


@pytest.mark.parametrize("ends", RANGES)
@pytest.mark.parametrize("dtype", KEYS)
def test_equal_bins_of_a_known_range(dtype: str, ends: Any) -> None:
    x = data(dtype)
    for bins in (1, 7, 50):
        fused(lambda x, bins=bins: np.histogram(x, bins, ends), x)
    fused(lambda x: np.histogram(x * 2, 9, range=list(ends), density=False)[0], x[::-2])


@pytest.mark.parametrize("dtype", KEYS)
def test_equal_bins_between_the_extremes(dtype: str) -> None:
    x = data(dtype)
    for extern_x in (x, x[:1], x[:2], np.full(9, x[0]), x[:2800].reshape(7, -1)[:, ::3]):
        fused(lambda x: np.histogram(x, 13), extern_x, externs=1)
    fused(lambda x: np.histogram(x), x, externs=1)


def test_wide_integers_between_the_extremes() -> None:
    ends = np.iinfo("i8")
    for x in ([ends.min, ends.max, 0, 5], [0, ends.max], [2**60, 2**60 + 1, 2**61 + 9]):
        fused(lambda x: np.histogram(x, 3), np.array(x), externs=1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_elements_at_and_beside_edges(dtype: str) -> None:
    edges = np.linspace(-1, 1, 31).astype(dtype)
    beside = [np.nextafter(edges, INF), np.nextafter(edges, -INF)]
    x = np.concatenate([edges, *beside, [NAN, INF, -INF]])
    fused(lambda x: np.histogram(x, 30, (-1, 1)), x)
    fused(lambda x: np.histogram(x, 10, (-1.0, 1.0), density=True), x)
    fused(lambda x: np.histogram(x, np.linspace(-1, 1, 31)), x)


@pytest.mark.parametrize("dtype", KEYS)
@pytest.mark.parametrize("edges", [[0, 1], [-2, 0, 0, 1.5, 2], [-3.5, -3, 0, 0], [1, 1],
                                   list(np.arange(-20.0, 20.0))])
def test_known_edges(dtype: str, edges: list[float]) -> None:
    fused(lambda x: np.histogram(x, edges), data(dtype))
    fused(lambda x: np.histogram(x, np.array(edges), density=True)[0][:1] * 0, data(dtype))


def test_library_calls_of_the_rest() -> None:
    x, w = data("f8"), RNG.normal(size=3008)
    check(lambda x, w: np.histogram(x, [0, 1, 2], weights=w), x, w)
    check(lambda x, e: np.histogram(x, e), x, np.linspace(-1, 1, 6))
    check(lambda x, w: np.histogram(x, 5, (0, 1), weights=w + 1j), x, w)
    check(lambda x: np.histogram(x.astype(np.float16), 5), x)
    check(lambda x: np.histogram(x[:0], 5), x)


def test_counters_that_name_a_place_twice_add_up() -> None:
    def f(v: np.ndarray) -> np.ndarray:
        total = np.zeros(4)
        np.add.at(total, np.broadcast_to(np.arange(4), (3, 4)), v)
        return total

    check(f, RNG.normal(size=(3, 4)))
