"""Escape times of the Mandelbrot set with a fixed number of iterations.

Source: the iteration of R. Brooks and J. P. Matelski (1978) and B. Mandelbrot, Annals of the New
York Academy of Sciences 357 (1980), in real arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..measuring.program import Program

ITERATIONS = 20


def mandelbrot(cr: np.ndarray, ci: np.ndarray) -> np.ndarray:
    """How many of 20 iterations each point c = cr + i ci stays within radius 2; int32.

    A point that has escaped is left where it is, so nothing overflows.  The product zr*zi is
    doubled by an addition: the count jumps at the set's edge, so this program is equal only when
    its arithmetic is NumPy's bit for bit, and no multiplication here feeds an addition that a
    fused multiply-add could round differently.
    """
    zr, zi = np.zeros_like(cr), np.zeros_like(ci)
    count = np.zeros(cr.shape, dtype=np.int32)
    for _ in range(ITERATIONS):
        rr, ii, ri = zr * zr, zi * zi, zr * zi
        inside = rr + ii <= 4.0
        count = count + inside
        zr = np.where(inside, rr - ii + cr, zr)
        zi = np.where(inside, ri + ri + ci, zi)
    return count


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """A square grid of about ``size`` points over the set, shifted a little by ``seed``."""
    side = max(2, math.isqrt(size))
    shift = np.random.default_rng(seed).uniform(-0.01, 0.01)
    cr, ci = np.meshgrid(
        np.linspace(-2.0, 0.5, side) + shift, np.linspace(-1.25, 1.25, side) + shift)
    return cr.astype(dtype), ci.astype(dtype)


PROGRAM = Program(
    name="mandelbrot", function=mandelbrot, make_args=make_args,
    sizes=(100, 1_024, 10_000, 102_400, 1_000_000), quick_sizes=(1_024, 262_144),
    description="Mandelbrot escape times, 20 iterations unrolled", elementwise=True,
    source="Brooks and Matelski (1978); Mandelbrot (1980)",
    # torch 2.13's CPU code generator was still writing C++ for the unrolled loop when stopped.
    no_peers={"torch": "torch.compile did not finish within 8 minutes"},
)
