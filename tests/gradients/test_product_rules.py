"""Rules of einsum, dot, convolutions and Fourier transforms, judged by differences of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_harness import judge

import fusec

RNG = np.random.default_rng(3)


def _complex(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


A, B = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 5))
CUBE = RNG.standard_normal((2, 4, 3))
SQUARE, LINE, SHORT = RNG.standard_normal((4, 4)), RNG.standard_normal(8), RNG.standard_normal(3)
Z, ZLINE, ZSHORT = _complex(3, 4), _complex(7), _complex(3)
MODES = ("full", "same", "valid")


def _both(function: Callable[..., Any], *modes: str) -> Callable[..., Any]:
    """Longer by shorter, shorter by longer, and lines of even and odd lengths, in each mode."""
    def program(x: Any, y: Any) -> Any:
        return [function(a, b, mode=mode) for mode in modes for a, b in (
            (x, y), (y, x), (x[1:], y), (y[:2], x), (x, x))]

    return program


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "einsum": (lambda a, b, c: (
        np.einsum("ij,jk->ik", a, b), np.einsum("ij,jk", a, b), np.einsum("bij,ij->b", c, a),
        np.einsum("ij->", a), np.einsum("ij,ij,ij->j", a, a, a), np.einsum("bij->jb", c) * 2,
        np.einsum("i,j->ij", a[0], b[0])), (A, B, CUBE)),
    "einsum with ellipsis": (lambda a, c: (
        np.einsum("...ij,...ij->...", c, a), np.einsum("...j,j", c, a[0]),
        np.einsum(a, [0, 1], c, [2, 0, 1], [2, 1]), np.einsum("i...->...", a)), (A, CUBE)),
    "einsum along diagonals": (lambda s, a: (
        np.einsum("ii->i", s) * 1, np.einsum("ii", s), np.einsum("ii,ij->j", s, a),
        np.einsum("ii,i->i", s, a[:, 0])), (SQUARE, A)),
    "einsum of axes of length 1": (
        lambda c: np.einsum("bij,bij->ij", c[:1, :, :1], c), (CUBE,)),
    "einsum of complex and real numbers": (lambda z, a: np.einsum("ij,kj->ik", z, a), (
        Z, RNG.standard_normal((2, 4)))),
    "dot": (lambda a, c, b: (np.dot(c, b), np.dot(a, c.transpose(0, 2, 1)), np.dot(c, b[:, 0])),
            (A, CUBE, B)),
    "convolve": (_both(np.convolve, *MODES), (LINE, SHORT)),
    "correlate": (_both(np.correlate, *MODES), (LINE, SHORT)),
    "convolve complex lines": (_both(np.convolve, *MODES), (ZLINE, ZSHORT)),
    "correlate complex lines": (_both(np.correlate, *MODES), (ZLINE, ZSHORT)),
    "convolve complex and real lines": (_both(np.convolve, *MODES), (ZLINE, SHORT)),
    "fft": (lambda x, z: (np.fft.fft(x), np.fft.ifft(z), np.fft.fft(z, 6, 0, "ortho"), np.fft.ifft(
        z, 2, norm="forward")), (LINE, Z)),
    "rfft": (lambda x, c: (np.fft.rfft(x), np.fft.rfft(x[1:]), np.fft.rfft(c, 6, 1), np.fft.rfft(
        c, 2, 1, norm="ortho"), np.fft.rfft(c, norm="forward")), (LINE, CUBE)),
    "irfft": (lambda z: (np.fft.irfft(z), np.fft.irfft(z, 5), np.fft.irfft(z, 9, 0), np.fft.irfft(
        z, norm="ortho"), np.fft.irfft(z, 4, norm="forward")), (Z,)),
    "hfft": (lambda z, x: (np.fft.hfft(z), np.fft.hfft(z, 5, norm="ortho"), np.fft.ihfft(
        x), np.fft.ihfft(x, 5, norm="forward")), (Z, LINE)),
    "fft2": (lambda z, c: (np.fft.fft2(z), np.fft.ifft2(c, s=(6, 2), axes=(0, 1)), np.fft.rfft2(
        c), np.fft.irfft2(z, norm="ortho")), (Z, CUBE)),
    "fftn": (lambda z, c: (np.fft.fftn(c), np.fft.ifftn(z, norm="forward"), np.fft.rfftn(
        c, s=(3, 5), axes=(2, 1)), np.fft.irfftn(z, s=(4, 5), axes=(0, 1)), np.fft.irfftn(
        c + 0j)), (Z, CUBE)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_are_derivatives(name: str) -> None:
    program, arguments = PROGRAMS[name]
    judge(program, *arguments)


def test_products_of_a_column_and_a_row_are_left_to_kernels() -> None:
    x, w = np.arange(12.0).reshape(4, 3), np.arange(3.0) - 1
    gradient = fusec.grad(lambda x, w: np.tanh(x @ w).sum())
    np.testing.assert_allclose(
        gradient(x, w), np.outer(1 - np.tanh(x @ w) ** 2, w), rtol=1e-13)
    nodes = gradient.concrete(x, w).graph.nodes
    assert [node.op for node in nodes].count("MatMul") == 1
