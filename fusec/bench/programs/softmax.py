"""Softmax over rows, in the form that does not overflow.

Source: J. S. Bridle, *Probabilistic interpretation of feedforward classification network outputs*
(1990); P. Blanchard, D. J. Higham and N. J. Higham, IMA Journal of Numerical Analysis 41 (2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.program import Program

COLUMNS = 512


def softmax(x: np.ndarray) -> np.ndarray:
    """``(rows, columns)``: each row becomes positive and sums to one."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """About ``size`` logits in rows of 512 (of ``size`` when smaller)."""
    columns = min(size, COLUMNS)
    rng = np.random.default_rng(seed)
    return (rng.normal(0.0, 3.0, (max(1, size // columns), columns)).astype(dtype),)


PROGRAM = Program(
    name="softmax", function=softmax, make_args=make_args,
    sizes=(100, 1_024, 10_240, 102_400, 1_024_000, 10_240_000), quick_sizes=(1_024, 1_024_000),
    description="softmax over rows of 512",
    source="Bridle (1990); Blanchard, Higham and Higham (2021)",
)
