"""Who uses the memory of Variables now: one that writes, or any number that read.

A call takes all the Variables that it uses at once, or none, so that no order of locks is needed
and none deadlocks: its results are those of some serial order.  The launcher does so for a native
call (`fusec_hold` in ``runtime/native/holds.py``), everything that runs in Python with a `Hold`.
Both mark the same words, which only a thread with the interpreter's lock reads and changes.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import locks

HOLDERS, WRITERS_WAITING = range(2)  # words: -1 for one that writes, else how many read
_FIRST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3
Use = tuple["Occupancy", bool]  # and whether it writes


class Occupancy:
    """The words of one Variable."""

    __slots__ = ("__weakref__", "address", "words")

    def __init__(self) -> None:
        self.words = np.zeros(2, np.int64)
        self.address: int = self.words.__array_interface__["data"][0]
        _all[self.address] = self


_all: weakref.WeakValueDictionary[int, Occupancy] = weakref.WeakValueDictionary()
_thread = threading.local()
_lock = locks.Lock()  # of what Python changes


def _take_in_python(table: Any, count: int) -> bool:
    """`fusec_hold`, before there is native code."""
    uses = [(_all[table[2 * i]].words, table[2 * i + 1]) for i in range(count)]
    if any(words[HOLDERS] if writes else words[HOLDERS] < 0 or words[WRITERS_WAITING]
           for words, writes in uses):
        return False
    for words, writes in uses:
        words[HOLDERS] = -1 if writes else words[HOLDERS] + 1
    return True


def _give_in_python(table: Any, count: int) -> None:
    for i in range(count):
        words = _all[table[2 * i]].words
        words[HOLDERS] = 0 if table[2 * i + 1] else words[HOLDERS] - 1


class _Marks:
    """How words are marked: in Python, until the launcher is made."""

    take: Callable[[Any, int], Any] = staticmethod(_take_in_python)
    give: Callable[[Any, int], Any] = staticmethod(_give_in_python)


def mark_natively(take: Callable[[Any, int], Any], give: Callable[[Any, int], Any]) -> None:
    """Mark words by these from now on: functions of a table of (address, writes) pairs, and how
    many there are."""
    with _lock:
        _Marks.take, _Marks.give = staticmethod(take), staticmethod(give)


class Hold:
    """``with Hold(uses):`` nobody else writes what is used, or reads what is written.

    What this thread holds already it goes on to hold: code that a call runs may use them.
    """

    __slots__ = ("_uses",)

    def __init__(self, uses: Sequence[Use]) -> None:
        self._uses = uses

    def __enter__(self) -> None:
        stack = _thread.__dict__.setdefault("stack", [])
        own = {address for table in stack for address in table[::2]}
        uses = [use for use in self._uses if use[0].address not in own]
        table = (ctypes.c_int64 * (2 * len(uses)))(
            *(word for use in uses for word in (use[0].address, use[1])))
        _wait_for(table, uses)
        stack.append(table)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        table = _thread.stack.pop()
        with _lock:
            _Marks.give(table, len(table) // 2)


def _taken(table: Any) -> bool:
    with _lock:
        return bool(_Marks.take(table, len(table) // 2))


def _wait_for(table: Any, uses: Sequence[Use]) -> None:
    """Take them; new readers let one that waits to write go first."""
    if _taken(table):
        return
    waiting = [use.words for use, writes in uses if writes]
    _count(waiting, 1)
    pause = _FIRST_PAUSE
    try:
        while not _taken(table):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    finally:
        _count(waiting, -1)


def _count(waiting: Sequence[np.ndarray], by: int) -> None:
    with _lock:
        for words in waiting:
            words[WRITERS_WAITING] += by


def _after_fork_in_child() -> None:
    """No thread that held something, but the one that forked, exists here."""
    own = {address for table in _thread.__dict__.get("stack", ()) for address in table[::2]}
    for occupancy in list(_all.values()):
        if occupancy.address not in own:
            occupancy.words[:] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

__all__ = ["Hold", "Occupancy", "Use", "mark_natively"]
