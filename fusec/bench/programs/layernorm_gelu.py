"""Layer normalisation followed by GELU in its tanh form.

Sources: J. L. Ba, J. R. Kiros and G. E. Hinton, *Layer normalization*, arXiv:1607.06450;
D. Hendrycks and K. Gimpel, *Gaussian error linear units*, arXiv:1606.08415.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..measuring.program import Program

COLUMNS = 768
ROOT = math.sqrt(2.0 / math.pi)


def layernorm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Rows of ``(rows, columns)`` shifted and scaled to mean 0 and variance 1, then affine."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gain + bias


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1.0 + np.tanh(ROOT * (x + 0.044715 * x**3)))


def layernorm_gelu(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return gelu(layernorm(x, gain, bias))


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """About ``size`` activations in rows of 768 (of ``size`` when smaller), gain and bias."""
    columns = min(size, COLUMNS)
    rng = np.random.default_rng(seed)
    x = rng.normal(0.5, 2.0, (max(1, size // columns), columns))
    gain, bias = rng.uniform(0.5, 1.5, columns), rng.normal(0.0, 0.1, columns)
    return x.astype(dtype), gain.astype(dtype), bias.astype(dtype)


PROGRAM = Program(
    name="layernorm_gelu", function=layernorm_gelu, make_args=make_args,
    sizes=(100, 1_536, 15_360, 153_600, 1_536_000, 7_680_000), quick_sizes=(1_536, 768_000),
    description="layer normalisation of rows of 768, then GELU",
    source="Ba, Kiros and Hinton (2016); Hendrycks and Gimpel (2016)",
)
