"""Complex numbers in loops, scatters, scans, masks, library calls and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check
from test_complex import CLOSE, arr

import fusec
from fusec.errors import UnsupportedError

V, INDEX, X = arr("c16", 8), np.array([1, 3, 3, -1]), np.linspace(-1, 1, 8)
Z, W = arr("c16", 3, 5), arr("c16", 3, 5)
SQUARE = arr("c16", 4, 4)
HERMITIAN = SQUARE @ SQUARE.conj().T + 4 * np.eye(4)


def assign(v: Any, i: Any) -> Any:
    v[i] = 1j * v[i] + 2
    return v


def increment(v: Any, i: Any) -> None:
    v[i] += 1j


def add_at(v: Any, i: Any) -> None:
    np.add.at(v, i, 1 + 2j)
    np.subtract.at(v, i, 2.0)


def multiply_at(v: Any, i: Any) -> None:
    np.multiply.at(v, i, 1 + 2j)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("f", [assign, increment, add_at, multiply_at])
def test_scatters(f: Callable[..., Any], dtype: str) -> None:
    check(f, arr(dtype, 8), INDEX, tolerance=CLOSE)


def test_scatters_by_parts_are_kernels() -> None:
    compiled = fusec.jit(add_at).concrete(V.copy(), INDEX)
    assert not compiled.externs


def masked(z: Any) -> Any:
    z[z.real > 0] = 0
    z[z.imag < 0] *= 1j
    return z, z[np.abs(z) > 0.5].sum(), np.nonzero(z), z[z.real < 0] * 2


def parts(z: Any, x: Any) -> Any:
    z.real[...] = x
    z.imag += 1
    z.real[1:] *= 2
    z.imag[:2] = z.real[1:3]
    return z.real, z.imag, x.real, x.real + 1


def real_parts(x: Any) -> Any:
    x.real[2] = 5
    x.real = 3
    return x


def kept(a: Any) -> Any:
    return np.imag(a), np.real(a), np.conj(a), np.isreal(a), np.iscomplex(a), abs(a)


PROGRAMS: dict[str, tuple[Any, ...]] = {
    "gathers": (lambda v, i: (v[i] * 2, v.take(i), v.real[i]), V, INDEX),
    "scans": (lambda z: (np.cumsum(z), np.cumsum(z, 0), np.cumsum(z, 1), np.cumprod(z),
                         np.add.accumulate(z), np.multiply.accumulate(z, 1)), Z),
    "scan c8": (lambda z: np.cumsum(z), arr("c8", 9)),
    "masks": (masked, Z),
    "parts": (parts, V, X),
    "parts of reals": (real_parts, X),
    "sorts": (lambda v: (np.sort(v), np.argsort(v), np.sort_complex(v), np.unique(v)), V),
    "repeated": (lambda z: (np.repeat(z, 2, 1), np.tile(z, (2, 2)), np.pad(z, 1)), Z),
    "moved": (lambda z: (np.flip(z), np.rot90(z), np.triu(z), np.diag(z), np.trace(z)), Z),
    "made of parts": (lambda x: (complex(x[0], x[1]), complex(x[2]), complex(1, x[3])), X),
    "complex of complex": (lambda c, x: (complex(c), complex(c, x), complex(x, c)), 1 + 2j, 0.5),
    "casts": (lambda z: (z.astype("f4"), z.astype("i8"), z.astype("f2"), z.astype("c8")), Z),
    "halves": (lambda x: (x * 1j, x + np.complex64(1)), X.astype("f2")),
    "integers": (lambda x: (x * 1j, x + np.complex64(1), x**0.5j), np.arange(5)),
    "nan functions": (lambda z: (np.nansum(z), np.nanmean(z, 1), np.nan_to_num(z)), Z),
    "averages": (lambda z: (np.average(z, axis=1), np.median(z[0].real)), Z),
    "filters": (lambda v: (np.convolve(v, v[:3]), np.correlate(v, v[:3]), np.gradient(v)), V),
    "out": (lambda v, o: np.multiply(v, 2j, out=o), V, np.zeros(8, complex)),
    "real out": (lambda v, o: np.abs(v, out=o), V, np.zeros(8)),
    "where": (lambda v, x: (np.add(v, 1j, where=x > 0, out=np.zeros(8, complex)),
                            np.sum(v, where=x > 0)), V, X),
    "sums in other dtypes": (lambda v: (np.sum(v, dtype="c16"), np.mean(v, dtype="c8"),
                                        np.sum(v.real, dtype=complex)), arr("c8", 9)),
    "products": (lambda z, w: (np.vdot(z, w), np.vecdot(z, w), np.inner(z, w)), Z, W),
    "linalg": (lambda s: (np.linalg.det(s), np.linalg.inv(s), np.linalg.norm(s, 2), np.linalg.qr(s),
                          np.linalg.slogdet(s), np.linalg.matrix_power(s, 3)), SQUARE),
    "decompositions": (lambda h: (np.linalg.eigvalsh(h), np.linalg.cholesky(h),
                                  np.linalg.svdvals(h), np.linalg.pinv(h)), HERMITIAN),
    "interp": (lambda x: np.interp(x, [0, 1], [1j, 2]), X),
    "spaced": (lambda c: (np.linspace(0, c, 5), np.full(3, c), np.array([c, 1.0])), 1 + 1j),
    "python float": (kept, 2.5), "python int": (kept, 3), "python complex": (kept, 2.5 - 1j),
    "float32": (kept, np.float32(2.5)), "complex64": (kept, np.complex64(2.5j)),
    "rank 0": (lambda a: (*kept(a), a.conjugate(), a.real, a * a), np.array(2 + 1j)),
    "frequencies": (lambda x: np.fft.fft(x) * np.fft.fftfreq(x.size) + np.fft.fftshift(x), X),
    "fft of float32": (lambda x: (np.fft.rfft(x), np.fft.fft(x, 5), np.fft.rfft2(x[None])),
                       X.astype("f4")),
    "fft options": (lambda v: (np.fft.ifft(v, axis=-1, norm="forward"), np.fft.fft(v, n=16),
                               np.fft.ifftshift(v, axes=0)), V),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, *args = PROGRAMS[name]
    check(function, *args, tolerance=CLOSE)


def smoothed(v: Any, n: Any) -> Any:
    s, total = v[0], 0j
    for i in range(n):
        s = s * 0.5 + v[i]
        total += s
        v[i] = total
        if abs(s) > 1.5:
            s = s.conjugate()
            v.imag += 0.25
    return s, total, v


def escape(c: Any) -> Any:
    z, n = 0j, 0
    while abs(z) < 2 and n < 50:
        z = z * z + c
        n += 1
    return z, n


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_loops(dtype: str) -> None:
    check(smoothed, arr(dtype, 8), np.int64(6), tolerance=CLOSE)


@pytest.mark.parametrize("c", [0.3 + 0.5j, np.complex64(0.3 + 0.5j), np.complex128(1j)])
def test_escape_times(c: Any) -> None:
    check(escape, c, tolerance=CLOSE)


@pytest.mark.parametrize("f", [lambda z: np.real_if_close(z), lambda z: np.poly(z[0])])
def test_results_that_data_make_real_are_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="whether its result is complex depends"):
        fusec.jit(f)(Z)


def test_complex_attributes_are_read_at_each_call() -> None:
    class State:
        gain = 0j

    state = State()
    state.gain = 1 + 2j

    def f(x: Any) -> Any:
        state.gain = state.gain * 2
        return state.gain + x

    g = fusec.jit(f)
    assert [g(1.0), g(1.0)] == [3 + 4j, 5 + 8j]
    assert (state.gain, g.trace_count) == (4 + 8j, 1)
