"""Programs of two heavy branches of serial work, on one device and on two, of one thread each.

``OPENBLAS_NUM_THREADS=1 python tests/devices/two_branches.py`` prints the least times, in ms, and
how much faster two plain threads of NumPy were than one in the same minutes.  The rounds end when
two devices are `ENOUGH` times as fast: other work can only make them slower.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fusec

ENOUGH, ROUNDS, CALLS = 1.85, 15, 4


def inverses(a: np.ndarray, b: np.ndarray) -> Any:
    return np.linalg.inv(a)[0, 0] + np.linalg.inv(b)[0, 0]


def eigenvalues(a: np.ndarray, b: np.ndarray) -> Any:
    return np.linalg.eigh(a)[0][0] - np.linalg.eigh(b)[0][-1]


def loops(x: float, y: float) -> Any:
    i = 0
    while i < 16_000_000:
        x = x * 0.999 + 0.001 * i
        i += 1
    j = 0
    while j < 16_000_000:
        y = y * 0.998 - 0.001 * j
        j += 1
    return x + y


class Machine:
    """The speed of two threads that have nothing to do with fusec: the control."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = arrays
        self.one = self.two = float("inf")

    @property
    def ratio(self) -> float:
        return self.one / self.two

    def look(self) -> None:
        self.one = min(self.one, _ms(self._in_turn))
        self.two = min(self.two, _ms(self._side_by_side))

    def _in_turn(self) -> None:
        for array in self.arrays:
            np.linalg.inv(array)

    def _side_by_side(self) -> None:
        threads = [threading.Thread(target=np.linalg.inv, args=(a,)) for a in self.arrays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def compare(machine: Machine, f: Callable[..., Any], *args: Any) -> tuple[float, float]:
    """The least milliseconds of a call on one device and on two, which must give the same bits."""
    jitted, best, results = fusec.jit(f), {1: float("inf"), 2: float("inf")}, set()
    for _ in range(ROUNDS):
        machine.look()
        for devices in best:
            with fusec.config.override(logical_cpu_devices=devices):
                results.add(float(jitted(*args)).hex())
                best[devices] = min(best[devices], *(_ms(jitted, *args) for _ in range(CALLS)))
        if best[1] > ENOUGH * best[2]:
            break
    assert len(results) == 1, results
    return best[1], best[2]


def _ms(f: Callable[..., Any], *args: Any) -> float:
    start = time.perf_counter()
    f(*args)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    fusec.config.num_threads = 2
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 700, 700))
    for f, args in ((inverses, (a, b)), (eigenvalues, (a + a.T, b + b.T)), (loops, (1.0, 2.0))):
        machine = Machine(a, b)
        one, two = compare(machine, f, *args)
        print(f"{f.__name__} {one:.1f} {two:.1f} {machine.ratio:.2f}")


if __name__ == "__main__":
    main()
