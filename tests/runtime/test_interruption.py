"""An exception for one piece of work reaches that, and nothing after it."""

from __future__ import annotations

import inspect
import random
import threading
import time
from collections.abc import Callable

from fusec.core.process import deadline
from fusec.core.process.interruption import Interruption


class Stop(BaseException):
    """The exception of these tests."""


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def interrupted(own: Interruption, work: Callable[[], None]) -> bool:
    """Whether `Stop` ended the work."""
    try:
        try:
            work()
        finally:
            own.end()
        own.settle()
    except Stop:
        own.settle()
        return True
    return False


def test_the_end_is_one_instruction() -> None:
    """A function in Python could be interrupted before its first line, and would not have ended."""
    assert inspect.isbuiltin(Interruption().end)


def test_what_runs_is_interrupted() -> None:
    own = Interruption()
    sender = threading.Thread(target=own.send, args=(own.begin(), Stop))

    def work() -> None:
        sender.start()
        spin(20)

    start = time.perf_counter()
    assert interrupted(own, work)
    assert time.perf_counter() - start < 10
    sender.join(10)
    assert not sender.is_alive()
    own.begin()
    assert not interrupted(own, lambda: spin(0.3))


def test_what_has_ended_is_not_interrupted() -> None:
    own = Interruption()
    first = own.begin()
    assert not interrupted(own, lambda: None)
    answers: list[bool] = []

    def send() -> None:
        answers.append(own.send_once(first, Stop))

    def work() -> None:
        sender = threading.Thread(target=send)
        sender.start()
        sender.join(10)

    work()
    own.begin()
    assert not interrupted(own, work)
    assert answers == [False, False]


def test_one_that_is_on_its_way_at_the_end_is_taken() -> None:
    own = Interruption()
    number = own.begin()

    def sends_at_the_end() -> None:
        sender = threading.Thread(target=own.send_once, args=(number, Stop))
        sender.start()
        sender.join(10)

    assert interrupted(own, sends_at_the_end) or own.sent is Stop
    spin(0.05)


def test_deadlines_at_the_moment_when_calls_end() -> None:
    random_ = random.Random(0)
    ended = late = 0
    for _ in range(300):
        try:
            deadline.within(0.002, lambda: spin(0.002 + random_.uniform(-4e-4, 4e-4)), "f")
            ended += 1
        except TimeoutError:
            late += 1
        spin(2e-4)  # it would be raised here
    spin(0.3)
    assert ended + late == 300
