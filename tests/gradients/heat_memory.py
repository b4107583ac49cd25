"""The gradient of a long simulation in little memory.

``python -m tests.gradients.heat_memory [STEPS [SIZE [BYTES]]]``: a heat equation of 10,000 steps on
512 x 512 points, by the diffusivity of each point, under 200 MB.  Prints CPU seconds of the
simulation and of its gradient, the process's peak memory, and the gradient beside differences.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fusec


def cooled(diffusivity: Any, start: Any, steps: int) -> Any:
    """The sum of squares of the temperatures in the end."""
    u = start.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += diffusivity[1:-1, 1:-1] * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return (u * u).sum()


def seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """Of the process, and of the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu, time.perf_counter() - clock


def peak() -> float:
    """The most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main(steps: int = 10_000, size: int = 512, budget: int = 200_000_000) -> int:
    fusec.config.gradient_memory = budget
    rng = np.random.default_rng(0)
    start, diffusivity = rng.random((size, size)), 0.2 * rng.random((size, size))
    plain = fusec.jit(cooled, static="steps")
    gradient = fusec.grad(plain)
    plain(diffusivity, start, steps)
    before = peak()
    found = gradient(diffusivity, start, steps)
    print(f"memory: {before:.0f} MB before the gradient, {peak():.0f} MB with it")
    forward = min(seconds(lambda: plain(diffusivity, start, steps)) for _ in range(3))
    back = seconds(lambda: gradient(diffusivity, start, steps))
    print(f"simulation: {forward[0]:.2f} s ({forward[1]:.2f} s of the clock)")
    print(f"gradient: {back[0]:.2f} s ({back[1]:.2f} s), {back[0] / forward[0]:.2f} times as long")
    notes = str(fusec.explain(gradient, diffusivity, start, steps)).splitlines()
    print(*(line.strip() for line in notes if "gradients:" in line), sep="\n")
    direction, h = rng.normal(size=(size, size)), 1e-8
    ends = [plain(diffusivity + sign * h * direction, start, steps) for sign in (1, -1)]
    slope, expected = (found * direction).sum(), (ends[0] - ends[1]) / (2 * h)
    print(f"along a direction: {slope:.10g}, differences {expected:.10g}")
    return int(abs(slope - expected) > 1e-5 * abs(expected))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
