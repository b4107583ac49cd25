"""One gradient step of regularised logistic regression on handwritten digits (odd or even).

Source: T. Hastie, R. Tibshirani and J. Friedman, *The elements of statistical learning*, section
4.4; the loss in the form that does not overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.data import digits_of
from ..measuring.program import Program

RATE = 0.1
PENALTY = 1e-3


def gradient_step(
    X: np.ndarray, y: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.floating]:
    """New weights ``(d,)`` and the mean loss of the old ones."""
    z = X @ w
    p = 1.0 / (1.0 + np.exp(-z))
    loss = (np.maximum(z, 0.0) - z * y + np.log(1.0 + np.exp(-np.abs(z)))).mean()
    gradient = X.T @ (p - y) / len(y) + PENALTY * w
    return w - RATE * gradient, loss + 0.5 * PENALTY * (w * w).sum()


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """``size`` digits scaled to [0, 1] with a column of ones, their parity, and weights."""
    images, labels = digits_of(size, seed)
    X = np.concatenate([images / 16.0, np.ones((size, 1))], axis=1)
    w = np.random.default_rng(seed).normal(0.0, 0.3, (X.shape[1],))
    return X.astype(dtype), (labels % 2).astype(dtype), w.astype(dtype)


PROGRAM = Program(
    name="logreg", function=gradient_step, make_args=make_args,
    sizes=(100, 1_797, 10_000, 100_000), quick_sizes=(1_797, 100_000),
    description="one gradient step of logistic regression", size_unit="rows of 65",
    source="Hastie, Tibshirani and Friedman, The elements of statistical learning, section 4.4",
)
