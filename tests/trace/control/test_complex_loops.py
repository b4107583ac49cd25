"""Loops over complex numbers: native, and bit for bit NumPy's under ``fp="strict"``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

N = np.int64(13)


def escape(x: Any, n: Any) -> Any:
    z, k = x[0] * 0, 0
    while k < n and abs(z) < 2:
        z = z * z + x[1]
        k += 1
    return z, k


def horner(x: Any, n: Any) -> Any:
    total, at = x[0] * 0, x[2]
    for i in range(n):
        total = total * at + x[i % 5]
    return total


def recurrence_in_place(x: Any, n: Any) -> Any:
    for i in range(1, n % 5):
        x[i] = x[i] - x[i - 1] * x[0]
        x[i - 1] += 1
    return x


def rows(x: Any, n: Any) -> Any:
    table = np.outer(x, x)
    for i in range(1, n % 5):
        table[i, :i] += table[i - 1, :i] * x[i]
        table[i] -= table[i].sum()
    return table


def butterflies(x: Any, n: Any) -> Any:
    y = np.concatenate([x] * 20) * (n + x.real[0])
    for start in range(0, 98, 2):
        even, odd = y[start : start + 1].copy(), y[start + 1 : start + 2] * x[0]
        y[start : start + 1] = even + odd
        y[start + 1 : start + 2] = even - odd
    return y


def exchanged(x: Any, n: Any) -> Any:
    a, b, c, d = x[0], x[1], x.copy(), x * 2
    for _i in range(n):
        a, b = b, a * 1j
        c, d = d, c
        c[0] = a
    return a, b, c, d


def chosen(x: Any, n: Any) -> Any:
    total = x[0]
    for i in range(n):
        total = total * x[i % 5] if x[i % 5].real > 0 else total.conjugate() + 2
        total = total if total != x[1] else x[2]
    return total


def parts(x: Any, n: Any) -> Any:
    real, size = x.real[0] * 0, abs(x[0])
    for i in range(n % 5):
        x.real[i] = x[i].imag
        x.imag[i] += i
        real += x[i].real
        size += abs(x[i])
    return real, size, x


def from_real_numbers(x: Any, n: Any) -> Any:
    out = np.zeros(5, dtype=x.dtype)
    for i in range(n % 5):
        out[i] = i
        out[i] += x.real[i]
        out[i] /= 3 - 1j
    return out


def library_calls(x: Any, n: Any) -> Any:
    for i in range(n % 4):
        x = np.exp(x * 0.1)
        x[i] = np.sqrt(x[i])
        x += np.fft.fft(x)[i] * 0.01
    return x


def small_products(x: Any, n: Any) -> Any:
    m = np.outer(x, x) * 0.1
    for _i in range(n % 4):
        x = m @ x
        x = x / 4
    return x, x @ x, np.vdot(x, x)


def appended(x: Any, n: Any) -> Any:
    found, z = [], x[0]
    for i in range(40):
        z = z * 0.5 + x[i % 5]
        found.append(z)
    return np.array(found)


def early_return(x: Any, n: Any) -> Any:
    z = x[0]
    for i in range(n):
        z = z + x[i % 5]
        if abs(z) > 6:
            return z
    return z * 0


def nested(x: Any, n: Any) -> Any:
    out = np.zeros((5, 5), x.dtype)
    for i in range(5):
        z = x[i]
        for j in range(n % 5):
            z = z * x[j] - out[i, j]
            out[j, i] = z
    return out


def mixed(x: Any, n: Any) -> Any:
    total, counts = x[0] * 0, np.arange(5, dtype=np.int8)
    for i in range(n % 5):
        total = total + counts[i] * x[i]
    return total


PROGRAMS = [escape, horner, recurrence_in_place, rows, butterflies, exchanged, chosen, parts,
            from_real_numbers, library_calls, small_products, appended, early_return, nested, mixed]


def values(dtype: str) -> np.ndarray:
    return np.array([0.5 - 1j, 0.25 + 0.5j, -1.5, 2j, 1 + 1j], dtype)


def leaves(result: Any) -> list[Any]:
    return list(result) if type(result) is tuple else [result]


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_numpy(program: Callable[..., Any], dtype: str) -> None:
    compiled = fusec.jit(program, fp="strict")
    for n in (N, np.int64(0), np.int64(7)):
        mine, numpys = values(dtype), values(dtype)
        found, wanted = leaves(compiled(mine, n)), leaves(program(numpys, n))
        for a, b in zip(found, wanted, strict=True):
            assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype
            loose = program in (rows, small_products, library_calls)  # sums, and what calls round
            np.testing.assert_allclose(a, b, rtol=(1e-5 if dtype == "c8" else 1e-13) * loose)
        np.testing.assert_array_equal(mine, numpys)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_native(program: Callable[..., Any]) -> None:
    text = str(fusec.explain(program, values("c16"), N))
    assert "one native function" in text, text


@pytest.mark.parametrize("z", [1 + 2j, 0.5j])
def test_python_numbers(z: complex) -> None:
    def powers(z: Any, n: Any) -> Any:
        w, total = 1 + 0j, 0j
        for _i in range(n):
            w *= z
            total += w / (z + 1)
        return w, total

    found, wanted = fusec.jit(powers, fp="strict")(z, N), powers(z, N)
    assert found == wanted and [type(a) for a in found] == [complex, complex]


def test_division_by_zero_is_pythons() -> None:
    def quotients(z: Any, n: Any) -> Any:
        w = 1 + 0j
        for i in range(n):
            w = w / (z - i)
        return w

    compiled = fusec.jit(quotients)
    assert compiled(0.5 + 1j, N) == pytest.approx(quotients(0.5 + 1j, N))
    with pytest.raises(ZeroDivisionError):
        compiled(3 + 0j, N)


def test_indices_are_checked() -> None:
    def last(x: Any, n: Any) -> Any:
        z = x[0]
        for i in range(n):
            z = z + x[i]
        return z

    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        fusec.jit(last)(values("c8"), N)


def test_unaligned_and_strided_operands() -> None:
    memory = np.zeros(5 * 16 + 8, np.uint8)
    shifted = memory[8:].view("c16")
    shifted[:] = values("c16")
    backwards = np.ascontiguousarray(values("c16")[::-1])[::-1]
    for x in (shifted, backwards, np.repeat(values("c8"), 2)[::2]):
        wanted = horner(x.copy(), N)
        assert fusec.jit(horner, fp="strict")(copy.copy(x), N) == wanted
        y = x[:]
        fusec.jit(recurrence_in_place, fp="strict")(y, N)
