"""Functions whose work is a library's: the same results, kinds, strides, errors as eager NumPy."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check
from tolerance import NEAR

import fusec
from fusec.ops import get
from fusec.ops.calls.library import LIBRARY, decode, leaves_of
from fusec.trace import tracer  # noqa: F401 (it fills the tables)
from fusec.trace.values.handlers import FUNCTIONS

RNG = np.random.default_rng(20261121)
DTYPES = ("f4", "f8", "i4", "i8", "u1")
FLOATS = ("f4", "f8")
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def arr(dtype: str, *shape: int) -> np.ndarray:
    """Small numbers with ties; quarters in floats."""
    data = RNG.integers(-8 if np.dtype(dtype).kind != "u" else 0, 9, shape)
    return (data / 4).astype(dtype) if np.dtype(dtype).kind == "f" else data.astype(dtype)


def square(dtype: str, *lead: int, n: int = 4) -> np.ndarray:
    """Symmetric positive definite matrices."""
    a = RNG.normal(size=(*lead, n, n))
    return np.ascontiguousarray(a @ a.swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)


def strict(f: Callable[..., Any], *args: Any) -> Any:
    return check(f, *args, fp="strict")


# --------------------------------------------------------------------------------------- products


def products(d: str) -> dict[str, Case]:
    a, b, v = arr(d, 3, 4), arr(d, 4, 5), arr(d, 4)
    t = arr(d, 2, 3, 4)
    return {
        "einsum matmul": (lambda a, b: np.einsum("ij,jk->ik", a, b), (a, b)),
        "einsum sum": (lambda a: np.einsum("ij->", a), (a,)),
        "einsum trace": (lambda a: np.einsum("ii", a[:3, :3]), (a,)),
        "einsum optimize": (lambda a, b, v: np.einsum("ij,jk,j->ik", a, b, v, optimize=True),
                            (a, b, v)),
        "einsum ellipsis": (lambda t, v: np.einsum("...i,i", t, v), (t, v)),
        "einsum lists": (lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]), (a, b)),
        "einsum empty": (lambda a, b: np.einsum("ij,jk->ik", a[:0], b), (a, b)),
        "einsum bad": (lambda a, b: np.einsum("ij,ij->i", a, b), (a, b)),
        "einsum bad text": (lambda a: np.einsum("i?->i", a), (a,)),
        "tensordot": (lambda t, a: np.tensordot(t, a, axes=([1, 2], [0, 1])), (t, a)),
        "tensordot 1": (lambda t, b: np.tensordot(t, b, 1), (t, b)),
        "tensordot bad": (lambda t, b: np.tensordot(t, b, 2), (t, b)),
        "inner": (lambda t, v: np.inner(t, v), (t, v)),
        "inner bad": (lambda a, b: np.inner(a, b), (a, b)),
        "vdot": (lambda a, t: np.vdot(a, t[0]), (a, t)),
        "dot": (lambda t, b: np.dot(t, b), (t, b)),
        "kron": (lambda a, v: np.kron(a, v), (a, v)),
        "cross": (lambda a: np.cross(a.T[:, :3], a.T[:, :3][::-1]), (a,)),
        "cross axis": (lambda t: np.cross(t, t[::-1], axis=1), (t,)),
        "linalg.cross": (lambda a: np.linalg.cross(a.T, a.T[::-1]), (a,)),
        "matvec": (lambda t, v: np.matvec(t, v), (t, v)),
        "vecmat": (lambda v, b: np.vecmat(v, b), (v, b)),
        "vecdot": (lambda t, v: np.vecdot(t, v), (t, v)),
        "vecdot axis": (lambda t: np.vecdot(t, t[::-1], axis=1), (t,)),
        "matvec bad": (lambda a, v: np.matvec(a, v[:2]), (a, v)),
        "linalg.vecdot": (lambda t, v: np.linalg.vecdot(t, v), (t, v)),
        "linalg.outer": (lambda v: np.linalg.outer(v, v[1:]), (v,)),
        "linalg.tensordot": (lambda t, a: np.linalg.tensordot(t, a, axes=2), (t, a)),
        "linalg.matmul": (lambda a, b: np.linalg.matmul(a, b), (a, b)),
        "multi_dot": (lambda a, b, v: np.linalg.multi_dot([a, b, b.T, v]), (a, b, v)),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", products("f8"))
def test_products(name: str, dtype: str) -> None:
    f, args = products(dtype)[name]
    strict(f, *args)


# --------------------------------------------------------------------------------- linear algebra


LINALG: dict[str, Callable[..., Any]] = {
    "solve": lambda a, b: np.linalg.solve(a, b[..., :2]),
    "solve vector": lambda a, b: np.linalg.solve(a, b[0, :, 0] if b.ndim == 3 else b[0]),
    "inv": lambda a, b: np.linalg.inv(a) * 2 + b,
    "inv transposed": lambda a, b: np.linalg.inv(a.swapaxes(-1, -2)),
    "det": lambda a, b: np.linalg.det(a),
    "slogdet": lambda a, b: np.linalg.slogdet(b),
    "slogdet used": lambda a, b: np.linalg.slogdet(a).logabsdet + np.linalg.slogdet(b)[0],
    "cholesky": lambda a, b: np.linalg.cholesky(a),
    "cholesky upper": lambda a, b: np.linalg.cholesky(a, upper=True),
    "qr": lambda a, b: np.linalg.qr(b[..., :3]),
    "qr r": lambda a, b: np.linalg.qr(b, mode="r"),
    "svd": lambda a, b: np.linalg.svd(b[..., :3], full_matrices=False),
    "svd full": lambda a, b: np.linalg.svd(b[..., :3]),
    "svd values": lambda a, b: np.linalg.svd(b, compute_uv=False),
    "svdvals": lambda a, b: np.linalg.svdvals(b),
    "eigh": lambda a, b: np.linalg.eigh(a),
    "eigh used": lambda a, b: np.linalg.eigh(a + 1).eigenvectors * 2,
    "eigvalsh": lambda a, b: np.linalg.eigvalsh(a, "U"),
    "pinv": lambda a, b: np.linalg.pinv(b[..., :3]),
    "pinv rtol": lambda a, b: np.linalg.pinv(b, rtol=1e-3),
    "matrix_power": lambda a, b: np.linalg.matrix_power(b, 3),
    "matrix_power 0": lambda a, b: np.linalg.matrix_power(b, 0),
    "matrix_power 1": lambda a, b: np.linalg.matrix_power(b, 1),
    "matrix_power -2": lambda a, b: np.linalg.matrix_power(a, -2),
    "matrix_rank": lambda a, b: np.linalg.matrix_rank(b),
    "norm 1": lambda a, b: np.linalg.norm(b, 1, axis=(-2, -1)),
    "norm nuc": lambda a, b: np.linalg.norm(b, "nuc", axis=(-2, -1)),
    "norm inf": lambda a, b: np.linalg.norm(b, np.inf, axis=-1),
    "norm -inf": lambda a, b: np.linalg.norm(b, -np.inf, axis=0, keepdims=True),
    "norm bad": lambda a, b: np.linalg.norm(b, "what"),
    "matrix_norm": lambda a, b: np.linalg.matrix_norm(b, ord=2),
    "vector_norm": lambda a, b: np.linalg.vector_norm(b, axis=-1, ord=1),
    "cond": lambda a, b: np.linalg.cond(a),
    "trace": lambda a, b: np.trace(b, 1),
    "trace axes": lambda a, b: np.trace(b, axis1=-2, axis2=-1),
    "linalg.trace": lambda a, b: np.linalg.trace(b),
    "tensorinv": lambda a, b: np.linalg.tensorinv(a.reshape(-1, 4)[:4].reshape(2, 2, 4), ind=2),
    "not square": lambda a, b: np.linalg.inv(b[..., :3]),
    "singular": lambda a, b: np.linalg.inv(a * 0),
    "not definite": lambda a, b: np.linalg.cholesky(a - 100),
    "shapes": lambda a, b: np.linalg.solve(a, b[..., :3, :]),
    "one axis": lambda a, b: np.linalg.det(a.ravel()),
}


@pytest.mark.parametrize("lead", [(), (3,), (0,)])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name: str, dtype: str, lead: tuple[int, ...]) -> None:
    strict(LINALG[name], square(dtype, *lead), arr(dtype, *lead, 4, 4))


def test_linear_algebra_of_integers() -> None:
    a = np.array([[2, 1], [1, 3]])
    for f in (np.linalg.inv, np.linalg.det, np.linalg.eigh, np.linalg.svdvals):
        strict(lambda x, f=f: f(x), a)
    strict(lambda x: np.linalg.matrix_power(x, 5), a)
    strict(lambda x: np.linalg.solve(x, x[0]), a)


@pytest.mark.parametrize("dtype", ["i1", "f4"])
def test_norms_of_pairs_of_axes_and_small_integers(dtype: str) -> None:
    x = np.array([[[90, 80], [70, -60]]], dtype)
    for order in (None, 2, "fro"):
        check(lambda x, o=order: np.linalg.norm(x, o, axis=(1, 2)), x)
    check(lambda x: np.linalg.norm(x), x)
    check(lambda x: np.linalg.norm(x, axis=(0, 1, 2)), x)
    check(lambda x: np.linalg.norm(x[0], 2), x)
    check(lambda x: np.linalg.norm(x, axis=1), x)


def test_least_squares() -> None:
    a, b = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))
    strict(lambda a, b: np.linalg.lstsq(a, b), a, b)
    strict(lambda a, b: np.linalg.lstsq(a, b[:, 0], rcond=None), a, b)
    strict(lambda a, b: np.linalg.lstsq(a.T, b[:3]), a, b)
    with pytest.raises(fusec.UnsupportedError, match="depends on the data"):
        fusec.jit(lambda a, b: np.linalg.lstsq(a, b))(a * 0, b)


def test_a_library_error_names_the_line_and_what_came_before_stays() -> None:
    def f(x, m):
        x += 1
        y = np.linalg.inv(m)
        x[:] = y[0]

    x = np.zeros(2)
    function = fusec.jit(f)
    function(np.zeros(2), np.eye(2))
    for call in range(3):  # the first, and the quick way in
        with pytest.raises(np.linalg.LinAlgError) as raised:
            function(x, np.zeros((2, 2)))
        assert "Singular matrix" in str(raised.value)
        assert "y = np.linalg.inv(m)" in "".join(raised.value.__notes__)
        frames = traceback.format_tb(raised.value.__traceback__)
        assert not any("executor.py" in frame or "function.py" in frame for frame in frames)
        np.testing.assert_array_equal(x, call + 1.0)
    strict(f, x, 2 * np.eye(2))


# ------------------------------------------------------------------------------------------ order


ORDER: dict[str, Callable[..., Any]] = {
    "sort": lambda x, v: np.sort(x), "sort axis": lambda x, v: np.sort(x, axis=0),
    "sort flat": lambda x, v: np.sort(x, axis=None),
    "sort kind": lambda x, v: np.sort(x, kind="stable"),
    "sort stable": lambda x, v: np.sort(x, axis=1, stable=True),
    "sort transposed": lambda x, v: np.sort(x.T), "sort view": lambda x, v: np.sort(x[:, ::2]),
    "sort fused": lambda x, v: np.sort(x + v) * 2, "sort bad": lambda x, v: np.sort(x, axis=3),
    "argsort": lambda x, v: np.argsort(x, kind="stable"),
    "argsort method": lambda x, v: x.argsort(0, "stable"),
    "lexsort": lambda x, v: np.lexsort((v, x[0])), "lexsort array": lambda x, v: np.lexsort(x),
    "partition": lambda x, v: np.sort(np.partition(x, 2)[..., :2]),
    "partition two": lambda x, v: np.partition(x, (1, 3), axis=-1)[:, 1],
    "partition bad": lambda x, v: np.partition(x, 99),
    "argpartition": lambda x, v: np.argpartition(v, 2)[2] * 0,
    "searchsorted": lambda x, v: np.searchsorted(np.sort(v), x),
    "searchsorted right": lambda x, v: np.sort(v).searchsorted(x[0], side="right"),
    "searchsorted number": lambda x, v: np.searchsorted(np.sort(v), 1),
    "searchsorted sorter": lambda x, v: np.searchsorted(v, x, sorter=v.argsort(kind="stable")),
    "in place": lambda x, v: x.sort(), "in place axis": lambda x, v: x.sort(axis=0),
    "in place view": lambda x, v: x[1].sort(), "in place part": lambda x, v: v.partition(2),
    "in place twice": lambda x, v: (x.sort(), x.sort(0), x + 1)[2],
    "in place column": lambda x, v: x[:, 2].sort(),
    "in place reversed": lambda x, v: v[::-1].sort(),
    "median of rows": lambda x, v: x[np.arange(4)[:, None], np.argsort(x, 1, "stable")],
    "digitize": lambda x, v: np.digitize(x, np.sort(v)),
    "digitize right": lambda x, v: np.digitize(x, [0, 1, 2], right=True),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ORDER)
def test_order(name: str, dtype: str) -> None:
    strict(ORDER[name], arr(dtype, 4, 5), arr(dtype, 5))


@pytest.mark.parametrize("name", ["sort", "argsort", "in place", "sort flat"])
def test_order_of_nothing_and_of_nan(name: str) -> None:
    strict(ORDER[name], np.zeros((0, 5)), np.zeros(5))
    strict(ORDER[name], np.where(arr("f8", 4, 5) > 1, np.nan, 0), np.zeros(5))


def test_sorting_a_read_only_array() -> None:
    x = arr("f8", 4)
    x.flags.writeable = False
    strict(lambda x: x.sort(), x)


def test_a_number_known_at_run_time() -> None:
    f = strict(lambda x, k: np.sort(np.partition(x, k)[:2]), arr("f8", 9), 1)
    check(f.python_function, arr("f8", 9), 5, jitted=f)
    strict(lambda x, q: np.percentile(x, q), arr("f4", 9), 30.0)
    strict(lambda x, k: np.partition(x, k), arr("f8", 4), 40)


# ------------------------------------------------------------------------------------------ scans


SCANS: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x: np.cumsum(x), "cumsum axis": lambda x: np.cumsum(x, axis=1),
    "cumsum dtype": lambda x: x.cumsum(0, dtype=np.float32), "cumprod": lambda x: x.cumprod(-1),
    "cumsum transposed": lambda x: np.cumsum(x.T, axis=0),
    "nancumsum": lambda x: np.nancumsum(x, 1), "nancumprod": lambda x: np.nancumprod(x, axis=0),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda x: np.cumulative_prod(x[0]),
    "cumulative_sum bad": lambda x: np.cumulative_sum(x),
    "add": lambda x: np.add.accumulate(x, axis=1), "multiply": lambda x: np.multiply.accumulate(x),
    "maximum": lambda x: np.maximum.accumulate(x, axis=-1),
    "minimum": lambda x: np.minimum.accumulate(x), "bad axis": lambda x: np.cumsum(x, axis=2),
    "reduceat": lambda x: np.add.reduceat(x, [0, 2, 1]), "fused": lambda x: np.cumsum(x * 2) + 1,
    "unwrap": lambda x: np.unwrap(x * 1.5),
}


@pytest.mark.parametrize("dtype", (*DTYPES, "?"))
@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str, dtype: str) -> None:
    strict(SCANS[name], arr(dtype, 3, 4))
    strict(SCANS[name], arr(dtype, 0, 4))


def test_scans_into_an_array() -> None:
    def f(x, out):
        return np.cumsum(x, out=out)

    strict(f, arr("f8", 5), np.zeros(5))
    strict(f, arr("i4", 5), np.zeros(5))
    strict(f, arr("f8", 5), np.zeros(4))
    strict(lambda x: np.add.accumulate(x, out=x), arr("f8", 5))
    strict(lambda x, out: np.multiply.accumulate(x, 0, None, out), arr("f8", 5), np.zeros(5))


# -------------------------------------------------------------------------------------- statistics


STATISTICS: dict[str, Callable[..., Any]] = {
    "median": lambda x: np.median(x), "median axis": lambda x: np.median(x, axis=0),
    "median kept": lambda x: np.median(x, axis=(0, 1), keepdims=True),
    "nanmedian": lambda x: np.nanmedian(x, 1), "percentile": lambda x: np.percentile(x, 30),
    "percentiles": lambda x: np.percentile(x, [10, 50, 90], axis=1),
    "quantile": lambda x: np.quantile(x, 0.3, method="nearest"),
    "quantile array": lambda x: np.quantile(x, np.array([0.25, 0.5]), axis=0),
    "nanpercentile": lambda x: np.nanpercentile(x, 75, axis=0),
    "nanquantile": lambda x: np.nanquantile(x, 0.5), "bad q": lambda x: np.percentile(x, 300),
    "bad method": lambda x: np.quantile(x, 0.5, method="guess"),
    "histogram": lambda x: np.histogram(x), "histogram bins": lambda x: np.histogram(x, 4, (0, 2)),
    "histogram edges": lambda x: np.histogram(x, np.array([0, 1, 4]))[0],
    "histogram density": lambda x: np.histogram(x, bins=3, range=(-2, 3), density=True),
    "histogram range": lambda x: np.histogram(x, 4, (x.min(), x.max() + 1)),
    "histogram2d": lambda x: np.histogram2d(x[0], x[1], bins=3, range=[[-2, 3], [-2, 3]])[0] + 1,
    "cov": lambda x: np.cov(x), "corrcoef": lambda x: np.corrcoef(x[0], x[1] + [1, 0, 2, 0]),
    "interp": lambda x: np.interp(x, [0.0, 1.0, 2.0], [3.0, 5.0, 4.0]),
    "interp traced": lambda x: np.interp(0.5, np.sort(x[0]), x[1]),
    "interp sides": lambda x: np.interp(x, [0, 1], [3, 4], left=-1, right=9),
    "convolve": lambda x: np.convolve(x[0], x[1][:2]),
    "convolve same": lambda x: np.convolve(x[0], [1, 2], "same"),
    "correlate": lambda x: np.correlate(x[0], x[1], "full"),
    "convolve bad": lambda x: np.convolve(x, x), "convolve empty": lambda x: np.convolve(x[0], []),
    "polyfit": lambda x: np.polyfit(np.arange(4.0), x[0], 1),
    "fftshift": lambda x: np.fft.fftshift(x), "ifftshift": lambda x: np.fft.ifftshift(x, axes=1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name: str, dtype: str) -> None:
    strict(STATISTICS[name], arr(dtype, 3, 4))


@pytest.mark.parametrize("name", ["median", "nanmedian", "percentile", "nanpercentile"])
def test_statistics_with_nan(name: str) -> None:
    strict(STATISTICS[name], np.where(arr("f8", 3, 4) > 1, np.nan, 0.5))


# ---------------------------------------------------------------------------------------- indices


def put(x: Any, i: Any, v: Any) -> None:
    x[i] = v


INDICES: dict[str, Callable[..., Any]] = {
    "take": lambda x, i: np.take(x, i), "take axis": lambda x, i: x.take(i, axis=1),
    "take clip": lambda x, i: np.take(x, i + 50, mode="clip"),
    "take wrap": lambda x, i: np.take(x, i - 50, 0, mode="wrap"),
    "take outside": lambda x, i: np.take(x, i + 50), "take number": lambda x, i: np.take(x, 3),
    "take list": lambda x, i: np.take(x, [[0, 1], [2, 3]]),
    "take_along_axis": lambda x, i: np.take_along_axis(x, np.argsort(x, 1, "stable"), 1),
    "choose": lambda x, i: np.choose(i % 2, [i, i * 10]),
    "read": lambda x, i: x[i], "read column": lambda x, i: x[:, i],
    "read list": lambda x, i: x[[0, 2, 0]], "read grid": lambda x, i: x[i[:, None], i % 2],
    "read pairs": lambda x, i: x[i, i], "read mixed": lambda x, i: x[i, ::2],
    "read newaxis": lambda x, i: x[None, i], "read row": lambda x, i: x[1, i],
    "read static mask": lambda x, i: x[[True, False, True]], "read nothing": lambda x, i: x[[]],
    "read outside": lambda x, i: x[i + 50], "read negative": lambda x, i: x[i - 3],
    "read float": lambda x, i: x[i * 1.0], "read many": lambda x, i: x[i, i, i],
    "read misfit": lambda x, i: x[i, i[:2]], "read view": lambda x, i: x.T[1:, ::-1][i % 2],
    "read fused": lambda x, i: (x * 2)[i] + x[i],
    "write": lambda x, i: put(x, i, 1), "write column": lambda x, i: put(x, (slice(None), i), 2.5),
    "write rows": lambda x, i: put(x, i, x[::-1][:1]), "write grid": lambda x, i: put(
        x, (i[:, None], i % 2), i[:, None]),
    "write outside": lambda x, i: put(x, i + 9, 1), "write misfit": lambda x, i: put(x, i, x.T),
    "write view": lambda x, i: put(x.T[1:], i % 2, 7), "write list": lambda x, i: put(x, [0, 1], 4),
    "write row mask": lambda x, i: put(x, i > 1, 5), "write mask values": lambda x, i: put(
        x, x > 0, x[:1, :1].ravel()),
    "write mask misfit": lambda x, i: put(x, x == x, x[0]),
    "write wrong mask": lambda x, i: put(x, i[:2] > 0, 1),
    "add to": lambda x, i: put(x, i[:1], x[i[:1]] + 1),
    "add.at": lambda x, i: np.add.at(x, i, 1), "subtract.at": lambda x, i: np.subtract.at(
        x, (i, i % 2), x[i, i % 2]), "maximum.at": lambda x, i: np.maximum.at(x[0], i, 3),
    "add.at outside": lambda x, i: np.add.at(x, i + 9, 1),
    "put": lambda x, i: x.put(i, [7, 8]), "np.put": lambda x, i: np.put(x, i, 3),
    "putmask": lambda x, i: np.putmask(x, x > 1, x + 1), "place": lambda x, i: np.place(
        x, x > 1, [1, 2]), "put_along_axis": lambda x, i: np.put_along_axis(x, i[:, None], 9, 1),
    "returned": lambda x, i: (put(x, i, 1), x[i] + 1)[1],
}


@pytest.mark.parametrize("dtype", (*DTYPES, "?"))
@pytest.mark.parametrize("name", INDICES)
def test_indices(name: str, dtype: str) -> None:
    strict(INDICES[name], arr(dtype, 3, 4), np.array([2, 0, 2]))
    strict(INDICES[name], np.asfortranarray(arr(dtype, 3, 4)), np.array([1, 1, 0], np.int32))


ELEMENTS: dict[str, Callable[..., Any]] = {
    "read": lambda x, i: x[i, 1], "read both": lambda x, i: x[i, i] + 1,
    "write": lambda x, i: put(x, (i, 2), 7), "write row": lambda x, i: put(x, i, x[0] * 2),
    "write slice": lambda x, i: put(x, (slice(0, 2), i), 3), "largest": lambda x, i: put(
        x, (np.argmax(x[:, 0]), i), 0), "of a view": lambda x, i: x.ravel()[i + 3],
    "outside": lambda x, i: x[i + 9, 0], "write outside": lambda x, i: put(x, i - 9, 0),
}


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("i", [np.int64(2), np.uint8(0), np.array(1)])
def test_elements_at_run_time(name: str, i: Any) -> None:
    strict(ELEMENTS[name], arr("f8", 3, 4), i)
    strict(ELEMENTS[name], arr("i4", 3, 4), i)


def test_an_index_error_names_the_line() -> None:
    def f(x, i):
        return x[i] + 1

    with pytest.raises(IndexError, match="out of bounds") as raised:
        fusec.jit(f)(np.zeros(3), np.array([7]))
    assert "return x[i] + 1" in "".join(raised.value.__notes__)


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("f", [
    np.unique, np.nonzero, np.flatnonzero, np.argwhere, np.bincount,
    lambda x: np.extract(x > 0, x), lambda x: np.union1d(x, x), lambda x: x.nonzero(),
    lambda x: np.compress(x > 0, x), lambda x: np.intersect1d(x, x),
])
def test_results_of_unknown_size(f: Callable[..., Any]) -> None:
    check(lambda x: f(x), np.arange(3))
    check(lambda x: f(x), np.array([2, 0, 2, 1, 0]))
    check(lambda x: f(x), np.array([], np.int64))


@pytest.mark.parametrize("f", [
    np.linalg.eigvals, np.linalg.eig, np.roots,
])
def test_results_that_may_be_complex_are_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(fusec.UnsupportedError, match="whether its result is complex"):
        fusec.jit(lambda x: f(x))(np.eye(4))


@pytest.mark.parametrize("f", [
    lambda x: np.einsum("ii->i", x), lambda x: np.einsum("iij->ji", x.reshape(2, 2, -1)),
])
def test_views_are_read_and_not_returned(f: Callable[..., Any]) -> None:
    check(lambda x: f(x) + 1, np.arange(16.0).reshape(4, 4))
    with pytest.raises(fusec.UnsupportedError, match=r"returning a view .*that np\.einsum gives"):
        fusec.jit(f)(np.eye(4))


def test_views_of_what_nobody_else_sees_are_returned_where_they_have_no_gaps() -> None:
    check(lambda x: np.einsum("ij->ji", x * 2), np.arange(16.0).reshape(4, 4))
    with pytest.raises(fusec.UnsupportedError, match="a view with gaps"):
        fusec.jit(lambda x: np.einsum("ii->i", x * 2))(np.eye(4))


def test_sizes_of_numpys_integers() -> None:
    check(lambda x, n: np.histogram(x, n), np.arange(4.0), np.int64(3))


# --------------------------------------------------------------------------------------- the rows


def test_every_row_is_reached() -> None:
    reached = {call.function for call in LIBRARY.values()} & set(FUNCTIONS)
    inner = {"Numpy", "Method", "CallInto", "SortInPlace", "PartitionInPlace", "GetItem",
             "SetItem", "Ufunc", "UfuncAt", "Scipy", "Cofactors"}
    assert len(reached) + len(inner) == len(LIBRARY)
    for op in LIBRARY:
        row = get(op)
        assert row.kind == "extern" and row.numpy and callable(row.reference)


def test_forms_read_back() -> None:
    form = ("tuple", ("operand", 0), ("slice", None, 3, None), ("ellipsis",), ("list", 1, 2.5))
    assert decode(form, ["x"]) == ("x", slice(None, 3), Ellipsis, [1, 2.5])


def test_several_results_feed_kernels() -> None:
    def f(x):
        u, s, vt = np.linalg.svd(x, full_matrices=False)
        return (u * s) @ vt * 2 + 1, s.max(), u

    function = strict(f, RNG.normal(size=(5, 3)))
    names = [e.name for e in function.concrete(np.zeros((5, 3))).externs]
    assert names.count("np.linalg.svd") == 1


def test_singular_values_are_summed() -> None:
    """In an order of fusec's own, as all sums."""
    x = RNG.normal(size=(5, 3))
    check(lambda x: np.linalg.svd(x, full_matrices=False)[1].sum(), x, tolerance=NEAR)


def test_graphs_with_calls_print_and_parse() -> None:
    from fusec.ir.text.parse import parse_graph

    x = np.ones((3, 3))
    graph = fusec.jit(lambda x: np.linalg.eigh(x)[1][[0, 1]]).concrete(x).graph
    assert str(parse_graph(str(graph))) == str(graph)


def test_ufuncs_without_a_row() -> None:
    x, y = np.array([12, 18, 7]), np.array([8, 27, 21])
    strict(lambda x, y: np.gcd(x, y), x, y)
    strict(lambda x, y: np.ldexp(x * 0.5, y % 4), x, y)
    strict(lambda x: np.frexp(x), np.array([0.5, 3.0, -8.0]))
    strict(lambda x: np.nextafter(x, 2), np.array([0.5, 3.0], np.float32))


def test_the_only_result_of_a_call_is_not_copied() -> None:
    """`np.nonzero` gives a view of an array that it made, which nothing else shows."""
    x = RNG.uniform(size=1000) > 0.5
    compiled = fusec.jit(lambda x: np.flatnonzero(x))
    first, second = compiled(x), compiled(x)
    np.testing.assert_array_equal(first, np.flatnonzero(x))
    assert not np.may_share_memory(first, second) and type(first.base) is np.ndarray
    first[...] = 0
    np.testing.assert_array_equal(second, np.flatnonzero(x))
    shown = fusec.jit(lambda x: np.linalg.svd(x, full_matrices=False)[1::-1])(np.eye(3))
    np.testing.assert_array_equal(shown[0], np.ones(3))


@pytest.mark.parametrize("f", [
    np.argsort, lambda a: np.argpartition(a, 0), np.linalg.matrix_rank, np.nanargmax,
    np.histogram, lambda a: np.take(a, 0), lambda a: np.polymul(a, [1.0, 2.0]), np.sort])
def test_numbers_in_place_of_arrays(f: Callable[..., Any]) -> None:
    """A run-time number as the function's first argument: NumPy's answer, or its error."""
    compiled, x = fusec.jit(lambda x: f(x.sum())), np.array([2.0, 0.5])
    try:
        expected = f(np.float64(2.5))
    except ValueError as error:
        with pytest.raises(type(error), match=str(error)):
            compiled(x)
    else:
        for found, wanted in zip(leaves_of(compiled(x)), leaves_of(expected), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
            assert np.shape(found) == np.shape(wanted)
