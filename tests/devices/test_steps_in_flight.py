"""Several steps over devices at once, and steps that begin in odd places: a forked child, a
device's own thread, a signal handler, a print."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import io
import json
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from test_threads import _child_status

import fusec
from fusec.errors import UnsupportedError
from fusec.runtime.devices import device_thread, registry
from fusec.runtime.partitions.rendezvous import RENDEZVOUS, Process

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
X, M = np.linspace(0.0, 1.0, 500), 3 * np.eye(3)


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2):
        yield
    assert len(RENDEZVOUS) == 0


def divided(k: float, variable: fusec.Variable | None = None) -> Any:
    @fusec.jit
    def f(x, m):
        with fusec.device("CPU:1"):
            y = np.sort(x)[::-1] + k
        with fusec.device("CPU:0"):
            z = np.linalg.inv(m + k * np.eye(3))
        if variable is not None:
            variable.assign_add(y[:4] * 0 + k)
        return y + z[0, 0]

    return f


class Caller:
    """A divided function and its result: ``is_right()`` calls it."""

    def __init__(self, k: float = 1.0, variable: fusec.Variable | None = None) -> None:
        self.function = divided(k, variable)
        self.want = self.function(X, M)
        assert self.function.traces[-1].build.call_plan.is_partitioned

    def is_right(self) -> bool:
        return bool(np.array_equal(self.function(X, M), self.want))


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Run it in so many threads at once; an exception of one is raised here."""
    raised: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True)
               for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for error in raised:
        raise error


def test_eight_threads_call_the_same_functions_and_others() -> None:
    variable = fusec.Variable(np.zeros(4))
    callers = [Caller(float(k), variable) for k in (1, 2, 3)]
    variable.assign(np.zeros(4))

    def work(number: int) -> None:
        for step in range(60):
            assert callers[(number + step) % 3].is_right()

    in_threads(8, work)
    assert variable.numpy().tolist() == [8 * 60 * 2.0] * 4


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_forked_child_runs_steps(is_busy: bool) -> None:
    caller, ends = Caller(), threading.Event()

    def go_on() -> None:
        while not ends.is_set():
            assert caller.is_right()

    other = threading.Thread(target=go_on)
    if is_busy:
        other.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                os._exit(0 if len(RENDEZVOUS) == 0 and caller.is_right() else 1)
            assert _child_status(child) == 0
            assert caller.is_right()
    finally:
        ends.set()
        if is_busy:
            other.join()


class Stream(io.StringIO):
    """Calls a function when it is written to for the first time."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self.calls = [call]

    def write(self, text: str) -> int:
        while self.calls:
            self.calls.pop()()
        return super().write(text)


@fusec.jit
def printing(x, n):
    with fusec.device("CPU:1"):
        t = 0.0
        for i in range(n):
            t = t * 0.5 + x[i % 100]
    fusec.print("the first element is", x[0])
    with fusec.device("CPU:0"):
        return np.sort(x)[::-1] + t


def test_a_fork_in_the_middle_of_a_step_is_an_error_in_the_child() -> None:
    """The parent's step goes on."""
    want = [printing(X, n) for n in (99, 100)]
    child: list[int] = []
    stream = Stream(lambda: child.append(os.fork()))
    try:
        with contextlib.redirect_stdout(stream):
            got = printing(X, 10_000_000)
        is_right = got.shape == want[0].shape
    except UnsupportedError as error:
        is_right = "in the middle of a call over several devices" in str(error)
        if child == [0]:
            os._exit(0 if is_right and len(RENDEZVOUS) == 0 else 1)
    if child == [0]:
        os._exit(2)
    assert is_right
    assert _child_status(child[0]) == 0
    np.testing.assert_array_equal(printing(X, 100), want[1])


def test_a_step_that_begins_on_a_devices_thread() -> None:
    """Both devices at once: each would wait for the other."""
    caller, answers = Caller(), []
    ends = [threading.Event() for _ in range(40)]
    for number, end in enumerate(ends):
        def work(end: threading.Event = end) -> None:
            try:
                answers.append(caller.is_right())
            finally:
                end.set()
        registry.devices()[number % 2].submit(work)
    assert all(end.wait(30) for end in ends)
    assert answers == [True] * 40


def test_where_no_thread_can_be_started_callers_do_the_work(
    monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller()
    for device in registry.devices():
        device.close()
    monkeypatch.setattr(device_thread.DeviceThread, "_start", lambda self: False)

    def work(number: int) -> None:
        for _ in range(50):
            assert caller.is_right()

    in_threads(4, work)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")
def test_a_step_in_a_signal_handler() -> None:
    """It may interrupt its thread where that holds a lock that a device waits for."""
    caller, inner, random, answers = Caller(1.0), Caller(2.0), Random(0), list[bool]()
    old = signal.signal(signal.SIGALRM, lambda *_: answers.append(inner.is_right()))
    try:
        for _ in range(400):
            signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-3 * random.random())
            assert caller.is_right()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(answers) > 20 and all(answers)


def test_steps_in_tasks_and_generators() -> None:
    callers = [Caller(float(k)) for k in (1, 2, 3)]

    async def task(caller: Caller) -> bool:
        answers = []
        for _ in range(10):
            answers.append(caller.is_right())
            await asyncio.sleep(0)
        return all(answers)

    async def tasks() -> list[bool]:
        return await asyncio.gather(*map(task, callers))

    assert asyncio.run(tasks()) == [True] * 3
    assert list(caller.is_right() for caller in callers) == [True] * 3  # noqa: C400


# ---- what calls see of their caller ----------------------------------------------------------


@fusec.jit
def squares(x, y):
    with fusec.device("CPU:1"):
        a = x @ x
    with fusec.device("CPU:0"):
        b = y @ y
    return np.sort(np.array([a, b]))


BIG = np.full(40, 1e200)


def test_devices_see_the_callers_errstate() -> None:
    squares(X, X)
    squares(X[:40], X[:40])
    assert squares.traces[-1].build.call_plan.is_partitioned
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert squares(BIG, BIG).tolist() == [np.inf] * 2
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow") as raised:
        squares(BIG, X[:40])
    assert "a = x @ x" in raised.value.__notes__[0]


def test_a_handler_of_the_callers_runs_on_a_devices_thread() -> None:
    """It calls a divided function, and reads a context variable of the caller."""
    caller, variable = Caller(), contextvars.ContextVar[str]("variable")
    seen = []
    with np.errstate(over="call", call=lambda *_: seen.append(
            (threading.current_thread().name, variable.get(), caller.is_right()))):
        variable.set("the caller's")
        squares(BIG, BIG)
    assert sorted(seen) == [(f"fusec-CPU:{i}", "the caller's", True) for i in (0, 1)]


def test_warnings_of_devices_are_seen_as_the_caller_says() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        squares(BIG, BIG)
    assert [(str(w.message), w.filename) for w in seen] == 2 * [
        ("overflow encountered in matmul", "<plan of squares>")]
    with warnings.catch_warnings(), pytest.raises(RuntimeWarning, match="overflow") as raised:
        warnings.simplefilter("error")
        squares(X[:40], BIG)
    assert "b = y @ y" in raised.value.__notes__[0]


# ---- prints, warnings and random numbers -----------------------------------------------------


def outspoken(x: Any, rng: Any, m: Any) -> Any:
    fusec.print("begin", x[0])
    with fusec.device("CPU:1"):
        y = np.sort(x)[::-1]
        fusec.print("y", y[:2])
    r = rng.normal(size=3)
    with fusec.device("CPU:0"):
        z = np.linalg.inv(m)
        fusec.print("z", z[0])
    warnings.warn("the middle", stacklevel=1)
    for i in range(3):
        with fusec.device("CPU:1"):
            y = y + np.sort(y)
            fusec.print("loop", i, y[0])
    last = rng.uniform()
    with fusec.device("CPU:0"):
        w = np.linalg.cholesky(m)
    fusec.print("end", last)
    return y, r, z, w


@pytest.mark.parametrize("m", [np.eye(2), np.zeros((2, 2)), -np.eye(2)], ids=[
    "no error", "an error in the middle", "an error near the end"])
def test_prints_warnings_and_draws_are_those_of_the_program(m: np.ndarray) -> None:
    f = fusec.jit(outspoken)
    ends = []
    for function in (outspoken, f, f):
        rng, out, raised = np.random.default_rng(0), io.StringIO(), None
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                function(X[:5], rng, m)
            except np.linalg.LinAlgError as error:
                raised = str(error).splitlines()[0]
        ends.append((out.getvalue(), [(str(w.message), w.lineno) for w in seen], raised,
                     rng.bit_generator.state["state"]))
    assert f.traces[-1].build.call_plan.is_partitioned
    assert ends[0] == ends[1] == ends[2]


def test_a_print_that_fails_and_one_that_calls_a_divided_function() -> None:
    caller, answers = Caller(), []
    want = [printing(X, n) for n in (99, 100)]

    def fail() -> None:
        raise OSError("no space left on device")

    with contextlib.redirect_stdout(Stream(fail)), pytest.raises(OSError, match="no space"):
        printing(X, 100)
    with contextlib.redirect_stdout(Stream(lambda: answers.append(caller.is_right()))):
        np.testing.assert_array_equal(printing(X, 100), want[1])
    assert answers == [True]


def test_a_variable_counts_the_steps_that_succeed() -> None:
    """Others of the same function fail, or run out of time, meanwhile."""
    variable = fusec.Variable(0)

    @fusec.jit
    def f(x, m, n):
        with fusec.device("CPU:1"):
            t = 0.0
            for i in range(n):
                t = t * 0.5 + x[i % 100]
        with fusec.device("CPU:0"):
            z = np.linalg.inv(m)
        variable.assign_add(1)
        return z + t

    want = [f(X, M, n) for n in (99, 100)][1]
    endless = f.concrete(X, M, 1 << 40)
    variable.assign(0)

    def work(number: int) -> None:
        for step in range(24):
            if step % 8 == number:
                with pytest.raises(TimeoutError):
                    endless.run(X, M, 1 << 40, options=fusec.RunOptions(timeout=0.02))
            elif step % 3:
                assert np.array_equal(f(X, M, 100), want)
            else:
                with pytest.raises(np.linalg.LinAlgError):
                    f(X, 0 * M, 100)

    in_threads(6, work)
    succeeded = sum(bool(step % 8 != number and step % 3)
                    for number in range(6) for step in range(24))
    assert variable.numpy() == succeeded


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_another_incarnation() -> None:
    mine = Process.incarnation
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, str(Process.incarnation).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    its = int(os.read(read, 100))
    os.close(read)
    os.close(write)
    assert mine and its and mine != its and Process.incarnation == mine


def test_a_value_is_sent_before_what_its_device_does_next(tmp_path: Path) -> None:
    @fusec.jit
    def f(x, n):
        with fusec.device("CPU:0"):
            first = np.sort(x)
        with fusec.device("CPU:1"):
            far = np.sort(np.sin(first))
        with fusec.device("CPU:0"):
            y, i = x[0], 0
            while i < n[0]:
                y, i = y * 0.5 + 1.0, i + 1
        return far, y

    args = np.ones(100), np.array([20_000_000])  # 0.05 s or more
    f(*args)
    with fusec.profile(tmp_path / "trace.json"):
        f(*args)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = {e["name"]: e for e in events if e["ph"] == "X" and e["cat"] in ("library", "control")}
    loop, far = spans["Loop"], spans["Sort_1"]
    assert far["ts"] < loop["ts"] + loop["dur"]
