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

from .errors import user_error

T = TypeVar("T")


class _Expired(BaseException):
    """Raised in the thread whose time is over; no handler of a program's own takes it."""


class _Deadline:
    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._is_over = True
        self._timer.cancel()
        _raise_in(self._thread, None)  # one that has not been raised yet

    def _expire(self) -> None:
        with self._lock:
            if not self._is_over:
                _raise_in(self._thread, _Expired)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error))


def within(seconds: float | None, call: Callable[[], T], name: str) -> tuple[T, float]:
    """What the call returns, and the seconds that it took.

    Raises ``TimeoutError`` where that is more than ``seconds``.
    """
    start = time.perf_counter()
    if seconds is None:
        return call(), time.perf_counter() - start
    try:
        with _Deadline(seconds):
            result = call()
    except _Expired:
        raise user_error(
            TimeoutError, f"{name} did not end within {seconds} s", None,
            "give it more time, or look where it is: RunOptions(trace=True)") from None
    return result, time.perf_counter() - start
