"""Calls of several threads that read and assign the same Variables: some serial order of them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from forks import ends_well

import fusec
from fusec.core.occupancy import Hold

LARGE = 300_000  # elements: the launcher gives the interpreter's lock up


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """The result of each; an exception of one is raised."""
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(i: int) -> None:
        start.wait()
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread waits for ever"
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.parametrize("size", [3, LARGE])
def test_first_and_later_calls_are_serial(size: int) -> None:
    a, b = fusec.Variable(np.zeros(size), name="a"), fusec.Variable(np.zeros(size), name="b")

    @fusec.jit
    def step(x: Any) -> Any:
        a.assign_add(x)
        b.assign(a * 2)
        return a[0], b[-1]

    @fusec.jit
    def look() -> Any:
        return np.abs(a * 2 - b).max()

    calls = 30

    def work(i: int) -> Any:
        if i % 2:
            return [look() for _ in range(calls)]
        return [step(1.0) for _ in range(calls)]

    results = in_threads(8, work)
    assert step.trace_count == 1 and (a.numpy() == 4 * calls).all()
    seen = sorted(float(x) for i, r in enumerate(results) if not i % 2 for x, _ in r)
    assert seen == list(range(1, 4 * calls + 1))  # each call saw another state
    assert all(y == 2 * x for i, r in enumerate(results) if not i % 2 for x, y in r)
    assert not any(any(r) for i, r in enumerate(results) if i % 2)


def test_plain_python_and_compiled_calls_are_serial() -> None:
    v = fusec.Variable(np.zeros(LARGE))
    step = fusec.jit(lambda x: v.assign_add(x)[0])

    def work(i: int) -> None:
        for _ in range(20):
            if i % 2:
                step(1.0)
            else:
                v.assign_add(1.0)
            read = v.numpy()
            assert read.min() == read.max()

    in_threads(8, work)
    assert (v.numpy() == 160).all()


def test_loops_and_library_calls_are_serial() -> None:
    v, n = fusec.Variable(np.eye(40)), fusec.Variable(0)

    @fusec.jit
    def turn(q: Any) -> Any:
        for _ in range(3):
            v.assign(v @ q)
        v.assign(np.linalg.inv(np.linalg.inv(v)))
        n.assign_add(1)
        return n

    q = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0]
    counts = in_threads(8, lambda _: [int(turn(q)) for _ in range(10)])
    assert sorted(c for part in counts for c in part) == list(range(1, 81))
    np.testing.assert_allclose(v.numpy(), np.linalg.matrix_power(q, 240), atol=1e-8)


def test_many_readers_let_a_writer_in() -> None:
    v = fusec.Variable(np.zeros(LARGE))
    read, stop = fusec.jit(lambda: (v * 2).sum()), threading.Event()

    def work(i: int) -> float:
        if i:
            while not stop.is_set():
                read()
            return 0.0
        read()
        start = time.perf_counter()
        for _ in range(5):
            v.assign_add(1)
        stop.set()
        return time.perf_counter() - start

    assert in_threads(6, work)[0] < 20


def test_code_that_a_call_runs_may_read_what_the_call_holds() -> None:
    v, seen = fusec.Variable(1.0), []
    other = fusec.jit(lambda: v * 10)

    class File:
        def write(self, text: str) -> None:
            seen.append((float(v), float(other())))

        def flush(self) -> None: ...

    file = File()

    @fusec.jit
    def f(x: Any) -> Any:
        fusec.print(x, file=file)
        return v.assign_add(x)

    assert other() == 10.0
    assert (f(1.0), f(1.0)) == (2.0, 3.0)
    assert len(seen) >= 2


def test_a_call_waits_for_what_another_holds() -> None:
    v = fusec.Variable(0.0)
    step = fusec.jit(lambda: v.assign_add(1))
    step()
    step()
    with v.alone():
        thread = threading.Thread(target=step)
        thread.start()
        thread.join(0.1)
        assert thread.is_alive() and v.buffer == 2
    thread.join(10)
    assert float(v) == 3


def test_what_is_raised_gives_everything_back() -> None:
    v = fusec.Variable(0.0)

    @fusec.jit
    def f(x: Any, i: Any) -> Any:
        v.assign_add(1)
        return x[i]

    for _ in range(3):
        with pytest.raises(IndexError):
            f(np.zeros(2), np.array([5]))
    with pytest.raises(ZeroDivisionError), v.alone():
        raise ZeroDivisionError
    assert not v.occupancy.words.any()
    assert f(np.ones(2), np.array([1])) == 1.0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_an_interrupt_leaves_nothing_taken() -> None:
    """Wherever Ctrl-C comes: another thread would wait for ever."""
    class Interrupt(Exception):
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupt

    v = fusec.Variable(np.zeros(3))
    step = fusec.jit(lambda: v.assign_add(1.0))
    step()  # from now on natively
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(400):
            with pytest.raises(Interrupt):
                # Python drops what is raised in a destructor: then another one comes.
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 1e-6 * (k % 100), 0.5)
                while True:
                    with v.alone():
                        v.assign(v + 1)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            assert not v.occupancy.words.any(), k
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_several_in_an_exit_stack_and_in_any_order() -> None:
    v, w = fusec.Variable(0.0), fusec.Variable(1.0)
    fusec.jit(lambda: v.assign_add(1))()
    with contextlib.ExitStack() as stack:
        stack.enter_context(v.alone())
        stack.enter_context(w.alone())
        assert v.occupancy.words[0] == w.occupancy.words[0] == -1
    first, second = v.alone(), w.alone()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert v.occupancy.words[0] == 0 and w.occupancy.words[0] == -1
    second.__exit__(None, None, None)
    assert not w.occupancy.words.any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_finds_them_free() -> None:
    v = fusec.Variable(0.0)
    step = fusec.jit(lambda: v.assign_add(1))
    step()
    started, stop = threading.Event(), threading.Event()

    def hold() -> None:
        with Hold([(v.occupancy, True)]):
            started.set()
            stop.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    child = ends_well(lambda: float(step()) == 2.0)
    stop.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
