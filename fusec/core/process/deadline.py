"""Ending a call that takes too long, in whatever thread it runs: a timer interrupts it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from fusec.errors import user_error

from .interruption import Interruption

T = TypeVar("T")


class _Expired(BaseException):
    """Raised in the thread whose time is over; no handler of a program's own takes it."""


def _run(seconds: float, call: Callable[[], T]) -> T:
    """The call's result; raises `_Expired`."""
    own = Interruption()
    timer = threading.Timer(seconds, own.send, (own.begin(), _Expired))
    timer.daemon = True
    try:
        try:
            timer.start()
            result = call()
        finally:
            own.end()
        timer.cancel()
        own.settle()
    except BaseException:
        timer.cancel()
        own.settle()
        raise
    return result


def within(seconds: float | None, call: Callable[[], T], name: str) -> tuple[T, float]:
    """The result of the call, and the seconds that it took.

    Raises ``TimeoutError`` where that is more than ``seconds``.
    """
    start = time.perf_counter()
    if seconds is None:
        return call(), time.perf_counter() - start
    try:
        result = _run(seconds, call)
    except _Expired:
        raise user_error(
            TimeoutError, f"{name} did not end within {seconds} s", None,
            "give it more time, or look where it is: RunOptions(trace=True)") from None
    return result, time.perf_counter() - start
