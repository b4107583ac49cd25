"""Steps over several devices that fail, time out or are interrupted: one device's error,
nothing written, nothing left behind, and the next step right."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from failing_programs import FailingProgram, failing_program

import fusec
from fusec.placement.placed_graph import choosing
from fusec.runtime.partitions.rendezvous import RENDEZVOUS
from fusec.runtime.partitions.step import Step

PROGRAMS, STEPS = 10, 100  # of each program


# ---- errors ----------------------------------------------------------------------------------


class Compiled:
    """A program on one device, or at random placements over several."""

    def __init__(self, program: FailingProgram, devices: int, random: Random) -> None:
        self.program = program
        with fusec.config.override(logical_cpu_devices=devices):
            traced = fusec.jit(program.function).trace(*program.arguments())
            if devices == 1:
                lowered = traced.optimize().lower()
            else:
                with choosing(lambda node, feasible: random.choice(feasible)):
                    lowered = traced.optimize().lower()
        self.is_divided = lowered.call_plan.is_partitioned
        self.function = lowered.compile()

    def outcome(self, bad: tuple[int, ...]) -> list[Any]:
        """A step's exception with its notes, else its results; its output; then arguments and
        Variable, which have the program's assignments before that, and nothing more."""
        variable = self.program.variable
        variable.assign(np.arange(4.0))
        arguments, printed = self.program.arguments(bad), io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                results = self.function.run_leaves(list(arguments))
            ended: list[Any] = [x.tobytes() for x in results]
        except Exception as error:
            ended = [type(error), str(error), getattr(error, "__notes__", None)]
        kept = [x.tobytes() for x in arguments if isinstance(x, np.ndarray)]
        return [ended, printed.getvalue(), kept, variable.numpy().tobytes()]


def devices_threads() -> set[str]:
    """The threads of devices, whose names say which."""
    return {t.name for t in threading.enumerate() if t.name.startswith("fusec-CPU")}


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_step_that_fails_raises_what_one_device_raises(seed: int) -> None:
    """Of one node or two; nothing is written, and steps between them are right."""
    random = Random(seed)
    program = failing_program(random)
    devices = random.choice([2, 3, 4])
    one, several = Compiled(program, 1, random), Compiled(program, devices, random)
    assert several.is_divided
    raised, threads = 0, set[str]()
    for number in range(STEPS):
        bad = tuple(random.sample(program.failing, random.choice([0, 1, 1, 1, 2])))
        want = one.outcome(bad)
        assert several.outcome(bad) == want, f"{bad} in\n{program.source}"
        raised += not isinstance(want[0][0], bytes)
        assert len(RENDEZVOUS) == 0
        if number == STEPS // 4:
            threads = devices_threads()
    assert devices_threads() == threads
    assert raised > STEPS / 2
    assert not held_by_steps()


def held_by_steps() -> list[Any]:
    gc.collect()
    return [step.values for step in gc.get_objects() if type(step) is Step and (
        step.values or step.failure)]


@pytest.fixture
def two() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2):
        yield


@pytest.mark.usefixtures("two")
def test_what_a_failed_step_computed_is_freed_without_the_collector() -> None:
    @fusec.jit
    def f(x, m, i):
        with fusec.device("CPU:1"):
            y = np.sort(x)
        with fusec.device("CPU:0"):
            z = np.sort(x[::-1] * np.linalg.inv(m)[0, 0])
        with fusec.device("CPU:1"):
            return np.sort(y + z), y[i]

    m = np.eye(3)
    f(np.ones(50), m, 2)
    gc.collect()
    gc.disable()
    try:
        for matrix, index in ((np.zeros((3, 3)), 2), (m, 1 << 40)):
            for _ in range(3):
                x = np.ones(50)
                alive = weakref.ref(x)
                with pytest.raises((np.linalg.LinAlgError, IndexError)) as raised:
                    f(x, matrix, index)
                del x, raised
                assert alive() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("two")
def test_an_error_that_comes_first_is_raised_though_it_needs_what_is_sent() -> None:
    """The later one is raised at once; the earlier one's operand is sent after that."""
    @fusec.jit
    def f(x, m, n):
        with fusec.device("CPU:1"):
            t = 0.0
            for i in range(n):
                t = t * 0.5 + x[i % 3]
        with fusec.device("CPU:0"):
            u = np.linalg.inv(m * t)
        with fusec.device("CPU:1"):
            v = np.linalg.cholesky(m - np.eye(2))
        return u, v

    x, m = np.ones(3), np.eye(2) * 2
    f(x, m, 5), f(x, m, 6)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        f(x, np.zeros((2, 2)), 3_000_000)


# ---- interrupts ------------------------------------------------------------------------------

LONG = 1 << 40  # iterations: many minutes


@fusec.jit
def loops(x, n, a):
    """A native loop on each of two devices, and writes after their ends."""
    with fusec.device("CPU:0"):
        s = 0.0
        for i in range(n):
            s = s * 0.5 + x[i % 100]
    with fusec.device("CPU:1"):
        t = 0.0
        for i in range(n):
            t = t * 0.25 + x[i % 100]
        y = np.sort(x)[::-1] * t
    with fusec.device("CPU:0"):
        z = np.linalg.inv(np.eye(20) + y[0]) * s
    a[:] = z[0, 0]
    return z, y


class Loops:
    """Calls of `loops`; ``check`` makes a short one and looks at its results."""

    def __init__(self) -> None:
        self.x, self.a = np.linspace(0.0, 1.0, 100), np.zeros(3)
        for n in (999, 1000):
            self.want = loops(self.x, n, self.a)
        self.function = loops.concrete(self.x, LONG, self.a)
        self.check()
        self.threads = threading.active_count()

    def long(self) -> None:
        loops(self.x, LONG, self.a)
        raise AssertionError("it has ended")

    def check(self) -> None:
        assert len(RENDEZVOUS) == 0
        begin = time.perf_counter()
        for got, want in zip(loops(self.x, 1000, self.a), self.want, strict=True):
            np.testing.assert_array_equal(got, want)
        assert time.perf_counter() - begin < 2.0, "it has waited for a step that nobody wants"
        assert not held_by_steps()


@pytest.fixture
def long(two: None) -> Iterator[Loops]:
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Loops()
    signal.signal(signal.SIGINT, old)


def interrupted(call: Callable[[], None], *delays: float) -> float:
    """Seconds from the first Ctrl-C to the caller's KeyboardInterrupt; one after each delay."""
    sent: list[float] = []
    ended = threading.Event()

    def interrupt() -> None:
        for delay in delays:
            time.sleep(delay)
            if ended.is_set():
                return
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    try:
        try:
            thread.start()
            call()
        finally:
            ended.set()
    except KeyboardInterrupt:
        late = time.perf_counter() - sent[0]
    while True:
        try:
            thread.join()
            return late
        except KeyboardInterrupt:  # the second, which was on its way
            continue


@pytest.mark.alone
def test_a_time_out_ends_native_loops_on_devices(long: Loops) -> None:
    for _ in range(5):
        long.a[:] = -1.0
        begin = time.perf_counter()
        with pytest.raises(TimeoutError, match=r"loops did not end within 0\.2 s"):
            long.function.run(long.x, LONG, long.a, options=fusec.RunOptions(timeout=0.2))
        assert time.perf_counter() - begin < 1.0
        assert np.all(long.a == -1.0)
        long.check()
    assert threading.active_count() == long.threads


@pytest.mark.alone
def test_ctrl_c_at_random_moments(long: Loops) -> None:
    random = Random(0)
    late = []
    for _ in range(60):
        long.a[:] = -1.0
        late.append(interrupted(long.long, random.choice([0.001, 0.02, 0.05]) * random.random()))
        assert np.all(long.a == -1.0)
        long.check()
    print(f"60 times Ctrl-C: {np.mean(late):.3f} s on average, {max(late):.3f} at most")
    assert max(late) < 0.5
    assert threading.active_count() == long.threads


@pytest.mark.alone
def test_ctrl_c_while_a_step_is_being_cancelled(long: Loops) -> None:
    random = Random(1)
    for _ in range(12):
        delays = [0.01 * random.random(), 0.1 * random.random(), 0.05 * random.random()]
        assert interrupted(long.long, *delays) < 0.5
        long.check()
    assert threading.active_count() == long.threads


@pytest.mark.alone
def test_ctrl_c_does_not_reach_the_step_of_another_thread(long: Loops) -> None:
    """Both callers' work waits in the queues of the same devices."""
    ends = threading.Event()
    wrong: list[BaseException] = []
    counts = []

    def other() -> None:
        count, a = 0, np.zeros(3)
        try:
            while not ends.is_set():
                for got, want in zip(loops(long.x, 1000, a), long.want, strict=True):
                    np.testing.assert_array_equal(got, want)
                count += 1
        except BaseException as error:
            wrong.append(error)
        counts.append(count)

    callers = [threading.Thread(target=other) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        for _ in range(20):
            assert interrupted(long.long, 0.03) < 0.5
    finally:
        ends.set()
        for caller in callers:
            caller.join()
    assert not wrong
    assert min(counts) > 2
    long.check()


@pytest.mark.alone
@pytest.mark.usefixtures("long")
def test_ctrl_c_in_a_loop_whose_iterations_are_steps() -> None:
    @fusec.jit
    def f(x, y, n, a):
        while x[0] < n:
            with fusec.device("CPU:1"):
                y = np.sin(y) @ y
                y /= np.abs(y).max()
            with fusec.device("CPU:0"):
                x = x + 1
                if x[1] > 5:
                    x[2] = np.linalg.inv(x[:4].reshape(2, 2) + np.eye(2))[0, 0]
        a[:] = x[:3]
        return x, y

    random = np.random.default_rng(0)
    x, y, a = random.normal(size=30), random.normal(size=(30, 30)), np.zeros(3)
    f(x, y, 20.0, a)
    want = f(x, y, 30.0, a)
    for _ in range(40):
        a[:] = -1.0
        assert interrupted(lambda: f(x, y, 1e30, a), 0.05 * random.random()) < 0.5
        assert np.all(a == -1.0) and len(RENDEZVOUS) == 0
        for got, right in zip(f(x, y, 30.0, a), want, strict=True):
            np.testing.assert_array_equal(got, right)


@pytest.mark.usefixtures("two")
def test_a_time_out_in_any_thread() -> None:
    """Time-outs of some callers do not reach the steps of the others."""
    run = Loops()
    ends: list[str] = []

    def expire() -> None:
        for _ in range(4):
            try:
                run.function.run(run.x, LONG, np.zeros(3), options=fusec.RunOptions(timeout=0.1))
            except TimeoutError:
                ends.append("time-out")

    def go_on() -> None:
        for _ in range(30):
            for got, want in zip(loops(run.x, 1000, np.zeros(3)), run.want, strict=True):
                np.testing.assert_array_equal(got, want)
        ends.append("right")

    threads = [threading.Thread(target=t) for t in (expire, expire, go_on, go_on)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == ["right"] * 2 + ["time-out"] * 8
    run.check()
