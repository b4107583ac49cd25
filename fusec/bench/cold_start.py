"""Cold compile: the first call of functions of ten operations, in fusec and in JAX, in turn.

Each function is new, so nothing of it can be cached in the process.  The first one also pays for
a compiler's loading and setting up, once; it is reported apart from the median of the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusec import config

from .measuring.adapter import FusecBackend, MeasuredBackend
from .measuring.stats import digits
from .peers import peers
from .programs.ten_operations import FUNCTIONS

SIZE = 1000


@dataclass(frozen=True)
class Cold:
    """Milliseconds of the first call in the process, and of later first calls with their range."""

    first_ms: float
    median_ms: float
    low_ms: float
    high_ms: float

    def __str__(self) -> str:
        return (f"{digits(self.median_ms)} ms [{digits(self.low_ms)}, {digits(self.high_ms)}], "
                f"{digits(self.first_ms)} ms the first time in a process")


def _first_call(compiled: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """Milliseconds of the first call less those of a later one."""
    start = time.perf_counter()
    compiled(*args)
    first = time.perf_counter()
    compiled(*args)
    return 1e3 * (2 * first - start - time.perf_counter())


def _summary(times: list[float]) -> Cold:
    later = times[1:]
    return Cold(times[0], float(np.median(later)), min(later), max(later))


def cold_compile(backend: MeasuredBackend | None = None) -> dict[str, Cold]:
    """Cold compile times by compiler: fusec, and JAX where installed."""
    compiler = backend or FusecBackend()
    args = tuple(np.random.default_rng(0).uniform(0.5, 2.0, (2, SIZE)))
    times: dict[str, list[float]] = {compiler.name: []}
    if peers.installed("jax"):
        times["jax"] = []
    for f in FUNCTIONS:
        with config.override(cache_dir="off"):  # machine code kept on disk is not compiled
            times[compiler.name].append(_first_call(compiler.jit(f), args))
        if "jax" in times:
            rival = peers.jax_function(f)
            times["jax"].append(_first_call(rival.call, rival.prepare(args)))
    return {name: _summary(values) for name, values in times.items()}


def lines(results: dict[str, Cold]) -> list[str]:
    """One line of text a compiler."""
    return [f"{name}: {cold}" for name, cold in results.items()]
