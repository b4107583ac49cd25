"""Medians, order-statistic intervals, and the figures' text."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.bench.measuring.stats import count, coverage, digits, duration, interval_rank, summarise


def test_coverage_is_the_binomial_figure():
    assert coverage(6, 1) == pytest.approx(1 - 2 / 64)
    assert coverage(10, 2) == pytest.approx(0.978515625)  # tabulated, David and Nagaraja


def test_six_samples_are_enough_for_95_per_cent():
    assert coverage(5, 1) < 0.95 <= coverage(6, 1)
    assert interval_rank(5) == interval_rank(8) == 1
    assert interval_rank(9) == 2


def test_interval_covers_the_median_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(1000):
        timing = summarise(list(rng.exponential(size=15)))
        hits += timing.low <= np.log(2.0) <= timing.high
    assert timing.confidence >= 0.95
    assert abs(hits / 1000 - timing.confidence) < 0.02


def test_summary():
    timing = summarise([3.0, 1.0, 2.0, 4.0], calls=7)
    assert (timing.seconds, timing.low, timing.high) == (2.5, 1.0, 4.0)
    assert (timing.samples, timing.calls_per_sample) == (4, 7)
    assert summarise([1.0]).confidence == 0.0
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


@pytest.mark.parametrize(("seconds", "text"), [
    (1.5, "1.50 s"), (0.9999, "1.00 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"),
    (7.8e-8, "78.0 ns"), (0.0, "0 ns"),
])
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_digits_and_count():
    assert [digits(v) for v in (123.4, 12.34, 1.234, 0.01234)] == ["123", "12.3", "1.23", "0.0123"]
    assert [count(v) for v in (100, 1000, 1536, 3e5, 1e6, 2.5e9)] == [
        "100", "1k", "1.54k", "300k", "1M", "2.5G"]
