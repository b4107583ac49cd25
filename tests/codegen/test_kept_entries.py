"""What a loop keeps of each iteration, and rows that a program keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


def diffused(c: Any, u: Any) -> Any:
    """The way back of each step reads the differences, which are kept."""
    u = u.copy()
    for _ in range(20):
        new = u.copy()
        new[1:-1] += c * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = new
    return (u * u).sum()


def test_what_is_kept_of_each_step() -> None:
    u, c = np.linspace(0.0, 1.0, 500) ** 3, 0.2
    h = 1e-5
    expected = (diffused(c + h, u) - diffused(c - h, u)) / (2 * h)
    np.testing.assert_allclose(fusec.grad(diffused)(c, u), expected, rtol=1e-8)


def kept_and_changed(x: Any) -> Any:
    """An array is kept, and changed in the same iteration."""
    s = 0.0
    y = x * 1.0
    for i in range(20):
        z = np.sin(y)
        s += (z * z * y).sum()
        z[i % 7] = 0.5
        y = y * 0.9 + z * z
    return s


def test_what_is_changed_after_it_was_kept() -> None:
    x, v = np.linspace(0.1, 0.9, 7), np.linspace(-1, 1, 7)
    h = 1e-6
    expected = (kept_and_changed(x + h * v) - kept_and_changed(x - h * v)) / (2 * h)
    np.testing.assert_allclose((fusec.grad(kept_and_changed)(x) * v).sum(), expected, rtol=1e-7)


def written_into_rows(x: Any) -> Any:
    """The same in a program of the user's, where rows are read again."""
    rows = np.zeros((30, len(x)))
    total = np.zeros(len(x))
    for i in range(30):
        row = np.sqrt(x + i)
        rows[i] = row
        total += row * row - rows[i]
    return rows, total


def test_rows_that_a_program_writes() -> None:
    x = np.linspace(1.0, 2.0, 50)
    for got, want in zip(fusec.jit(written_into_rows)(x), written_into_rows(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15)


def written_before_an_exception(x: Any, u: Any, rows: Any) -> Any:
    for i in range(30):
        row = np.sqrt(x + i)
        rows[i] = row + x[u[i]]
    return rows


def test_an_exception_comes_before_a_row_is_written() -> None:
    x, u = np.linspace(1.0, 2.0, 50), np.arange(30)
    u[20] = 50
    found = []
    for f in (fusec.jit(written_before_an_exception), written_before_an_exception):
        rows = np.zeros((30, 50))
        with pytest.raises(IndexError):
            f(x, u, rows)
        found.append(rows)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-15)
