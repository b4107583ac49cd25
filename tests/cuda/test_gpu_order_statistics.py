"""Medians, quantiles, partitions and sets of arrays of a GPU: CuPy's functions, NumPy's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu

import fusec
from fusec import config

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 15))
WITH_NAN = np.where(RNG.random((6, 15)) < 0.05, np.nan, X)
FIRST, SECOND = RNG.integers(0, 9, 40), RNG.integers(5, 14, 30)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def check(fake: FakeCupy, f: Callable[..., Any], *args: np.ndarray) -> set[str]:
    """What CuPy was asked for, in two calls."""
    jitted, there = fusec.jit(f), [fake.asarray(a) for a in args]
    fake.calls.clear()
    for _ in range(2):
        got = jitted(*there)
        for one, other in zip(*map(optree.tree_leaves, (got, f(*args))), strict=True):
            one = one.get() if isinstance(one, FakeArray) else one
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-6)
    return {call for call in fake.calls if call.startswith("numpy.")}


@pytest.mark.parametrize("x", [X, WITH_NAN, X.astype("f4"), (X * 9).astype("i4")],
                         ids=["f8", "nan", "f4", "i4"])
@pytest.mark.parametrize(("f", "name"), [
    (lambda x: np.median(x), "median"), (lambda x: np.median(x * 2, axis=1) + 1, "median"),
    (lambda x: np.median(x, (0, 1), keepdims=True), "median"),
    (lambda x: np.percentile(x, 30), "percentile"),
    (lambda x: np.percentile(x, [5, 95], axis=0), "percentile"),
    (lambda x: np.percentile(x, [50], axis=0, keepdims=True), "percentile"),
    (lambda x: np.quantile(x, 0.3, 1, method="lower"), "quantile")])
def test_quantiles(cupy: FakeCupy, f: Callable[..., Any], name: str, x: np.ndarray) -> None:
    assert f"numpy.{name}" in check(cupy, f, x)


@pytest.mark.parametrize(("f", "name"), [
    (lambda x: np.partition(x, 4, axis=1)[:, 4], "partition"),
    (lambda x: np.take_along_axis(x, np.argpartition(x, 3, axis=1)[:, 3:4], 1), "argpartition")])
def test_partitions(cupy: FakeCupy, f: Callable[..., Any], name: str) -> None:
    assert f"numpy.{name}" in check(cupy, f, X)


@pytest.mark.parametrize("function", [np.union1d, np.setdiff1d, np.intersect1d, np.setxor1d,
                                      np.isin])
def test_sets(cupy: FakeCupy, function: Any) -> None:
    assert f"numpy.{function.__name__}" in check(cupy, lambda i, j: function(i, j), FIRST, SECOND)


FALLING = np.array([2.0, 1, 0.5, 0.5, -1])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [FALLING, FALLING[::-1].copy()], ids=["falling", "rising"])
def test_bins(cupy: FakeCupy, bins: np.ndarray, right: bool) -> None:
    x = np.append(X.ravel(), [0.5, 2, -1])
    called = check(cupy, lambda x, b: np.digitize(x, b, right=right), x, bins)
    assert "numpy.searchsorted" in called


def test_bins_in_no_order(cupy: FakeCupy) -> None:
    jitted = fusec.jit(lambda x, b: np.digitize(x, b))
    with pytest.raises(ValueError, match="monotonic"):
        jitted(cupy.asarray(X), cupy.asarray(np.array([0.0, 2, 1])))


def test_keys_of_several_dtypes(cupy: FakeCupy) -> None:
    keys = RNG.normal(size=40), FIRST % 3, (FIRST * 7 % 4).astype("f4")
    called = check(cupy, lambda a, b, c: np.lexsort((a, b, c)), *keys)
    assert called == {"numpy.argsort", "numpy.take"}


@pytest.mark.parametrize(("f", "name", "args"), [
    (lambda x: np.nanmedian(x, axis=0), "nanmedian", (WITH_NAN,)),
    (lambda x: np.nanmedian(x, axis=(0, 1), keepdims=True), "nanmedian", (WITH_NAN,))])
def test_medians_without_nan(
    cupy: FakeCupy, f: Callable[..., Any], name: str, args: tuple[np.ndarray, ...]
) -> None:
    assert f"numpy.{name}" in check(cupy, f, *args)


def test_weighted_counts_where_any_order_serves(cupy: FakeCupy) -> None:
    def counts(i: Any, w: Any) -> Any:
        return np.bincount(i, w, minlength=10)

    w = RNG.normal(size=40)
    assert "numpy.bincount" not in check(cupy, counts, FIRST, w)
    with config.override(deterministic=False):
        assert "numpy.bincount" in check(cupy, counts, FIRST, w)


def test_a_function_that_this_cupy_has_not(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(cupy, "setxor1d")
    assert "numpy.setxor1d" not in check(cupy, lambda i, j: np.setxor1d(i, j), FIRST, SECOND)


def test_what_cupy_refuses(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*args: Any, **named: Any) -> Any:
        raise ValueError("method is not yet supported")

    monkeypatch.setattr(cupy, "quantile", refuses)
    check(cupy, lambda x: np.quantile(x, 0.3, 0, method="hazen"), X)


def test_work_on_the_host_is_told_once_with_its_line(
    cupy: FakeCupy, capsys: pytest.CaptureFixture[str]
) -> None:
    def on_host(x: Any) -> Any:
        return np.nanquantile(x * 2, 0.5, axis=0) + 1

    def on_gpu(x: Any) -> Any:
        return np.median(x * 2, axis=0) + x.max()

    capsys.readouterr()
    jitted = fusec.jit(on_host)
    for shape in ((4, 5), (4, 5), (6, 7)):
        jitted(cupy.asarray(RNG.normal(size=shape)))
    said = [line for line in capsys.readouterr().err.splitlines() if "copied to the CPU" in line]
    line = on_host.__code__.co_firstlineno + 1
    assert len(said) == 1 and f"test_gpu_order_statistics.py:{line}" in said[0], said
    assert "nanquantile" in said[0].lower() and "GPU" in said[0]
    fusec.jit(on_gpu)(cupy.asarray(X))
    assert "copied to the CPU" not in capsys.readouterr().err
