"""Programs whose pages the tests make: one for each kind of decision."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusec


@fusec.jit
def standardise(x: Any, gain: float) -> Any:
    z = x - x.mean(axis=1, keepdims=True)
    z /= np.sqrt((z * z).mean(axis=1, keepdims=True) + 1e-12)
    return np.tanh(gain * z), z.max(axis=1)


@fusec.jit
def smooth(x: Any) -> Any:
    y = x.copy()
    y[1:-1] = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    return y, y.sum()


def loss(w: Any, x: Any, y: Any) -> Any:
    h = np.tanh(x @ w)
    return ((h - y) ** 2).mean()


gradient = fusec.jit(fusec.value_and_grad(loss))


@fusec.jit
def relax(u: Any, tolerance: float) -> Any:
    sweeps = 0
    while True:
        change = 0.0
        for i in range(1, len(u) - 1):
            new = 0.5 * (u[i - 1] + u[i + 1])
            change = max(change, abs(new - u[i]))
            u[i] = new
        sweeps += 1
        if change < tolerance:
            return sweeps


@fusec.jit
def scoped(x: Any) -> Any:
    with fusec.name_scope("layer"):
        y = np.exp(x) * 2
    return np.linalg.norm(y)


@fusec.jit
def storm(x: Any, axis: Any) -> Any:
    return x.sum(axis=axis) * 2


X = np.sin(np.arange(30_000.0) ** 2).reshape(300, 100)
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "standardise": (standardise, (X, 0.5)),
    "smooth": (smooth, (X[0],)),
    "gradient": (gradient, (np.ones((100, 10)), X, np.ones((300, 10)))),
    "relax": (relax, (np.linspace(0, 1, 30) ** 2, 1e-3)),
    "scoped": (scoped, (X,)),
}
