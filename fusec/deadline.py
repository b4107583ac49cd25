"""Ending a call that takes too long, in whatever thread it runs.

A timer has the interpreter raise an exception in the calling thread.  Python raises it before its
next instruction there; native loops look ten times a second (`fusec.runtime.native.interrupts`).
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from . import locks
from .errors import user_error

T = TypeVar("T")


class _Expired(BaseException):
    """Raised in the thread whose time is over; no handler of a program's own takes it."""


AGAIN_SECONDS = 0.2


class _Deadline:
    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._lock = locks.Lock()
        self._is_over = self._was_sent = False
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def end(self) -> None:
        """No exception comes after this; one that is on its way is taken.  To take it back would
        leave the interpreter looking for one for ever, in each function that a profiler watches
        (CPython 3.11)."""
        self._is_over = True
        self._timer.cancel()
        with self._lock:  # nothing is being sent any more
            was_sent = self._was_sent
        try:
            for _ in range(100 if was_sent else 0):  # it is raised at the next of them
                time.sleep(0)
        except _Expired:
            return

    def _expire(self) -> None:
        """Send the exception until the call has ended: one that is raised in a weak reference's
        callback, or a finaliser, is printed there and lost."""
        while not self._is_over:
            with self._lock:
                if not self._is_over:
                    self._was_sent = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self._thread), ctypes.py_object(_Expired))
            time.sleep(AGAIN_SECONDS)


def within(seconds: float | None, call: Callable[[], T], name: str) -> tuple[T, float]:
    """What the call returns, and the seconds that it took.

    Raises ``TimeoutError`` where that is more than ``seconds``.
    """
    start = time.perf_counter()
    if seconds is None:
        return call(), time.perf_counter() - start
    deadline = _Deadline(seconds)
    try:
        try:
            deadline.start()
            result = call()
        finally:
            deadline.end()
    except _Expired:
        raise user_error(
            TimeoutError, f"{name} did not end within {seconds} s", None,
            "give it more time, or look where it is: RunOptions(trace=True)") from None
    return result, time.perf_counter() - start
