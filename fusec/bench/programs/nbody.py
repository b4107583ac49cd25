"""Gravitational accelerations of N bodies by direct summation with softening.

Source: S. J. Aarseth, *Gravitational N-body simulations* (Cambridge, 2003), equation 1.1, with the
softening of H. C. Plummer, Monthly Notices of the Royal Astronomical Society 71 (1911).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.program import Program

SOFTENING = 0.05


def accelerations(
    x: np.ndarray, y: np.ndarray, z: np.ndarray, m: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Accelerations ``(n,)`` per axis of bodies at x, y, z with masses m, in units of G = 1."""
    dx = x[None, :] - x[:, None]
    dy = y[None, :] - y[:, None]
    dz = z[None, :] - z[:, None]
    r2 = dx**2 + dy**2 + dz**2 + SOFTENING**2
    pull = m[None, :] / (r2 * np.sqrt(r2))
    return (pull * dx).sum(axis=1), (pull * dy).sum(axis=1), (pull * dz).sum(axis=1)


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """``size`` bodies, normally distributed, masses 0.5 to 1.5 over ``size``."""
    rng = np.random.default_rng(seed)
    positions = [rng.normal(size=size).astype(dtype) for _ in range(3)]
    return (*positions, (rng.uniform(0.5, 1.5, size) / size).astype(dtype))


PROGRAM = Program(
    name="nbody", function=accelerations, make_args=make_args,
    sizes=(10, 100, 1_000, 3_000), quick_sizes=(100, 1_000),
    description="pairwise gravitational accelerations", size_unit="bodies",
    source="Aarseth, Gravitational N-body simulations (2003), equation 1.1",
)
