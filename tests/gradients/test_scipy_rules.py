"""Rules of SciPy's functions, judged by differences of programs and each direction by the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_harness import judge
from scipy import fft, linalg, signal
from scipy.spatial import distance

import fusec
from fusec.errors import UnsupportedError

RNG = np.random.default_rng(17)


def _complex(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


A, B, MORE = RNG.standard_normal((4, 4)), RNG.standard_normal(4), RNG.standard_normal((4, 2))
BANDS = RNG.standard_normal((4, 4)) + np.array([[1.0], [8.0], [9.0], [1.0]])
T = A + 4 * np.eye(4)
S = A @ A.T + 3 * np.eye(4)
Z, Y = _complex(3, 3) + 3 * np.eye(3), _complex(3, 2)
H = Z @ Z.conj().T
TALL = RNG.standard_normal((5, 3))
LINE, SHORT = RNG.standard_normal(8), RNG.standard_normal(3)
PICTURE, STENCIL = RNG.standard_normal((5, 6)), RNG.standard_normal((3, 2))
MODES = ("full", "same", "valid")


def _solve_triangular(a: Any, b: Any, c: Any) -> Any:
    return [linalg.solve_triangular(a, x, trans=trans, lower=low, unit_diagonal=unit)
            for x in (b, c) for trans, low, unit in (
                (0, False, False), (1, True, False), ("N", True, True))]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (lambda a, b, s: (
        linalg.solve(a, b), linalg.solve(s, b, assume_a="pos"), linalg.solve(
            s, b, assume_a="sym", lower=True)), (T, B, S)),
    "solve_banded": (lambda d, e, b, c: (
        linalg.solve_banded((1, 1), d, b), linalg.solve_banded((0, 2), d, c),
        linalg.solve_banded((2, 1), e, c)), (
        BANDS[:3], BANDS, B, MORE)),
    "solve_banded of complex diagonals": (lambda d, b: linalg.solve_banded((1, 1), d, b), (
        BANDS[:3] + 1j * BANDS[:3][::-1], RNG.standard_normal(4))),
    "inv, det": (lambda a: (linalg.inv(a), linalg.det(a)), (T,)),
    "solve_triangular": (_solve_triangular, (T, B, MORE)),
    "solve complex triangular systems": (lambda a, b: [
        linalg.solve_triangular(a, b, trans=trans, lower=True) for trans in (0, 1, 2)], (Z, Y)),
    "cholesky": (lambda s: (linalg.cholesky(s), linalg.cholesky(s, lower=True)), (S,)),
    "cho_solve": (lambda s, b: (
        linalg.cho_solve(linalg.cho_factor(s), b), linalg.cho_solve(
            linalg.cho_factor(s, lower=True), b)), (S, B)),
    "cho_solve of complex matrices": (lambda h, b: linalg.cho_solve(
        linalg.cho_factor(h), b), (H, Y)),
    "lu": (lambda a: linalg.lu(a)[1:], (A,)),
    "lu_solve": (lambda a, b, c: (linalg.lu_solve(linalg.lu_factor(a), b), linalg.lu_solve(
        linalg.lu_factor(a), c)), (A, B, MORE)),
    "lu_solve of complex matrices": (lambda a, b: (linalg.lu_solve(
        linalg.lu_factor(a), b), linalg.lu_solve(linalg.lu_factor(a), b, trans=2)), (Z, Y)),
    "lu_solve of transposes": (lambda a, b, c: (linalg.lu_solve(
        linalg.lu_factor(a), b, trans=1), linalg.lu_solve(linalg.lu_factor(a), c, 2)),
        (A, B, MORE)),
    "qr": (lambda a, t: (linalg.qr(a), linalg.qr(t, mode="economic")), (A, TALL)),
    "eigh": (lambda s: (linalg.eigh(s), linalg.eigh(s, lower=False), linalg.eigvalsh(
        s), linalg.eigh(s, eigvals_only=True)), (S,)),
    "svd": (lambda a, t: (linalg.svd(a), linalg.svd(t, full_matrices=False), linalg.svdvals(t)),
            (A, TALL)),
    "pinv, lstsq": (lambda t, b: (linalg.pinv(t), linalg.lstsq(t, b)[0]),
                    (TALL, RNG.standard_normal(5))),
    "norm": (lambda a: (linalg.norm(a), linalg.norm(a, 2), linalg.norm(a, "nuc"), linalg.norm(
        a, axis=0)), (A,)),
    "sylvester": (lambda a, b, q: linalg.solve_sylvester(a, b, q),
                  (T, Z.real + 3 * np.eye(3), RNG.standard_normal((4, 3)))),
    "lyapunov": (lambda a, q: (
        linalg.solve_continuous_lyapunov(a, q), linalg.solve_discrete_lyapunov(a * 0.1, q)),
                 (T, A)),
    "matrix functions": (lambda a, s: (
        linalg.expm(a * 0.5), linalg.sqrtm(s), linalg.sinm(a * 0.3), linalg.coshm(a * 0.3)),
        (A, S)),
    "expm of a complex matrix": (lambda z: linalg.expm(z * 0.3), (Z,)),
    "convolutions": (lambda x, y: [f(a, b, mode=mode) for f in (
        signal.convolve, signal.fftconvolve, signal.correlate) for mode in MODES for a, b in (
        (x, y), (x[1:], y))], (LINE, SHORT)),
    "convolutions of nothing": (lambda x, y: (
        signal.fftconvolve(x, y), signal.fftconvolve(x, x), signal.convolve2d(
            x[:, None], y[:, None])), (LINE[:0], SHORT)),
    "convolutions of planes": (lambda x, y: [f(x, y, mode=mode) for f in (
        signal.convolve2d, signal.convolve, signal.correlate2d, signal.correlate)
        for mode in MODES], (PICTURE, STENCIL)),
    "correlate complex lines": (lambda x, y: [signal.correlate(
        x, y, mode=mode) for mode in MODES], (_complex(7), _complex(3))),
    "transforms": (lambda x, p: (
        fft.fft(x), fft.rfft(p, axis=0), fft.irfft(x + 0j), fft.fft2(p), fft.rfftn(p), fft.hfft(
            x + 0j)), (LINE, PICTURE)),
    "cosine transforms": (lambda x, p: (
        fft.dct(x, norm="ortho"), fft.idct(p, 3, norm="ortho", axis=0), fft.dst(
            x, 4, norm="ortho"), fft.dctn(p, norm="ortho")), (LINE, PICTURE)),
    "lfilter": (lambda x: signal.lfilter([1.0, 0.3], [1.0, -0.5], x), (PICTURE,)),
    "distances": (lambda x, y: (distance.cdist(x, y), distance.cdist(x, y, "sqeuclidean")),
                  (RNG.standard_normal((4, 3)), RNG.standard_normal((5, 3)))),
    "block_diag": (lambda a, t: linalg.block_diag(a, t), (A, TALL)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_are_derivatives(name: str) -> None:
    program, arguments = PROGRAMS[name]
    judge(program, *arguments, step=2.0**-9, consistent=1e-11)


def test_what_has_no_rule_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="fusec has no rule for scipy"):
        fusec.grad(lambda a: linalg.hessenberg(a).sum())(A)
