"""Unsharp masking of a photograph with a separable five-tap Gaussian.

Source: the binomial smoothing of P. J. Burt and E. H. Adelson, *The Laplacian pyramid as a compact
image code*, IEEE Transactions on Communications 31 (1983); unsharp masking as in R. C. Gonzalez
and R. E. Woods, *Digital image processing*, section "Unsharp masking and highboost filtering".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.data import photo_of
from ..measuring.program import Program

AMOUNT = 1.5


def blur_rows(image: np.ndarray) -> np.ndarray:
    """The taps 1 4 6 4 1 (/16) down the columns; the two outer rows stay as they are."""
    out = image.copy()
    out[2:-2] = 0.375 * image[2:-2] + 0.25 * (image[1:-3] + image[3:-1]) + 0.0625 * (
        image[:-4] + image[4:])
    return out


def blur_columns(image: np.ndarray) -> np.ndarray:
    """The same taps along the rows; the two outer columns stay as they are."""
    out = image.copy()
    out[:, 2:-2] = 0.375 * image[:, 2:-2] + 0.25 * (
        image[:, 1:-3] + image[:, 3:-1]) + 0.0625 * (image[:, :-4] + image[:, 4:])
    return out


def unsharp(image: np.ndarray) -> np.ndarray:
    """A grey image ``(h, w)`` in [0, 1], sharpened."""
    blurred = blur_columns(blur_rows(image))
    return np.clip(image + AMOUNT * (image - blurred), 0.0, 1.0)


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """The luma of the photograph at about ``size`` pixels, with noise drawn by ``seed``."""
    grey = photo_of(size) @ np.array([0.2126, 0.7152, 0.0722])
    noise = np.random.default_rng(seed).normal(0.0, 0.002, grey.shape)
    return (np.clip(grey + noise, 0.0, 1.0).astype(dtype),)


PROGRAM = Program(
    name="unsharp", function=unsharp, make_args=make_args,
    sizes=(100, 4_096, 65_536, 262_144, 4_194_304), quick_sizes=(4_096, 1_048_576),
    description="unsharp mask of a photograph, separable 5-tap Gaussian", size_unit="pixels",
    source="Burt and Adelson, IEEE Transactions on Communications 31 (1983)",
)
