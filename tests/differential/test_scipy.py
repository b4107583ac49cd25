"""SciPy's functions on traced values: SciPy's own results, kinds, layouts and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check, run
from scipy import fft, fftpack, integrate, linalg, ndimage, optimize, signal, special
from scipy.linalg import blas, lapack
from scipy.spatial import distance
from tolerance import Ulp

import fusec
from fusec.ir.text.parse import parse_graph
from fusec.trace.scipy import functions as scipy_functions

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
S = A @ A.T
B = RNG.normal(size=(4, 2))
V = RNG.normal(size=4)
BANDS = np.array([[0, 1, 2, 1], [9, 8, 9, 8], [1, 2, 1, 0.0]])
UPPER = np.array([[0, 1, 2, 1], [9, 8, 9, 8.0]])
X = RNG.normal(size=(6, 7))

SOLVERS: dict[str, Callable[..., Any]] = {
    "solve": lambda a, b, v: linalg.solve(a, b),
    "solve symmetric": lambda a, b, v: linalg.solve(a @ a.T, v, assume_a="pos"),
    "solve overwriting": lambda a, b, v: linalg.solve(a, b, overwrite_a=True, overwrite_b=True),
    "triangular": lambda a, b, v: linalg.solve_triangular(a, b, lower=True, trans=1),
    "cholesky": lambda a, b, v: linalg.cho_solve(linalg.cho_factor(a @ a.T), b) * 2,
    "cholesky lower": lambda a, b, v: linalg.cho_factor(a @ a.T, True),
    "lu": lambda a, b, v: linalg.lu_solve(linalg.lu_factor(a), b, trans=1),
    "plu": lambda a, b, v: linalg.lu(a),
    "permuted": lambda a, b, v: linalg.lu(a, permute_l=True),
    "least squares": lambda a, b, v: linalg.lstsq(a[:, :2], v)[0],
    "toeplitz": lambda a, b, v: linalg.solve_toeplitz((v + 9, v), b),
    "sylvester": lambda a, b, v: linalg.solve_sylvester(a, a.T, a),
}
DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "qr": lambda a, b, v: linalg.qr(a),
    "qr economic": lambda a, b, v: linalg.qr(b, mode="economic"),
    "svd": lambda a, b, v: linalg.svd(b, full_matrices=False),
    "svdvals": lambda a, b, v: linalg.svdvals(a).sum(),
    "eigh": lambda a, b, v: linalg.eigh(a + a.T),
    "eigvalsh": lambda a, b, v: linalg.eigvalsh(a @ a.T)[::-1],
    "tridiagonal": lambda a, b, v: linalg.eigh_tridiagonal(v, v[1:]),
    "schur": lambda a, b, v: linalg.schur(a + a.T),
    "hessenberg": lambda a, b, v: linalg.hessenberg(a),
    "polar": lambda a, b, v: linalg.polar(a),
    "ldl": lambda a, b, v: linalg.ldl(a + a.T),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "inv": lambda a, b, v: linalg.inv(a) + 1,
    "det": lambda a, b, v: linalg.det(a) * 2,
    "expm": lambda a, b, v: linalg.expm(a / 4),
    "pinv": lambda a, b, v: linalg.pinv(b),
    "norms": lambda a, b, v: (linalg.norm(a), linalg.norm(a, 1), linalg.norm(v, np.inf)),
    "toeplitz": lambda a, b, v: linalg.toeplitz(v, v + 1),
    "hankel": lambda a, b, v: linalg.hankel(v),
    "block_diag": lambda a, b, v: linalg.block_diag(a, b, 1.5),
    "circulant": lambda a, b, v: linalg.circulant(v),
    "companion": lambda a, b, v: linalg.companion(v),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name: str, dtype: str) -> None:
    check(SOLVERS[name], A.astype(dtype), B.astype(dtype), V.astype(dtype), tolerance=Ulp(64, 8))


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_decompositions(name: str) -> None:
    check(DECOMPOSITIONS[name], A, B, V, tolerance=Ulp(64, 8))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrix_functions(name: str) -> None:
    check(FUNCTIONS[name], A, B, V, tolerance=Ulp(64, 8))
    check(FUNCTIONS[name], np.asfortranarray(A), B[::-1], V[::-1], tolerance=Ulp(64, 8))


def test_banded_solvers() -> None:
    check(lambda ab, v: linalg.solve_banded((1, 1), ab, v), BANDS, V)
    check(lambda ab, b: linalg.solve_banded((1, 1), ab * 2, b), BANDS, B)
    check(lambda ab, v: linalg.solveh_banded(ab, v), UPPER, V)
    check(lambda ab, v: linalg.solveh_banded(ab[::-1], v, lower=True), UPPER, V)
    check(lambda ab: linalg.cholesky_banded(ab), UPPER)


def test_a_time_step_of_tridiagonal_systems() -> None:
    """The implicit step of a diffusion equation, in a loop."""
    def step(u: Any, ab: Any) -> Any:
        for _ in range(3):
            u = linalg.solve_banded((1, 1), ab, u + 0.1 * np.sin(u))
        return u

    check(step, V, BANDS, tolerance=Ulp(64, 8))


def test_lapack_and_blas() -> None:
    def f(ab: Any, v: Any, a: Any) -> Any:
        *_, x, info = lapack.dgtsv(ab[2, :-1], ab[1], ab[0, 1:], v)
        lu, piv, code = lapack.dgetrf(a)
        return x * 2, info, lapack.dgetrs(lu, piv, v), code, blas.ddot(v, v), blas.dgemm(1.0, a, a)

    check(f, BANDS, V, A, tolerance=Ulp(64, 8))
    check(lambda d, e, b: lapack.sptsv(d, e, b)[2], np.full(4, 4, "f4"), np.ones(3, "f4"),
          np.ones(4, "f4"), tolerance=Ulp(64, 8))


IMAGES: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda x: ndimage.gaussian_filter(x, 1.5) - x,
    "uniform": lambda x: ndimage.uniform_filter(x, size=3, mode="wrap"),
    "sobel": lambda x: np.hypot(ndimage.sobel(x, 0), ndimage.sobel(x, 1)),
    "convolve": lambda x: ndimage.convolve(x, np.ones((3, 3)), mode="constant", cval=1.0),
    "median": lambda x: ndimage.median_filter(x, 3),
    "label": lambda x: ndimage.label(x > 0),
    "zoom": lambda x: ndimage.zoom(x, 2, order=1),
    "map": lambda x: ndimage.map_coordinates(x, [[0.5, 2.0], [1.5, 3.0]], order=1),
    "dct": lambda x: fft.idct(fft.dct(x, norm="ortho") * 0.5, norm="ortho"),
    "lfilter": lambda x: signal.lfilter([1.0, 0.5], [1.0, -0.2], x, axis=0),
    "sosfilt": lambda x: signal.sosfilt(signal.butter(2, 0.3, output="sos"), x),
    "sosfilt of an operand": lambda x: signal.sosfilt(np.abs(x[:1, :6]) * 0 + 1, x),
    "savgol": lambda x: signal.savgol_filter(x, 5, 2),
    "fftconvolve": lambda x: signal.fftconvolve(x, x[:3, :3], mode="same"),
    "simpson": lambda x: integrate.simpson(x, dx=0.1),
    "cdist": lambda x: distance.cdist(x, x[::2]).argmin(1),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images_and_signals(name: str) -> None:
    check(IMAGES[name], X, tolerance=Ulp(64, 8, scale=1.0))
    check(IMAGES[name], X.T.copy().T, tolerance=Ulp(64, 8, scale=1.0))


def test_floats_may_vary() -> None:
    f = check(lambda x, sigma: ndimage.gaussian_filter(x, sigma), X, 1.25)
    check(f.python_function, X, 0.75, jitted=f)
    assert f.trace_count == 1


LOG_SUMS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: special.logsumexp(x),
    "rows": lambda x: special.logsumexp(x, axis=1),
    "kept": lambda x: special.logsumexp(x, axis=(0, 1), keepdims=True),
    "weights": lambda x: special.logsumexp(x, axis=0, b=np.arange(7.0)),
    "signs": lambda x: special.logsumexp(x, axis=0, b=np.arange(7.0) - 3, return_sign=True),
    "softmax": lambda x: special.softmax(x, axis=0),
    "softmax of all": lambda x: special.softmax(x),
    "log_softmax": lambda x: special.log_softmax(x, axis=-1),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("name", LOG_SUMS)
def test_log_sums(name: str, dtype: str) -> None:
    x = (X * 5).astype(dtype)
    check(LOG_SUMS[name], x, tolerance=Ulp(64, 16, scale=1.0))


def test_log_sums_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [1.0, np.inf], [-np.inf, 3.0], [np.nan, 1.0], [800, 801]])
    check(lambda x: (special.logsumexp(x, axis=1), special.log_softmax(x[4:], axis=1)), x,
          tolerance=Ulp(16, 16))


def test_a_softmax_over_rows_is_one_kernel() -> None:
    concrete = fusec.jit(lambda x: special.softmax(x, axis=1)).concrete(X)
    assert len(concrete.kernels) == 1
    assert not concrete.externs


def test_errors_are_scipys() -> None:
    check(lambda a, b: linalg.solve(a, b), A, np.ones(5))
    check(lambda a: linalg.solve(a, a[0]), np.zeros((3, 3)))  # singular: known when it runs
    check(lambda a: linalg.cholesky(a), -np.eye(3))
    check(lambda a: linalg.inv(a), np.full((3, 3), np.nan))


def test_targets_are_refused() -> None:
    def f(x: Any) -> Any:
        out = np.zeros(x.shape)
        ndimage.gaussian_filter(x, 1.0, output=out)
        return out

    assert isinstance(run(fusec.jit(f), (X,)).error, fusec.UnsupportedError)


def test_graphs_print_and_parse() -> None:
    graph = fusec.jit(lambda a, v: linalg.solve(a, v) + 1).concrete(A, V).graph
    assert str(parse_graph(str(graph))) == str(graph)


def test_every_name_is_scipys() -> None:
    modules = {"linalg": linalg, "linalg.lapack": lapack, "linalg.blas": blas, "ndimage": ndimage,
               "signal": signal, "fft": fft, "fftpack": fftpack,
               "integrate": integrate, "spatial.distance": distance}
    missing = [f"{m}.{n}" for m, names in scipy_functions.LIBRARY_CALLS.items()
               for n in names.split() if not callable(getattr(modules[m], n, None))]
    assert not missing


FFTPACK: dict[str, Callable[[Any, Any], Any]] = {
    "rfft": lambda m, x: m.rfft(x), "irfft": lambda m, x: m.irfft(x),
    "rfft of rows": lambda m, x: m.rfft(x.reshape(2, -1), n=6, axis=1, overwrite_x=True),
    "fft": lambda m, x: m.ifft(m.fft(x, 12)), "fft2": lambda m, x: m.fft2(x.reshape(2, 4)),
    "dct": lambda m, x: (m.dct(x, norm="ortho"), m.dct(x, 3), m.idct(x), m.dst(x, 1), m.idst(x)),
    "diff": lambda m, x: (m.diff(x), m.hilbert(x), m.shift(x, 0.5)),
    "float32": lambda m, x: m.rfft(x.astype(np.float32)),
}


@pytest.mark.parametrize("name", FFTPACK)
def test_fftpack(name: str) -> None:
    """As SciPy's own, in the packed layout of real transforms too; nothing is overwritten."""
    form, x = FFTPACK[name], np.arange(8.0) ** 1.5
    kept = x.copy()
    got, want = fusec.jit(lambda u: form(fftpack, u))(x), form(fftpack, kept.copy())
    for value, wanted in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)),
                             strict=True):
        assert value.dtype == wanted.dtype
        np.testing.assert_array_equal(value, wanted)
    np.testing.assert_array_equal(x, kept)


ROOTS: dict[str, Callable[[Any], Any]] = {
    "bisect": lambda x: optimize.bisect(lambda t: t * t - x[0], 0.0, x[1]),
    "brentq": lambda x: optimize.brentq(lambda t: t * t - x[0], 0.0, 9.0),
    "fsolve": lambda x: optimize.fsolve(lambda t: t * t - x[0], 1.0),
}


@pytest.mark.parametrize("name", ROOTS)
def test_callbacks_of_c_are_refused_by_name(name: str) -> None:
    """SciPy's C code says something of its own where a traced value does not become a float."""
    root, x = ROOTS[name], np.array([2.0, 9.0])
    with pytest.raises(fusec.ConcreteValueError, match=f"optimize.{name} needs") as refused:
        fusec.jit(root)(x)
    assert f"call scipy.optimize.{name} before or after" in str(refused.value)
    with pytest.warns(fusec.FallbackWarning):
        np.testing.assert_array_equal(fusec.jit(root, fallback="eager")(x), root(x))


def test_what_scipy_itself_refuses_is_told_in_its_words() -> None:
    with pytest.raises(ValueError, match="must have different signs"):
        fusec.jit(lambda x: x * optimize.brentq(lambda t: t * t + 1, 0.0, 1.0))(np.ones(2))
