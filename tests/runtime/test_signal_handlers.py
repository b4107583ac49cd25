"""Handlers of signals that call jitted functions and Variables in the middle of a trace: a call of
its own each time, and nothing of it in the graph that is being traced."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.core.process.signal_handlers import handlers_around
from fusec.trace.values import trace as traces

X = np.arange(5.0)
LETTERS = "a loop over letters is run by Python, each iteration of it is traced " * 4
pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")


def is_tracing() -> bool:
    """Whether this thread is in the middle of a trace, whoever asks."""
    stack = getattr(traces._state, "stack", None)
    return bool(stack) and stack[-1][0] is not None


@contextmanager
def alarms(handler: Callable[[int, Any], Any]) -> Iterator[Callable[[], Any]]:
    """The handler is that of alarms; the result asks for them, every millisecond of the
    process's own: where others have the machine, a handler would not end before the next alarm."""
    before = signal.signal(signal.SIGVTALRM, handler)
    try:
        yield lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def long_program() -> Any:
    @fusec.jit
    def program(x):
        for _ in LETTERS:
            x = np.sin(x) * 1.5 + 0.25
        return x

    return program


def graph_of(program: Any) -> list[str]:
    return [node.op for node in program.traces[0].graph.nodes]


class Handler:
    """Calls a jitted function, each time with other values, and adds to a Variable."""

    def __init__(self) -> None:
        self.helper = fusec.jit(lambda a, b: np.cos(a) * b)
        self.count = fusec.Variable(0.0)
        self.inside = 0
        self.wrong: list[Any] = []

    def __call__(self, number: int, frame: Any) -> None:
        self.inside += is_tracing()
        a = X + self.inside
        got = self.helper(a, np.float64(2.0))
        self.count.assign_add(1.0)
        if type(got) is not np.ndarray or not np.allclose(got, np.cos(a) * 2.0):
            self.wrong.append(got)

    def method(self, number: int, frame: Any) -> None:
        self(number, frame)

    def with_more(self, more: str, *given: Any) -> None:
        self(*given)


@pytest.mark.parametrize("form", ["object", "method", "partial", "function"])
def test_what_a_handler_calls_is_no_part_of_the_trace(form) -> None:
    plain = long_program()
    expected = plain(X)
    own = Handler()
    handler = {"object": own, "method": own.method, "partial": functools.partial(
        own.with_more, "more"), "function": lambda number, frame: own(number, frame)}[form]
    with alarms(handler) as start:
        own(0, None)
        for _ in range(20):
            program = long_program()
            start()
            got = program(X)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            np.testing.assert_array_equal(got, expected)
            assert graph_of(program) == graph_of(plain)
            assert program.trace_count == 1 and not program.traces[0].variables
            if own.inside >= 5:
                break
    assert own.inside >= 5 and own.wrong == [] and own.helper.trace_count == 1
    assert own.count.numpy() > own.inside


def test_a_handler_may_call_the_function_that_is_being_traced() -> None:
    program, begun, results = long_program(), [], []

    def handler(number: int, frame: Any) -> None:
        if is_tracing() and not begun:  # the next alarm comes before this trace is done
            begun.append(frame)
            results.append(program(X + 1))

    with alarms(handler) as start:
        expected = long_program()(X), long_program()(X + 1)
        start()
        for _ in range(50):
            got = program(X)
            if results:
                break
            program = long_program()
    np.testing.assert_array_equal(got, expected[0])
    np.testing.assert_array_equal(results[0], expected[1])
    np.testing.assert_array_equal(program(X), expected[0])


def test_code_that_shares_a_handlers_code_is_of_the_trace() -> None:
    """It is a handler's frame that was given the frame that it interrupted."""
    helper = fusec.jit(lambda x: x * 3)

    def handler(number: Any, other: Any) -> Any:
        return helper(other)

    @fusec.jit
    def program(x):
        return handler(1, x + 1)

    with alarms(handler):
        np.testing.assert_array_equal(program(X), (X + 1) * 3)
    assert helper.trace_count == 0, "it is traced with the program"


def test_other_threads_and_processes_without_handlers_look_for_none() -> None:
    code, found = long_program.__code__, []
    assert handlers_around(code) is None
    with alarms(lambda number, frame: None):
        assert handlers_around(code) is not None
        thread = threading.Thread(target=lambda: found.append(handlers_around(code)))
        thread.start()
        thread.join()
    with alarms(fusec.jit(lambda number, frame: None)):  # whose code all jitted functions share
        found.append(handlers_around(code))
    assert found == [None, None]
