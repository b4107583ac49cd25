"""Medians with distribution-free confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median, a confidence interval, how many samples, of how many calls.

    ``confidence`` is the interval's exact coverage from order statistics: at least 0.95 from six
    samples on; with fewer the interval is the whole range and covers less.
    """

    seconds: float
    low: float
    high: float
    samples: int
    calls_per_sample: int
    confidence: float

    def __str__(self) -> str:
        return f"{duration(self.seconds)} [{duration(self.low)}, {duration(self.high)}]"


def coverage(n: int, k: int) -> float:
    """The chance that the median lies between the k-th smallest and k-th largest of n samples.

    Each sample falls below the median with probability one half, independently, so the count below
    is binomial (H. A. David and H. N. Nagaraja, *Order statistics*, section 7.1).
    """
    outside = sum(math.comb(n, i) for i in range(k))
    return 1.0 - 2.0 * outside / 2.0**n


def interval_rank(n: int, confidence: float = 0.95) -> int:
    """The largest k (from 1) whose interval still covers the median with ``confidence``."""
    k = 1
    while 2 * (k + 1) <= n and coverage(n, k + 1) >= confidence:
        k += 1
    return k


def summarise(samples: Sequence[float], calls: int = 1) -> Timing:
    """The median of seconds per call; raises ``ValueError`` when there are no samples."""
    if not samples:
        raise ValueError("internal error: no samples to summarise")
    ordered, n = sorted(samples), len(samples)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0
    k = interval_rank(n)
    return Timing(middle, ordered[k - 1], ordered[n - k], n, calls, max(0.0, coverage(n, k)))


def duration(seconds: float) -> str:
    """Three digits and a unit: ``1.23 ms``."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(seconds) * factor >= 0.9995:
            return f"{digits(seconds * factor)} {unit}"
    return f"{digits(seconds * 1e9)} ns"


def digits(value: float) -> str:
    """Three significant digits without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.3g}")
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{value:.{decimals}f}"


def count(value: float) -> str:
    """A round figure for a number of calls or elements: ``1.2k``, ``3.4M``."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{float(digits(value / factor)):g}{unit}"
    return f"{value:.0f}"
