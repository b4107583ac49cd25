"""One step of Lloyd's k-means on handwritten digits.

Source: S. P. Lloyd, *Least squares quantization in PCM*, IEEE Transactions on Information Theory
28 (1982); the initial centroids are rows of the data (E. W. Forgy, Biometrics 21, 1965).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.data import digits_of
from ..measuring.program import Program

CLUSTERS = 10


def assign(X: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The index of the nearest centroid of each row: ``(n, d), (k, d) -> (n,)`` intp."""
    distances = ((X[:, None, :] - C[None, :, :]) ** 2).sum(axis=-1)
    return distances.argmin(axis=1)


def kmeans_step(X: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels ``(n,)`` and the centroids moved to the mean of their rows ``(k, d)``."""
    labels = assign(X, C)
    member = (labels[:, None] == np.arange(len(C))).astype(X.dtype)
    counts = np.maximum(member.sum(axis=0), 1.0)
    return labels, (member.T @ X) / counts[:, None]


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """``size`` digits and ten of them as centroids.

    Pixels are integers, so every distance is exact in either precision and a label cannot depend
    on the order of the sum.
    """
    rows = digits_of(size, seed)[0].astype(dtype)
    chosen = np.random.default_rng(seed + 1).choice(len(rows), CLUSTERS, replace=False)
    return rows, rows[chosen].copy()


PROGRAM = Program(
    name="kmeans", function=kmeans_step, make_args=make_args,
    sizes=(100, 1_797, 10_000, 100_000), quick_sizes=(1_797,),
    description="one k-means step on handwritten digits", size_unit="rows of 64",
    source="Lloyd, IEEE Transactions on Information Theory 28 (1982)",
)
