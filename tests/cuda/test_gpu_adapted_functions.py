"""Functions of CuPy's that compare, cut off or refuse in ways of their own: NumPy's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_cupy import FakeCupy, as_gpu
from test_gpu_order_statistics import check

import fusec

RNG = np.random.default_rng(0)
TALL, SQUARE, LONG = (RNG.normal(size=s) for s in ((9, 4), (5, 5), (3, 8)))
FLAT = np.hstack([TALL, TALL[:, :1]])  # of rank 4
Z = TALL + 1j * RNG.normal(size=TALL.shape)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


PAIRS = [("i4", "f4"), ("u8", "i8"), ("f4", "f8"), ("i8", "f4"), ("f8", "f8"), ("u1", "i2")]


@pytest.mark.parametrize(("of", "values"), PAIRS)
@pytest.mark.parametrize("f", [
    lambda a, v: np.searchsorted(a, v), lambda a, v: np.searchsorted(a, v, side="right"),
    lambda a, v: np.digitize(v, a)], ids=["left", "right", "digitize"])
def test_searches_of_two_dtypes(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any], of: str, values: str
) -> None:
    """16,777,217 is no float32, and -1 as uint64 is the largest."""
    plain = cupy.searchsorted

    def searches(a: Any, v: Any, *args: Any, **named: Any) -> Any:
        assert a.dtype == v.dtype, "C++ would convert in its own way"
        return plain(a, v, *args, **named)

    monkeypatch.setattr(cupy, "searchsorted", searches)
    table = np.array([0, 1, 2, 100, 200]).astype(of)
    if np.dtype(of).itemsize > 2:
        table = np.append(table, np.array([16_777_215, 16_777_217]).astype(of))
    wanted = np.array([-1, 0, 1, 2, 3, 100, 101]).astype(values)
    if np.dtype(values).itemsize > 2:
        wanted = np.append(wanted, np.array([16_777_216, 16_777_218]).astype(values))
    assert "numpy.searchsorted" in check(cupy, f, table, wanted)


@pytest.mark.parametrize("f", [np.isin, np.setdiff1d])
def test_sets_of_two_kinds_of_integers_are_numpys(cupy: FakeCupy, f: Any) -> None:
    a, b = np.array([1, 2, 3, 1 << 60]), np.array([3, (1 << 60) + 1], np.uint64)
    assert f"numpy.{f.__name__}" not in check(cupy, lambda a, b: f(a, b), a, b)
    assert f"numpy.{f.__name__}" in check(cupy, lambda a, b: f(a, b), a, b.astype("i4") + 1)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("density", [False, True])
def test_bins_between_the_extremes(cupy: FakeCupy, dtype: str, density: bool) -> None:
    """Of two numbers that the host looks at; the plan is one function."""
    x = (9 * RNG.normal(size=500)).astype(dtype)
    g = fusec.jit(lambda x: np.histogram(x * 2, 7, density=density))
    for given in (x, x + 1, x, np.full(500, 3, dtype)):
        for got, want in zip(g(cupy.asarray(given)),
                             np.histogram(given * 2, 7, density=density), strict=True):
            np.testing.assert_array_equal(got.get(), want)
            assert got.dtype == want.dtype
    assert g.trace_count == 1 and g.traces[0].gpu_call.function is not None


def test_bins_of_nan(cupy: FakeCupy) -> None:
    g = fusec.jit(lambda x: np.histogram(x, 7))
    with pytest.raises(ValueError, match=r"autodetected range of \[nan, nan\] is not finite"):
        g(cupy.asarray(np.array([1.0, np.nan])))


@pytest.mark.parametrize("a", [TALL, SQUARE, LONG, FLAT, Z, TALL.astype("f4")],
                         ids=["tall", "square", "long", "flat", "complex", "f4"])
@pytest.mark.parametrize(("f", "name"), [
    (lambda a: np.linalg.pinv(a), "pinv"), (lambda a: np.linalg.pinv(a, 1e-3) * 2, "pinv"),
    (lambda a: np.linalg.matrix_rank(a), "matrix_rank"),
    (lambda a: np.linalg.matrix_rank(a, tol=0.5) + 1, "matrix_rank")])
def test_singular_values(
    cupy: FakeCupy, f: Callable[..., Any], name: str, a: np.ndarray
) -> None:
    if a is FLAT and name == "pinv":
        a = a[:, :4] * 3
    assert f"numpy.linalg.{name}" in check(cupy, f, a)


@pytest.mark.parametrize("b", ["vector", "matrix"])
@pytest.mark.parametrize("a", [TALL, SQUARE, LONG, Z, TALL.astype("f4")],
                         ids=["tall", "square", "long", "complex", "f4"])
def test_least_squares(cupy: FakeCupy, a: np.ndarray, b: str) -> None:
    right = RNG.normal(size=(len(a), 2) if b == "matrix" else len(a)).astype(a.dtype)
    called = check(cupy, lambda a, b: np.linalg.lstsq(a, b, rcond=None), a, right)
    assert "numpy.linalg.lstsq" in called
    assert "numpy.linalg.lstsq" in check(
        cupy, lambda a, b: np.linalg.lstsq(a, b, rcond=1e-4)[0] + 1, a, right)


def test_least_squares_of_less_than_full_rank(cupy: FakeCupy) -> None:
    """There are no residuals then: another shape than was compiled, as on a CPU."""
    g, b = fusec.jit(lambda a, b: np.linalg.lstsq(a, b)), RNG.normal(size=9)
    g(cupy.asarray(np.ascontiguousarray(FLAT[:, :5] + np.eye(9, 5))), cupy.asarray(b))
    with pytest.raises(fusec.FusecError, match="depends on the data"):
        g(cupy.asarray(FLAT), cupy.asarray(b))


@pytest.mark.parametrize("f", [lambda a: np.linalg.pinv(a), lambda a: np.linalg.lstsq(a, a[:, 0])])
def test_matrices_with_nan_are_numpys(cupy: FakeCupy, f: Callable[..., Any]) -> None:
    a = SQUARE.copy()
    a[1, 2] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        f(a)
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        fusec.jit(f)(cupy.asarray(a))
