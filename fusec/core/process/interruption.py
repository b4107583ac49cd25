"""Raising an exception in another thread, while that does one piece of work and not after it.

Python raises it before the thread's next instruction; native loops look ten times a second
(`fusec.runtime.native.interrupts`).
"""

from __future__ import annotations

import ctypes
import threading
import time

from .. import locks

AGAIN_SECONDS = 0.2


class Interruption:
    """Pieces of work that one thread does, one after the other, and others may interrupt.

        number = own.begin()  # in the thread that works
        try:
            try:
                work()
            finally:
                own.end()
            own.settle()
        except Stop:
            own.settle()

    From any other thread ``own.send(number, Stop)``.  `end` is a builtin: a function in Python
    could be interrupted before its first line, and interrupts from others would never end.
    """

    def __init__(self) -> None:
        self._working = locks.Lock()  # by the thread that works, while it does
        self._sending = locks.Lock()
        self._thread = self._number = 0
        self.sent: type[BaseException] | None = None  # to this piece of work
        self.end = self._working.release

    def begin(self) -> int:
        """Work begins in this thread; its number."""
        self._thread = threading.get_ident()
        self.sent = None
        self._number += 1
        self._working.acquire()
        return self._number

    def settle(self) -> None:
        """After the end: no exception comes after this; one that is on its way is raised in here.

        To take it back would leave the interpreter looking for one for ever, in each function that
        a profiler watches (CPython 3.11).
        """
        with self._sending:  # nothing is being sent any more
            kind = self.sent
        if kind is None:
            return
        try:
            for _ in range(100):  # it is raised at the next of them
                time.sleep(0)
        except kind:
            return

    def send(self, number: int, kind: type[BaseException]) -> None:
        """Have the exception raised until that piece of work ends."""
        if self.send_once(number, kind):
            self.send_again(number, kind)

    def send_once(self, number: int, kind: type[BaseException]) -> bool:
        """Whether that piece of work goes on, so that the exception is on its way."""
        with self._sending:
            if number != self._number or self._ends(0):
                return False
            self.sent = kind
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread), ctypes.py_object(kind))
            return True

    def send_again(self, number: int, kind: type[BaseException]) -> None:
        """One that is raised in a weak reference's callback, or a finaliser, is printed there and
        lost: send it until the work ends."""
        while not self._ends(AGAIN_SECONDS) and self.send_once(number, kind):
            pass

    def _ends(self, seconds: float) -> bool:
        ends: bool = self._working.acquire(timeout=seconds)
        if ends:
            self._working.release()
        return ends
