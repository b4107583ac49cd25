"""Waves in a square basin: the linear shallow-water equations, stepped in place.

    python examples/shallow_water.py [CELLS [STEPS]]

The time loop is ordinary Python; each step is one compiled call that updates the caller's arrays
through slices, as the NumPy original does.  Scheme: forward-backward on the staggered C grid of
A. Arakawa and V. R. Lamb, Methods in Computational Physics 17 (1977).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import fusec

GRAVITY, DEPTH = 9.81, 100.0  # m/s2, m
Step = Callable[..., None]


def step(h: np.ndarray, u: np.ndarray, v: np.ndarray, ratio: float) -> None:
    """One step of ``ratio = dt/dx`` s/m: elevation ``h`` (n, n), velocities ``u`` and ``v``.

    ``u`` (n+1, n) and ``v`` (n, n+1) live on the cell edges; those of the basin's wall stay 0.
    """
    u[1:-1] -= GRAVITY * ratio * (h[1:] - h[:-1])
    v[:, 1:-1] -= GRAVITY * ratio * (h[:, 1:] - h[:, :-1])
    h -= DEPTH * ratio * (u[1:] - u[:-1] + v[:, 1:] - v[:, :-1])


def basin(cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A hump of water 1 m high off the centre, at rest."""
    x = (np.arange(cells) + 0.5) / cells
    h = np.exp(-((x[:, None] - 0.3) ** 2 + (x - 0.4) ** 2) / 0.005)
    return h, np.zeros((cells + 1, cells)), np.zeros((cells, cells + 1))


def run(one_step: Step, cells: int, steps: int) -> tuple[np.ndarray, float]:
    """The elevation after ``steps`` steps at Courant number 0.5, and the seconds they took."""
    h, u, v = basin(cells)
    ratio = 0.5 / np.sqrt(2.0 * GRAVITY * DEPTH).item()
    one_step(h, u, v, ratio)  # not timed: the first compiled call compiles
    start = time.perf_counter()
    for _ in range(steps - 1):
        one_step(h, u, v, ratio)
    return h, time.perf_counter() - start


def main(cells: int = 700, steps: int = 300) -> float:
    """Run eager and compiled; returns the largest difference in metres."""
    compiled = fusec.jit(step)
    eager_h, eager_s = run(step, cells, steps)
    h, compiled_s = run(compiled, cells, steps)
    volume = basin(cells)[0].sum()
    print(f"{cells} x {cells} cells, {steps} steps: NumPy {eager_s:.2f} s, fusec {compiled_s:.2f} s"
          f" ({eager_s / compiled_s:.1f} times as fast)")
    print(f"water lost or made: {abs(h.sum() / volume - 1):.1e} of it")
    difference = np.abs(h - eager_h).max()
    print(f"largest difference from NumPy: {difference:.1e} m")
    print(f"one step is {len(compiled.traces[0].kernels)} kernels, traced "
          f"{compiled.trace_count} time")
    return float(difference)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
