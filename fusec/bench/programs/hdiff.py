"""Horizontal diffusion of a numerical weather model: fourth order with a flux limiter.

Source: the scheme of the COSMO model (G. Doms and M. Baldauf, *A description of the nonhydrostatic
regional COSMO-model, part I*, 2018), limiter after M. Xue, Monthly Weather Review 128 (2000).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..measuring.program import Program

LEVELS = 8


def laplacian(f: np.ndarray) -> np.ndarray:
    """The four neighbours of each point minus four times it; ``(k, j, i) -> (k, j-2, i-2)``."""
    return f[:, 1:-1, 2:] + f[:, 1:-1, :-2] + f[:, 2:, 1:-1] + f[:, :-2, 1:-1] - (
        4.0 * f[:, 1:-1, 1:-1])


def limited(flux: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The flux, or zero where it would run up the gradient of the field."""
    return np.where(flux * slope > 0.0, 0.0, flux)


def horizontal_diffusion(field: np.ndarray, coefficient: np.ndarray) -> np.ndarray:
    """One step on ``(k, j, i)``; the two outer rows and columns are left as they were."""
    lap = laplacian(field)
    inner = field[:, 2:-2, 1:-1]
    flux_i = limited(lap[:, 1:-1, 1:] - lap[:, 1:-1, :-1], inner[:, :, 1:] - inner[:, :, :-1])
    inner = field[:, 1:-1, 2:-2]
    flux_j = limited(lap[:, 1:, 1:-1] - lap[:, :-1, 1:-1], inner[:, 1:] - inner[:, :-1])
    out = field.copy()
    out[:, 2:-2, 2:-2] = field[:, 2:-2, 2:-2] - coefficient[:, 2:-2, 2:-2] * (
        flux_i[:, :, 1:] - flux_i[:, :, :-1] + flux_j[:, 1:] - flux_j[:, :-1])
    return out


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """A wavy, noisy field of about ``size`` points on eight levels, and its coefficients."""
    side = max(6, math.isqrt(size // LEVELS))
    rng = np.random.default_rng(seed)
    angle = np.linspace(0.0, 8.0 * np.pi, side)
    waves = np.sin(angle)[:, None] * np.cos(angle)[None, :]
    field = 280.0 + 5.0 * waves + rng.normal(0.0, 0.5, (LEVELS, side, side))
    coefficient = rng.uniform(0.01, 0.05, field.shape)
    return field.astype(dtype), coefficient.astype(dtype)


PROGRAM = Program(
    name="hdiff", function=horizontal_diffusion, make_args=make_args,
    sizes=(1_000, 10_000, 100_000, 1_000_000, 8_000_000), quick_sizes=(10_000, 1_000_000),
    description="horizontal diffusion with flux limiter (COSMO)", size_unit="points",
    source="Doms and Baldauf, COSMO-model part I (2018); Xue (2000)",
)
