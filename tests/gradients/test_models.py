"""Gradients of people's programs: filters with gaps, pivots, reflections, recursion, attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

from .differences import differences

RNG = np.random.default_rng(3)


def kalman(noise: Any, seen: np.ndarray) -> Any:
    """The likelihood of a random walk that is not seen in every step."""
    mean, variance, total = 0.0, 1.0, 0.0
    for y in seen:
        variance = variance + noise
        if np.isnan(y):
            continue
        spread = variance + 0.5
        gain, error = variance / spread, y - mean
        total += np.log(spread) + error * error / spread
        mean, variance = mean + gain * error, (1 - gain) * variance
        if total > 60:
            break
    return total


def solved(a: np.ndarray, b: np.ndarray) -> Any:
    """Gaussian elimination with pivots."""
    a, b, n = a.copy(), b.copy(), len(b)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1:] @ x[i + 1:]) / a[i, i]
    return (x * x).sum()


def reflected(a: np.ndarray) -> Any:
    """Householder's triangle."""
    a = a.copy()
    for k in range(a.shape[1]):
        v = a[k:, k].copy()
        v[0] += np.sign(v[0]) * np.sqrt(v @ v)
        v /= np.sqrt(v @ v)
        a[k:, k:] -= 2 * np.outer(v, v @ a[k:, k:])
    return (np.triu(a[:a.shape[1]]) ** 2)[0].sum() + a[1, 1]


def rotated(a: np.ndarray) -> Any:
    """Givens' triangle, whose rows are replaced two at a time."""
    a = a.copy()
    for j in range(a.shape[1]):
        for i in range(a.shape[0] - 1, j, -1):
            r = np.hypot(a[i - 1, j], a[i, j])
            c, s = a[i - 1, j] / r, a[i, j] / r
            kept = c * a[i - 1] + s * a[i]
            a[i] = c * a[i] - s * a[i - 1]
            a[i - 1] = kept
    return a[0].sum() + a[1, 1] ** 2


def transformed(x: np.ndarray) -> np.ndarray:
    if len(x) == 1:
        return x
    even, odd = transformed(x[::2]), transformed(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(len(even)) / len(x)) * odd
    return np.concatenate([even + turned, even - turned])


def power(x: np.ndarray) -> Any:
    return (np.abs(transformed(x.astype(complex)))[1:3] ** 2).sum()


def attention(x: np.ndarray, w: np.ndarray, mask: np.ndarray) -> Any:
    q, k, v = x @ w[0], x @ w[1], x @ w[2]
    scores = np.where(mask, q @ k.T / 2.0, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    y = e / e.sum(axis=-1, keepdims=True) @ v
    return (((y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)) ** 3).sum()


def with_memory(x: np.ndarray, n: int) -> Any:
    """Rows that are made of rows far before them."""
    y = np.zeros((n, len(x)))
    y[0] = x
    for i in range(1, n):
        y[i] = np.sin(y[i - 1]) + y[max(0, i - 3)] * y[i // 2]
    return y[-1].sum()


GAPS = np.where(np.arange(20) % 6 == 3, np.nan, RNG.normal(size=20))
SQUARE, TALL, X = RNG.normal(size=(5, 5)), RNG.normal(size=(5, 3)), RNG.normal(size=8)


@pytest.mark.parametrize(("f", "args", "number"), [
    (kalman, (0.3, GAPS), 0), (kalman, (0.3, 4 * GAPS), 0), (kalman, (0.3, GAPS[:0]), 0),
    (solved, (SQUARE, X[:5]), 0), (solved, (SQUARE, X[:5]), 1),
    (reflected, (TALL,), 0), (rotated, (TALL,), 0), (power, (X,), 0),
    (attention, (SQUARE[:, :4], RNG.normal(size=(3, 4, 4)), np.tri(5, dtype=bool)), 1),
    (with_memory, (0.2 * X, 6), 0), (with_memory, (0.2 * X, 9), 0), (with_memory, (X, 1), 0),
])
def test_gradients_of_models(f: Callable[..., Any], args: Any, number: int) -> None:
    gradient = fusec.grad(f, number)(*args)
    expected = differences(f, args, number)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
