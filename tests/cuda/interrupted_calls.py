"""Calls on the emulated device that time-outs interrupt, beside calls of other threads.

``python tests/cuda/interrupted_calls.py --seconds 20``: the others' results must be right, and no
memory of the device may be left.  A moment of it is a test.
"""

from __future__ import annotations

import argparse
import gc
import random
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

import fusec
from fusec.codegen.cuda.emulated_backend import DRIVER

THREADS = 3


class Stop(Exception):
    """The exception of the time-out."""


def program(x: np.ndarray) -> Any:
    y = np.sin(x) * 2
    return np.sort(y, axis=0)[::-1] + (y - y.max()).cumsum(axis=0), y.sum()


def interrupt(*_: Any) -> None:
    raise Stop


class Others:
    """Threads that call with small arrays until the end, and count wrong results."""

    def __init__(self, function: Any) -> None:
        self.function, self.ends = function, False
        self.calls, self.wrong = 0, list[str]()
        self.threads = [threading.Thread(target=self._work, args=(k,)) for k in range(THREADS)]

    def _work(self, number: int) -> None:
        x = np.random.default_rng(number).normal(size=(60, 50 + number))
        want = self.function(x)
        while not self.ends:
            try:
                got = self.function(x)
            except BaseException as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                continue
            self.calls += 1
            if not all((a == b).all() for a, b in zip(got, want, strict=True)):
                self.wrong.append("other numbers")


def campaign(seconds: float, seed: int) -> tuple[int, Others]:
    """How many calls were interrupted, and the fate of the others."""
    function, large = fusec.jit(program, device="/device:CUDAHOST:0"), np.ones((3000, 60))
    function(large)
    others, draw, stops = Others(function), random.Random(seed), 0
    for thread in others.threads:
        thread.start()
    old, end = signal.signal(signal.SIGALRM, interrupt), time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.001, 0.1))
            function(large)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Stop:
            stops += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)
    others.ends = True
    for thread in others.threads:
        thread.join()
    return stops, others


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    stops, others = campaign(given.seconds, given.seed)
    gc.collect()
    DRIVER.synchronize()
    print(f"{stops} calls interrupted, {others.calls} beside them, {len(others.wrong)} wrong "
          f"{others.wrong[:3]}, {DRIVER.arena.used} bytes left")
    return int(bool(others.wrong or DRIVER.arena.used))


if __name__ == "__main__":
    sys.exit(main())
