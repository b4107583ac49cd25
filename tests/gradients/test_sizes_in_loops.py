"""Gradients through branches and loops in which data decide sizes of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients.differences import differences

import fusec


def masked_sums(x: Any) -> Any:
    """A sum's cotangent has a size that nothing else on the way back decides."""
    s = 0.0
    for i in range(len(x)):
        s = s * 0.5 + x[x > x[i]].sum() * x[i]
    return s


def masked_means(x: Any) -> Any:
    y = x.copy()
    for i in range(4):
        low = y < y.mean()
        y[low] = y[low] * y[i] + np.sqrt(y[low]).mean()
    return (y * y).sum()


def shrinking(x: Any) -> Any:
    v = x * 1.0
    for _ in range(len(x) - 1):
        v = 0.5 * np.cos(v[1:]) * v[:-1] + v[1:] / 3
    return v[0]


def halves(x: Any) -> Any:
    y, n = x.copy(), len(x)
    while n > 1:
        h = n // 2
        y[:h] = y[0:2 * h:2] * y[1:2 * h:2]
        y[h:n] = y[h:n] + np.exp(-y[:n - h])
        n = h
    return (y * y).sum()


def in_a_branch(x: Any) -> Any:
    s = x[0]
    for i in range(5):
        large = x > 1.0 + 0.05 * i
        if large.sum() > 2:
            chosen = x[large] * s
            s = s + np.sin(chosen).mean()
        else:
            s = s * 0.9
    return s


def repeated_outside(x: Any) -> Any:
    """An array of a size that data decided before the loop."""
    where = np.flatnonzero(x > 0.9)
    y = x.copy()
    for _ in range(3):
        new = np.zeros(len(x))
        np.add.at(new, where, (y * y)[where])
        y = 0.7 * y + 0.1 * new
    return (y * y).sum()


def windows_of_windows(x: Any) -> Any:
    s, n = 0.0, len(x)
    for i in range(6):
        for j in range(i):
            part = x[j:i + 2] * x[i]
            s = s + part.sum() * part[0]
    return s / n


def appended(x: Any) -> Any:
    """The carried array is the beginning of a buffer."""
    w = x[:3]
    for i in range(9):
        w = np.append(w, w[-1] * x[i])
    return (w * w).sum()


PROGRAMS = [appended, masked_sums, masked_means, shrinking, halves, in_a_branch, repeated_outside,
            windows_of_windows]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_differences(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fusec.config, "verify", True)
    rng = np.random.default_rng(3)
    x, v = rng.uniform(0.5, 1.5, 12), rng.normal(size=12)
    expected = differences(program, (x,))
    value, gradient = fusec.value_and_grad(program)(x.copy())
    assert value == pytest.approx(program(x.copy()), rel=1e-13)
    np.testing.assert_allclose(gradient, expected, rtol=2e-9, atol=2e-9 * abs(expected).max())
    _, tangent = fusec.jvp(program, (x.copy(),), (v,))
    assert tangent == pytest.approx((gradient * v).sum(), rel=1e-12)


@pytest.mark.parametrize("count", [1, 4])
def test_what_np_add_at_may_have_broadcast(count: int) -> None:
    """Values of a size that the run decides: one for each index, or one for all; indices from the
    end."""
    def f(x: Any, indices: Any, chosen: Any) -> Any:
        total = np.zeros(5)
        np.add.at(total, indices, x[np.flatnonzero(chosen)] ** 2)
        return (total * np.arange(5.0)).sum()

    x, indices = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1, -1, 3, 1])
    chosen = np.arange(5) < count
    gradient = fusec.grad(f)(x, indices, chosen)
    weights = np.arange(5.0)[indices]
    expected = np.zeros(5)
    expected[:count] = 2 * x[:count] * (weights if count == 4 else weights.sum())
    np.testing.assert_allclose(gradient, expected, rtol=1e-15)


def test_of_what_repeats_checks_how_often_a_loop_runs() -> None:
    """The trip count of a loop is computed before it, with its index checks."""
    columns = np.array([1, 2, 0, 3, 1])

    def f(x: Any, columns: Any) -> Any:
        change = 1.0
        while change > 0.1:
            change = 0.0
            for k in range(5):
                new = 0.3 * np.cos(x[k]) * x[columns[k]] + 0.5
                change = max(change, abs(new - x[k]))
                x[k] = new
        return (x * x).sum()

    x = np.linspace(0.5, 1.4, 5)
    expected = differences(lambda x: f(x, columns), (x,))
    np.testing.assert_allclose(fusec.grad(f)(x.copy(), columns), expected, rtol=2e-9)


def test_an_array_that_a_loop_makes_empty() -> None:
    """An appended item is read at an index that is the size less one."""
    def f(x: Any) -> Any:
        first, w = x[0], np.zeros(30)[::2]
        for _ in range(24):
            w = np.append(w, first)
            w = w[:-1] + w[1:]
            w = w[1:]
        return (w * w).sum() + x[1] * x[1]

    np.testing.assert_array_equal(fusec.grad(f)(np.array([0.5, 3.0])), [0, 6])
