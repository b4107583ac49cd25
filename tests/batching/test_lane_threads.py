"""Loops over lanes on several threads: the values, exceptions, signals, and processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from forks import does_well
from lane_programs import PROGRAMS, LaneProgram
from test_programs_in_lanes import compare

import fusec
from fusec.runtime.lanes import lane_runs, lane_threads

LOOPS = [p for p in PROGRAMS if "<lambda>" not in p.f.__qualname__ and p.name != "recurrence"]


@pytest.fixture
def many_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ranges of few lanes, and more threads than cores: all of it happens in short loops too."""
    monkeypatch.setattr(lane_runs, "FIRST", 3)
    monkeypatch.setattr(lane_runs, "SHORT_NS", 0)
    monkeypatch.setattr(lane_runs, "MEASURED_NS", 0)
    monkeypatch.setattr(lane_runs, "RANGE_NS", 2000)
    with fusec.config.override(num_threads=4):
        yield


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("program", LOOPS, ids=lambda p: p.name)
def test_programs_on_threads(program: LaneProgram) -> None:
    compare(program, 300)


def counted(n: Any) -> Any:
    x, k = 0.5, 0
    while k < n:
        x = np.sin(x) + 0.1
        k += 1
    if k == 777:
        raise ValueError("777 steps")
    return x


@pytest.mark.usefixtures("many_threads")
def test_lanes_of_different_lengths_run_on_several_threads() -> None:
    seen = set[int]()
    take = lane_threads.Job.take

    def noted(job: Any) -> Any:
        seen.add(threading.get_ident())
        return take(job)

    lengths = np.full(2000, 1000)
    lengths[[3, 900]] = 200_000
    f = fusec.vmap(counted)
    want = f(lengths)
    lane_threads.Job.take = noted  # type: ignore[method-assign]
    try:
        np.testing.assert_array_equal(f(lengths), want)
    finally:
        lane_threads.Job.take = take  # type: ignore[method-assign]
    assert len(seen) > 1
    with fusec.config.override(num_threads=1):
        np.testing.assert_array_equal(f(lengths), want)


@pytest.mark.parametrize("count", [5, 3000])
def test_the_first_lane_that_raises_is_named(count: int, many_threads: None) -> None:
    lengths = np.full(count, 50)
    lengths[[2, count - 2]] = 777
    with pytest.raises(ValueError, match="777 steps") as caught:
        fusec.vmap(counted)(lengths)
    assert "in lane 2" in caught.value.__notes__


def test_the_index_of_the_first_lane_out_of_range(many_threads: None) -> None:
    def f(x: Any, n: Any) -> Any:
        total = 0.0
        for k in range(n):
            total += x[k]
        return total

    n = np.full(500, 3)
    n[[200, 400]] = 9
    x = np.ones((500, 7))
    np.testing.assert_array_equal(fusec.vmap(f)(x, np.minimum(n, 7)), np.minimum(n, 7))
    with pytest.raises(IndexError, match="index 7 is out of bounds") as caught:
        fusec.vmap(f)(x, n)
    assert "in lane 200" in caught.value.__notes__


def test_calls_of_several_threads_at_once(many_threads: None) -> None:
    f = fusec.vmap(counted)
    inputs = [np.arange(k, k + 400) % 700 for k in range(6)]
    want, got = [f(x) for x in inputs], [None] * 6

    def run(k: int) -> None:
        got[k] = f(inputs[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(x, y)


def test_in_a_forked_process(many_threads: None) -> None:
    f = fusec.vmap(counted)
    lengths = np.arange(300)
    want = f(lengths)
    assert does_well(lambda: np.array_equal(f(lengths), want))


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_ends_long_lanes() -> None:
    lengths = np.full(64, 10)
    f = fusec.vmap(counted)
    f(lengths)
    lengths[30:] = 1 << 40  # hours
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with fusec.config.override(num_threads=3), pytest.raises(KeyboardInterrupt):
        f(lengths)
    assert time.perf_counter() - start < 20
