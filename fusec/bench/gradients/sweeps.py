"""Programs that go through their arrays in an order, writing as they go; each ends in one number.

Seidel, ADI, LU, Cholesky and Durbin are problems of PolyBench (L.-N. Pouchet, 2012) as one writes
them in NumPy; soft DTW is by M. Cuturi and M. Blondel, ICML (2017), equation 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.code_roles import AS_USERS

FUSEC_ROLE = AS_USERS


def seidel(u: np.ndarray, sweeps: int) -> Any:
    """Sweeps of the mean of nine neighbours (n, n), each point with new values before it."""
    u = u.copy()
    for _ in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = (u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
                           + u[i, j - 1] + u[i, j] + u[i, j + 1]
                           + u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]) / 9.0
    return (u * u).sum()


def half_step(u: np.ndarray, a: Any) -> np.ndarray:
    """``(1 - a D) new = (1 + a D') u``: implicit along rows, explicit along columns, 0 around."""
    n = u.shape[0]
    p, q, new = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for j in range(1, n - 1):
        right = a * u[j - 1, 1:-1] + (1.0 - 2.0 * a) * u[j, 1:-1] + a * u[j + 1, 1:-1]
        below = 1.0 + 2.0 * a - a * p[j - 1, 1:-1]
        p[j, 1:-1] = a / below
        q[j, 1:-1] = (right + a * q[j - 1, 1:-1]) / below
    for j in range(n - 2, 0, -1):
        new[j, 1:-1] = p[j, 1:-1] * new[j + 1, 1:-1] + q[j, 1:-1]
    return new.T


def adi(u: np.ndarray, a: Any, steps: int) -> Any:
    """Heat (n, n) by alternating directions: Thomas's algorithm along one axis, then the other."""
    for _ in range(2 * steps):
        u = half_step(u, a)
    return (u * u).sum()


def lu(a: np.ndarray) -> Any:
    """The logarithm of a determinant (n, n) by elimination in place, without pivots."""
    a = a.copy()
    n = len(a)
    for k in range(n - 1):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= a[k + 1:, k:k + 1] * a[k, k + 1:]
    total = 0.0
    for k in range(n):
        total += np.log(a[k, k])
    return total


def cholesky(a: np.ndarray) -> Any:
    """The sum of squares of the inverse diagonal of Cholesky's factor (n, n), by rows."""
    n = len(a)
    low = np.zeros((n, n))
    total = 0.0
    for i in range(n):
        for j in range(i):
            low[i, j] = (a[i, j] - low[i, :j] @ low[j, :j]) / low[j, j]
        low[i, i] = np.sqrt(a[i, i] - low[i, :i] @ low[i, :i])
        total += 1.0 / low[i, i] ** 2
    return total


def durbin(r: np.ndarray) -> Any:
    """The solution of Yule and Walker's equations (n,) by Durbin's recursion, squared and summed.
    """
    y = np.zeros(len(r))
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return (y * y).sum()


def soft_dtw(x: np.ndarray, y: np.ndarray) -> Any:
    """How far two series (n,) and (m,) are apart when either may wait; a soft minimum of paths."""
    n, m = len(x), len(y)
    table = np.full((n + 1, m + 1), 1e10)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = table[i - 1, j - 1], table[i - 1, j], table[i, j - 1]
            least = min(a, min(b, c))
            soft = least - np.log(np.exp(least - a) + np.exp(least - b) + np.exp(least - c))
            table[i, j] = (x[i - 1] - y[j - 1]) ** 2 + soft
    return table[n, m]
