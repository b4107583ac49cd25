"""Complex numbers: values, dtypes, kinds, strides and memory as NumPy's, fused and as calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check
from tolerance import EXACT, Tolerance

import fusec
from fusec.codegen.kernels.complex_pairs import rounds_once
from fusec.ops.exact_fma import exact_fma

RNG = np.random.default_rng(77)
DTYPES = ("c8", "c16")
PARTS = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]


class _Close(Tolerance):
    """Complex and real numbers within some ulp; infinities and NaN as NumPy's, part by part."""

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        limit = 2e-6 if want.dtype in (np.complex64, np.float32) else 1e-14
        scale = min(np.abs(want[np.isfinite(want)]).max(initial=0), 1e3)
        for g, w in ((got.real, want.real), (got.imag, want.imag)):
            np.testing.assert_allclose(g, w, rtol=limit, atol=limit * scale, err_msg=what)


CLOSE = _Close()


def arr(dtype: str, *shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def specials(dtype: str) -> np.ndarray:
    """Every pair of special parts."""
    values = [complex(a, b) for a in PARTS for b in PARTS]
    return np.array(values, dtype)


def part(z: np.ndarray) -> np.ndarray:
    return z.real.copy()


def replaced(z: Any) -> Any:
    y = z.copy()
    y.real[1:] = 7
    y.imag = 2.5
    return y, y.imag


def times(z: Any, w: Any) -> Any:
    y = z.copy()
    y *= w
    y[::2] /= w[::2]
    return y


EXACTLY: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda z, w: (z + w, z - w, -z, +z, z.conj(), np.conjugate(w)),
    "mul": lambda z, w: (z * w, z * z.conj(), w * z - 1),
    "square": lambda z, w: (np.square(z), z**2, z * z),
    "mul by one": lambda z, w: (z * w[0, 0], z[1, 1] * w, np.array(2 - 1j) * w),
    "numbers": lambda z, w: (z[0, 1] * w[1, 2], z[0, 1] / w[1, 2], z[0, 0] * (3 - 2j),
                             z[0, 0] * 1.5 + 1),
    "changed": lambda z, w: times(z, w),
    "div": lambda z, w: (z / w, z / w[0, 0], (2 - 1j) / w),
    "with weak": lambda z, w: (z * 1j - 3, 2 / z, z + 0.5, 1j * w),
    "with real": lambda z, w: z * part(w) + 2,
    "compare": lambda z, w: (z == w, z != w, np.isnan(z), np.isinf(z), np.isfinite(z)),
    "order": lambda z, w: (z < w, np.maximum(z, w)),
    "parts": lambda z, w: (z.real, z.imag, z.T.real, np.real(z), np.imag(w)),
    "changed parts": lambda z, w: replaced(z),
    "is": lambda z, w: (np.iscomplex(z), np.isreal(z), np.iscomplexobj(z), np.isrealobj(w.imag)),
    "where": lambda z, w: np.where(z.real > 0, z, w),
    "moved": lambda z, w: (z.T.copy(), z[::-1], np.concatenate([z, w]), np.roll(z, 2)),
    "reshape": lambda z, w: (z.reshape(-1), z.ravel()[1:3] * 2),
    "cast": lambda z, w: (z.astype("c8"), z.astype("c16"), part(w).astype("c16"), z.astype(bool)),
    "made": lambda z, w: (np.zeros(3, complex) + 1, np.full((2, 2), 1j) * z.size, np.ones_like(z)),
    "constant": lambda z, w: (np.complex64(2j) * z, z + np.array([1j])),
    "truth": lambda z, w: (z.any(), z.all(), np.count_nonzero(z)),
    "calls": lambda z, w: (np.sign(z), np.reciprocal(w), np.log(z), np.sqrt(z)),
    "order of elements": lambda z, w: (np.sort(z), z.argmax(), z.max()),
    "nan_to_num": lambda z, w: np.nan_to_num(z),
    "tests": lambda z, w: (np.isclose(z, w), np.array_equal(z, w)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACTLY)
def test_bit_for_bit(name: str, dtype: str) -> None:
    f = EXACTLY[name]
    z, w = arr(dtype, 3, 5), arr(dtype, 3, 5)
    check(f, z, w, tolerance=EXACT, source=name not in PRODUCTS)
    check(f, z[:, ::2], w.T.copy().T[:, ::2], tolerance=EXACT)
    if dtype == "c16" or name not in PRODUCTS:  # NumPy: no fused products of reversed complex64
        check(f, z[:, ::-2], w.T.copy().T[:, ::-2], tolerance=EXACT)
    if name in PRODUCTS:  # the readable source writes a fused multiply-add as a*b + c
        check(f, z, w, tolerance=CLOSE, source=True)

PRODUCTS = frozenset({"mul", "square", "mul by one", "changed", "with weak", "with real"})

CLOSELY: dict[str, Callable[..., Any]] = {
    "abs": lambda z, w: (np.abs(z), abs(w) * 2),
    "sums": lambda z, w: (z.sum(), z.sum(0), z.sum(1, keepdims=True), (z * w).sum()),
    "means": lambda z, w: (z.mean(), z.mean(axis=1), z - z.mean(0)),
    "prod": lambda z, w: (z.prod(), np.cumsum(z)),
    "spread": lambda z, w: (z.var(), z.std(0), z.var(axis=1, ddof=1, keepdims=True)),
    "functions": lambda z, w: (np.exp(z) * w, np.sin(z), np.angle(z)),
    "powers": lambda z, w: (z**2, z**3, z**0.5, z**w),
    "products": lambda z, w: (z @ w.T, np.vdot(z, w), np.outer(z, w), np.dot(z, w.T)),
    "einsum": lambda z, w: np.einsum("ij,ij->i", z, w.conj()),
    "linalg": lambda z, w: (np.linalg.inv(z[:, :3]), np.linalg.solve(z[:, :3], w[:, 0]),
                            np.linalg.norm(z), np.linalg.norm(w, axis=1)),
    "round": lambda z, w: (np.round(z, 1), np.diff(w)),
    "fft": lambda z, w: (np.fft.fft(z), np.fft.ifft(z, 8, axis=0), np.fft.fft(w, norm="ortho")),
    "real fft": lambda z, w: (np.fft.rfft(part(z)), np.fft.irfft(z, 8), np.fft.hfft(z),
                              np.fft.ihfft(part(z))),
    "fft of more axes": lambda z, w: (np.fft.fft2(z), np.fft.ifftn(w), np.fft.rfftn(part(z)),
                                      np.fft.irfft2(z), np.fft.fftn(z, (2, 4)),
                                      np.fft.fftshift(z), np.fft.ifft2(z, axes=(1, 0)),
                                      np.fft.rfft2(part(w)), np.fft.irfftn(w)),
    "filtered": lambda z, w: np.fft.ifft(np.fft.fft(z) * np.conj(np.fft.fft(w))).real,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["arithmetic", "mul", "div", "square", "with weak", "compare",
                                  "is", "where", "cast", "nan_to_num", "mul by one"])
def test_special_values(name: str, dtype: str) -> None:
    every = specials(dtype)
    z, w = (np.ascontiguousarray(a) for a in np.meshgrid(every, every))
    check(EXACTLY[name], z, w, tolerance=EXACT, source=False)


FUNCTIONS = ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos",
             "arctan", "arcsinh", "arccosh", "arctanh", "log2", "log10", "log1p", "expm1", "exp2",
             "sign", "reciprocal", "rint", "angle", "abs")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_at_special_values_and_cuts(name: str, dtype: str) -> None:
    """Infinities, NaN, signed zeros: values on a branch cut are those of its side."""
    cuts = np.array([complex(x, s) for x in (-3, -1, -0.5, 0.5, 1, 3) for s in (0.0, -0.0)])
    z = np.concatenate([specials(dtype), cuts.astype(dtype), 1j * cuts.astype(dtype)])
    function = getattr(np, name)
    check(lambda z: function(z), z, tolerance=CLOSE if name in ("angle", "abs") else EXACT)


def test_powers_of_numbers_and_arrays() -> None:
    z = arr("c16", 9)
    for exponent in (0, 1, 2, 3, -1, 0.5, 2.0, 1j, np.float64(2), np.complex64(2)):
        rounds_alike = np.array_equal(z**exponent, np.power(z, exponent))  # not in older NumPys
        check(lambda z, e=exponent: (z**e, z[0]**e, np.power(z[1:], 3)), z,
              tolerance=EXACT if rounds_alike else CLOSE)


def test_python_numbers_divide_as_python() -> None:
    check(lambda c, d: (c / d, c * d, c**2, abs(c) > 1), 3 - 2j, 0.1 + 7j, tolerance=EXACT)


def test_products_are_as_fused_multiply_adds_round_them() -> None:
    """Products have these bits; docs/ir.md states why."""
    z, w = arr("c16", 400), arr("c16", 400)
    plain = z.real * w.real - z.imag * w.imag
    once = exact_fma(z.real, w.real, -(z.imag * w.imag))
    np.testing.assert_array_equal((z * w).real, once if rounds_once() else plain)
    np.testing.assert_array_equal([(a * b).real for a, b in zip(z, w, strict=True)], plain)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CLOSELY)
def test_close(name: str, dtype: str) -> None:
    check(CLOSELY[name], arr(dtype, 3, 5), arr(dtype, 3, 5), tolerance=CLOSE, source=True)


def test_fft_into_an_array() -> None:
    def f(z, out):
        np.fft.fft(z, out=out)

    check(f, arr("c16", 6), np.zeros(6, complex), tolerance=CLOSE)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000, 40000])
def test_sizes(size: int) -> None:
    z = arr("c16", size)
    check(lambda z: (z * z.conj() + 1j, z.sum()), z, tolerance=CLOSE)


@pytest.mark.parametrize("number", [1 + 2j, np.complex64(1 - 2j), np.complex128(3j)])
def test_numbers(number: Any) -> None:
    check(lambda c: (c * 2 + 1, c.real, c.imag, abs(c)), number, tolerance=CLOSE)
    g = check(lambda z, c: z * c + c, arr("c8", 5), number)
    again = arr("c8", 5)
    assert g(again, number * 3j).dtype == (again * (number * 3j)).dtype
    assert g.trace_count == 1


def test_arguments_change_in_place() -> None:
    def f(z, w):
        z *= w
        z[1] = 3
        z.imag[2:] -= 1

    g = check(f, arr("c16", 6), arr("c16", 6), tolerance=CLOSE)
    z, w = arr("c16", 6), arr("c16", 6)
    assert len(g.concrete(z, w).externs) == 0


def test_parts_share_memory() -> None:
    check(lambda z: (z.real, z.imag[1:], z[::2].real), arr("c16", 6))


def test_arithmetic_is_one_kernel() -> None:
    z = arr("c16", 100)
    compiled = fusec.jit(lambda z: abs(z * z + 0.25j) / 2).concrete(z)
    assert (len(compiled.kernels), len(compiled.externs)) == (1, 0)


def test_what_is_not_fused_is_a_visible_call() -> None:
    compiled = fusec.jit(lambda z: np.exp(z) + 1).concrete(arr("c16", 100))
    assert [e.name for e in compiled.externs] == ["np.exp"]
    assert compiled.externs[0].reason == "complex numbers: NumPy computes it"


def test_a_complex_loop_runs_step_by_step() -> None:
    def f(z, n):
        total = z[0]
        for i in range(n):
            total = total * 0.5 + z[i]
            z[i] = total
        return total

    z = arr("c16", 5)
    check(f, z, np.int64(5), tolerance=CLOSE)
    branch = check(lambda z, x: z * 2 if x > 0 else z.conj(), z, 1.5)
    assert branch(z, -1.0).tolist() == z.conj().tolist()


def test_mandelbrot() -> None:
    def f(c):
        z = np.zeros_like(c)
        count = np.zeros(c.shape, np.int64)
        for _ in range(20):
            z = np.where(np.abs(z) < 2, z * z + c, z)
            count += np.abs(z) < 2
        return count

    x, y = np.meshgrid(np.linspace(-2, 1, 33), np.linspace(-1, 1, 17))
    check(f, x + 1j * y)
