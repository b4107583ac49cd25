"""Rules of linear algebra, judged by differences of programs and each direction by the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_harness import judge

import fusec

RNG = np.random.default_rng(8)


def _complex(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


A, STACK, B = RNG.standard_normal((4, 4)), RNG.standard_normal((2, 3, 3)), RNG.standard_normal(4)
TALL, WIDE = RNG.standard_normal((5, 3)), RNG.standard_normal((3, 5))
TALL += 0.1 * np.sign(TALL)  # far from the corners of norms
Z, Y, TALL_Z = _complex(3, 3), _complex(3, 2), _complex(4, 2)
S = A @ A.T + 2 * np.eye(4)
H = Z @ Z.conj().T + np.eye(3)
DISTINCT = np.array([[1.5, -3.0, 0.5], [2.5, 1.0, -4.0], [0.75, -5.0, 6.0]])
T4 = RNG.standard_normal((2, 3, 6))


def _gauged(v: Any) -> Any:
    """Complex vectors by functions that do not depend on their multiples of size 1."""
    return np.abs(v) ** 2


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "inv": (lambda a, s: (np.linalg.inv(a), np.linalg.inv(s)), (A, STACK)),
    "inv of a complex matrix": (lambda a: np.linalg.inv(a), (Z,)),
    "solve": (lambda a, b, s: (np.linalg.solve(a, b), np.linalg.solve(a, a.T), np.linalg.solve(
        s, s[0])), (A, B, STACK)),
    "solve complex systems": (lambda a, b: (np.linalg.solve(a, b), np.linalg.solve(
        a, b.real)), (Z, Y)),
    "det": (lambda a, s: (np.linalg.det(a), np.linalg.det(s)), (A, STACK)),
    "det of a complex matrix": (lambda a: np.linalg.det(a), (Z,)),
    "slogdet": (lambda a, s: (np.linalg.slogdet(a), np.linalg.slogdet(s)), (A, STACK)),
    "slogdet of a complex matrix": (lambda a: np.linalg.slogdet(a), (Z,)),
    "cholesky": (lambda a: (np.linalg.cholesky(a), np.linalg.cholesky(a, upper=True)), (S,)),
    "cholesky of a complex matrix": (lambda a: (np.linalg.cholesky(a), np.linalg.cholesky(
        a, upper=True)), (H,)),
    "qr": (lambda a, t, w: (np.linalg.qr(a), np.linalg.qr(t), np.linalg.qr(w), np.linalg.qr(
        t, mode="r")), (A, TALL, WIDE)),
    "qr of complex matrices": (lambda a, t: (np.linalg.qr(a), np.linalg.qr(t)), (Z, TALL_Z)),
    "eigh": (lambda a: (np.linalg.eigh(a), np.linalg.eigh(a, "U")), (S,)),
    "eigh of a complex matrix": (lambda a: (np.linalg.eigh(a)[0], _gauged(
        np.linalg.eigh(a)[1])), (H,)),
    "eigvalsh": (lambda a, z: (np.linalg.eigvalsh(a), np.linalg.eigvalsh(z, "U")), (S, H)),
    "svd": (lambda a, t, w: (np.linalg.svd(a), np.linalg.svd(t, full_matrices=False), np.linalg.svd(
        w, full_matrices=False)), (A, TALL, WIDE)),
    "svd of complex matrices": (lambda a, t: (_gauged(np.linalg.svd(a)[0]), np.linalg.svd(a)[
        1], _gauged(np.linalg.svd(t, full_matrices=False)[2])), (Z, TALL_Z)),
    "singular values": (lambda a, t, z: (np.linalg.svd(t)[1], np.linalg.svdvals(
        a), np.linalg.svd(z, compute_uv=False)), (A, TALL, TALL_Z)),
    "pinv": (lambda a, t, w, z: (np.linalg.pinv(a), np.linalg.pinv(t), np.linalg.pinv(
        w), np.linalg.pinv(z)), (A, TALL, WIDE, TALL_Z)),
    "lstsq": (lambda t, w, b, c: (np.linalg.lstsq(t, b)[0], np.linalg.lstsq(w, c)[0]),
              (TALL, WIDE, RNG.standard_normal(5), RNG.standard_normal((3, 2)))),
    "vector norms": (lambda b, t: (
        np.linalg.norm(b), np.linalg.norm(b, 3), np.linalg.norm(b, 1), np.linalg.norm(b, np.inf),
        np.linalg.norm(t, 2.5, axis=0, keepdims=True),
        np.linalg.norm(t, axis=1)), (B, TALL)),
    "matrix norms": (lambda a, t: (
        np.linalg.norm(a), np.linalg.norm(t, 1), np.linalg.norm(t, np.inf), np.linalg.norm(t, 2),
        np.linalg.norm(t, "nuc"),
        np.linalg.norm(t[None] * 2, "fro", axis=(2, 1))), (A, TALL)),
    "norms of complex matrices": (lambda z: (
        np.linalg.norm(z, 2), np.linalg.norm(z, 1), np.linalg.norm(z, 3, axis=0),
        np.linalg.norm(z, "nuc")), (TALL_Z,)),
    "cond": (lambda a, z: (np.linalg.cond(a), np.linalg.cond(z, 2)), (A, Z)),
    "tensors": (lambda t, b: (np.linalg.tensorinv(t, 2), np.linalg.tensorsolve(t, b)),
                (T4, RNG.standard_normal((2, 3)))),
    "smallest": (lambda a: (np.linalg.norm(a, -1), np.linalg.norm(a, -2), np.linalg.norm(
        a, -np.inf), np.linalg.norm(a, -np.inf, axis=1)), (DISTINCT,)),
    "power": (lambda a: (np.linalg.matrix_power(a, 3), np.linalg.multi_dot([a, a, a])), (A,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_are_derivatives(name: str) -> None:
    program, arguments = PROGRAMS[name]
    judge(program, *arguments, step=2.0**-9, consistent=1e-11 if "of" in name else 1e-12)


def _minors(a: np.ndarray) -> np.ndarray:
    """Cofactors by their definition."""
    rest = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(len(a))] for i in range(len(a))]
    signs = (-1.0) ** np.add.outer(np.arange(len(a)), np.arange(len(a)))
    return signs * np.linalg.det(np.array(rest))


NEARLY = A.copy()
NEARLY[3] = NEARLY[0] + 2 * NEARLY[1] + 1e-16
SINGULAR = {
    "by rounding": NEARLY, "of small integers": np.arange(9.0).reshape(3, 3),
    "zero": np.zeros((2, 2)), "of rank 1": np.outer([1.0, 2.0, -1.0], [3.0, 1.0, 2.0]),
    "complex": np.stack([Z[0], Z[1], Z[0]]), "single precision": np.float32([[1, 2], [2, 4]]),
    "regular": A,
}


@pytest.mark.parametrize("name", SINGULAR)
def test_determinants_of_singular_matrices_have_derivatives(name: str) -> None:
    a = SINGULAR[name]
    expected, t = _minors(a), np.cos(a.real) + 0.0 * a
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if a.itemsize == 4 else {"rtol": 1e-9, "atol": 1e-12}
    found = fusec.grad(lambda x: np.linalg.det(x).real)(a)
    assert found.dtype == a.dtype
    np.testing.assert_allclose(found, expected.conj(), **tolerance)
    along = fusec.jvp(np.linalg.det, (a,), (t,))[1]
    np.testing.assert_allclose(along, (expected * t).sum(), **tolerance)


def test_stacks_of_which_some_are_singular() -> None:
    stack = np.stack([A, NEARLY, np.zeros((4, 4)), 2 * A])
    found = fusec.grad(lambda s: (np.linalg.det(s) * np.arange(1.0, 5.0)).sum())(stack)
    expected = np.stack([(k + 1) * _minors(a) for k, a in enumerate(stack)])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
