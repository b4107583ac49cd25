"""Ctrl-C in a loop of a GPU of 10⁵ iterations: what is still to be done when the signal comes takes
less than a tenth of a second by the figures of an H200.  One kernel looks at a word of the host's
in time; of launches a few are under way, and none is asked for after the signal."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from fake_cupy import FakeCupy, as_gpu

import fusec
from fusec.codegen.cuda.persistent import choice
from fusec.codegen.cuda.programs.launch_queue import MOST, MOST_UNDER_WAY, LaunchQueue
from fusec.codegen.cuda.programs.program import AtOnce
from fusec.codegen.kernels import kernel_nodes
from fusec.core.records import replace
from fusec.ir.sizes.dims import symbol

STEPS = 100_000
LEAST_US = 5.0  # of a launch whose time is not estimated: a product of 128 x 128 takes 3.4
RNG = np.random.default_rng(0)


def waiting(a: Any, v: Any) -> Any:
    """A ``while`` that ends when the data say so, with a product in each iteration."""
    n = 0
    while n < STEPS and v.sum() < 1e300:
        v = a @ v
        v = v / np.abs(v).max()
        n += 1
    return v


def counted(a: Any, v: Any) -> Any:
    for _ in range(STEPS):
        v = a @ v
        v = v / np.abs(v).max()
    return v


def numbers_of_data(a: Any, v: Any) -> Any:
    n = 0
    while n < STEPS and v.sum() < 1e300:
        v = v * 0.5 + a[0]
        n += 1
    return v


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    monkeypatch.setattr(kernel_nodes, "ONE_KERNEL", 0)
    with as_gpu(monkeypatch, 3) as fake:
        fake.pool.keeps = True
        yield fake


def under_way(cupy: FakeCupy) -> int:
    """Kernels, products and events that the GPU has been asked for and has not done."""
    return len(cupy.driver.streams)


@contextmanager
def interrupted_at(
    iteration: int, monkeypatch: pytest.MonkeyPatch, note: Callable[[LaunchQueue], None]
) -> Iterator[None]:
    """The user's Ctrl-C in this iteration."""
    turn, count = LaunchQueue.turn, 0

    def turned(queue: LaunchQueue) -> None:
        nonlocal count
        count += 1
        if count == iteration:
            note(queue)
            signal.raise_signal(signal.SIGINT)
        turn(queue)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(LaunchQueue, "turn", turned)
            yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("program", [waiting, counted, numbers_of_data])
@pytest.mark.parametrize("iteration", [3, 150, 1001])
def test_few_launches_are_under_way(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, program: Any, iteration: int
) -> None:
    """In the launched loop, before and after it became graphs."""
    monkeypatch.setattr(choice, "forced", "launched")
    g = fusec.jit(program)
    there = cupy.asarray(RNG.uniform(0, 1, (50, 50))), cupy.asarray(RNG.uniform(0, 1, 50))
    control = g.concrete(*there).control[-1]
    assert "text that launches" in control.reason
    left, held = list[int](), list[int]()

    def note(queue: LaunchQueue) -> None:
        left.append(under_way(cupy))
        held.append(len(queue._waiting))
        cupy.calls.clear()

    with interrupted_at(iteration, monkeypatch, note), pytest.raises(KeyboardInterrupt):
        g(*there)
    after = sum(x == "graph" or "cublas" in x or "nest" in x for x in cupy.calls)
    assert after <= held[0] < MOST, "what the iterations until then have asked for, no more"
    estimate = re.search(r"(\S+) us as (\d+) launch", control.reason)
    us = LEAST_US if estimate is None else max(LEAST_US, float(estimate[1]) / int(estimate[2]))
    assert left[0] <= MOST_UNDER_WAY * (MOST + 1) + 1
    assert (left[0] + held[0]) * us < 0.1 * 1e6


def relaxed(x: Any, n: Any) -> Any:
    for _ in range(n):
        x[1:-1] = x[:-2] * 0.5 + x[2:] * 0.5
    return x


def powers(a: Any, n: Any) -> Any:
    b = a
    for _ in range(n):
        b = a @ b
        b = b / b.max()
    return b


@pytest.mark.parametrize(("program", "n", "us"), [
    (relaxed, 1000, 1), (relaxed, 1 << 27, 2 * 8 * 2**27 / 3e6), (powers, 200, 1),
    (powers, 8192, 2 * 8192**3 / 2e7)])
def test_of_long_launches_few_are_asked_for(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, program: Any, n: int, us: float
) -> None:
    """So that all are over in time."""
    monkeypatch.setattr(choice, "forced", "launched")
    x = np.empty((n,) * (1 if program is relaxed else 2))  # which nobody reads
    run: Any = fusec.jit(program, device="GPU:0").concrete(x, np.int64(2)).control[-1].run
    assert run.program.code.most({}) == max(1, min(MOST, int(1e5 / 3 / us)))


def test_sizes_of_the_call_count(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", "launched")
    form: Any = fusec.jit(relaxed, device="GPU:0").concrete(
        np.empty(900), np.int64(2)).control[-1].run.program.nests[0]
    n = symbol("n")
    operands = tuple(replace(o, strides=(8,)) for o in form.operands)
    asked = AtOnce([replace(form, extents=(n,), operands=operands)], (), {"n"})
    assert [asked({"n": size}) for size in (100, 1 << 27)] == [MOST, 46]
