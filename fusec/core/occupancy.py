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
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from . import locks

HOLDERS, WRITERS_WAITING = range(2)  # words: -1 for one that writes, else how many read
VERSION, AWAY = range(2)  # facts: how often somebody began to write; whether the value is elsewhere
_DONE, _ASKS, _WAITS, _HAS = range(4)  # what a hold is at: the words count those that wait or have
_FIRST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3
Use = tuple["Occupancy", bool]  # and whether it writes


class Away(Protocol):
    """A value that is not in the Variable's own memory, but in that of a device."""

    def fetch(self) -> None:
        """Copy it to where the Variable has it by itself."""


class DeviceCopy(Protocol):
    """A value in the memory of a device."""

    version: int  # what `VERSION` was

    def of_version(self, version: int) -> DeviceCopy:
        """The same, of another version."""


class Occupancy:
    """The words of one Variable, and where its value is.

    ``copies`` are values in memories of devices, each with the `VERSION` that it is of; ``away``
    the one that is newer than the Variable's own memory.
    """

    __slots__ = ("__weakref__", "address", "away", "copies", "facts", "words")

    def __init__(self) -> None:
        every = np.zeros(4, np.int64)
        self.words, self.facts = every[:2], every[2:]
        self.address: int = every.__array_interface__["data"][0]
        self.away: Away | None = None
        self.copies: dict[Any, DeviceCopy] = {}
        _all[self.address] = self

    def leave_home(self, away: Away) -> None:
        """From now on this is its value; by who holds it for writing."""
        self.away = away
        self.facts[AWAY] = 1

    def come_home(self) -> None:
        """Have the value in the Variable's own memory; by who holds it.  To be interrupted does
        no harm: it is still away."""
        away = self.away
        if away is not None:
            away.fetch()
            self.stay_home()

    def renew(self) -> None:
        """Who holds it for writing has not written yet: copies of its value still are."""
        version = int(self.facts[VERSION])
        self.copies = {key: copy.of_version(version) for key, copy in self.copies.items()
                       if copy is self.away or copy.version >= version - 1}

    def stay_home(self) -> None:
        """The Variable's own memory has its value."""
        self.facts[AWAY], self.away = 0, None


_reducers: list[Callable[[Any], tuple[Any, ...]]] = []


def pickle_away(reduced: Callable[[Any], tuple[Any, ...]]) -> None:
    """Pickle Variables that live on workers so from now on."""
    _reducers.append(reduced)


def reduced_away(variable: Any) -> tuple[Any, ...]:
    """How pickle makes something of a Variable that lives on a worker: there is one, so somebody
    has said how."""
    return _reducers[-1](variable)


class _Thread(threading.local):
    """The holds that this thread has begun, newest last."""

    def __init__(self) -> None:
        self.holds: list[Hold] = []


_all: weakref.WeakValueDictionary[int, Occupancy] = weakref.WeakValueDictionary()
_thread = _Thread()
_lock = locks.Lock()  # of what Python changes


class Hold(ctypes.Structure):
    """``with Hold(uses):`` nobody else writes memory in use, or reads memory written to; once.

    This thread's earlier holds go on: code that a call runs may use their memory.

    An interrupt (Ctrl-C, a deadline) may come between any two bytecodes.  So the words and the
    hold's own state change together, in one call of native code, and leaving is such a call
    itself: a method in Python could be interrupted before its first line.  (Before there is native
    code Python does it, and can be.)
    """

    _fields_ = tuple((name, ctypes.c_int64) for name in (
        "at", "count", "table", "address", "writes"))  # the last two: a table of one

    def __init__(self, uses: Sequence[Use]) -> None:
        self.uses = uses

    def __enter__(self) -> None:
        holds, uses = _thread.holds, self.uses
        every = uses
        while holds and holds[-1].at == _DONE:
            holds.pop()
        if holds:
            own = {use.address for hold in holds if hold.at == _HAS for use, _ in hold.uses}
            uses = self.uses = [use for use in uses if use[0].address not in own]
            _note_writes(use for use in every if use[0].address in own)
        self._write_table(uses)
        try:
            holds.append(self)
            pause = _FIRST_PAUSE
            while not _Marks.take(self):
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            self._begin(every)
        except BaseException:
            _Marks.leave(self)
            raise

    def _begin(self, uses: Sequence[Use]) -> None:
        """They are held."""
        for use, _ in uses:
            use.come_home()

    def _write_table(self, uses: Sequence[Use]) -> None:
        """Pairs of an address and whether it is written."""
        words = [word for use, writes in uses for word in (use.address, writes)]
        if len(uses) == 1:
            ctypes.Structure.__init__(self, _ASKS, 1, ctypes.addressof(self) + _FIRST, *words)
        else:
            self.others = (ctypes.c_int64 * len(words))(*words)
            ctypes.Structure.__init__(self, _ASKS, len(uses), ctypes.addressof(self.others))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _leave_in_python(self)  # until `mark_natively`

    def marks(self) -> list[tuple[np.ndarray, bool]]:
        """The words, and whether they are written."""
        return [(use.words, writes) for use, writes in self.uses]


class HoldOfPlan(Hold):
    """The same for a plan over devices, which has copies in their memories; ``stays_away``: and
    reads no value on the host."""

    def __init__(self, uses: Sequence[Use], stays_away: bool) -> None:
        super().__init__(uses)
        self.stays_away = stays_away

    def _begin(self, uses: Sequence[Use]) -> None:
        for use, writes in uses:
            if not self.stays_away:
                use.come_home()
            if writes:
                use.renew()


class HoldToReplace(Hold):
    """The same for who writes all of these values: what they were, and whether that can still be
    had, does not matter."""

    def _begin(self, uses: Sequence[Use]) -> None:
        for use, _ in uses:
            use.stay_home()


_FIRST: int = Hold.address.offset


def _take_in_python(hold: Hold) -> bool:
    """`fusec_take`, before there is native code."""
    with _lock:
        marks = hold.marks()
        if any(words[HOLDERS] if writes else words[HOLDERS] < 0 or words[WRITERS_WAITING]
               for words, writes in marks):
            _count_waiting(marks, int(hold.at == _ASKS))
            hold.at = _WAITS
            return False
        _count_waiting(marks, -int(hold.at == _WAITS))
        _mark(marks)
        _note_writes(hold.uses)
        hold.at = _HAS
        return True


def _leave_in_python(hold: Hold) -> None:
    with _lock:
        marks = hold.marks()
        if hold.at == _HAS:
            for words, writes in marks:
                words[HOLDERS] += 1 if writes else -1
        _count_waiting(marks, -int(hold.at == _WAITS))
        hold.at = _DONE


def _mark(marks: Sequence[tuple[np.ndarray, bool]]) -> None:
    for words, writes in marks:
        words[HOLDERS] += -1 if writes else 1


def _note_writes(uses: Iterable[Use]) -> None:
    """Earlier copies of these are old from now on."""
    for use, writes in uses:
        use.facts[VERSION] += writes


def _count_waiting(marks: Sequence[tuple[np.ndarray, bool]], by: int) -> None:
    for words, writes in marks:
        words[WRITERS_WAITING] += by if writes else 0


class _Marks:
    """How words are marked: in Python, until the launcher is made."""

    take: Callable[[Hold], Any] = staticmethod(_take_in_python)
    leave: Callable[[Hold], Any] = staticmethod(_leave_in_python)


def mark_natively(take: int, leave: int) -> None:
    """Mark words by these native functions of a `Hold` from now on, given their addresses.

    The second is ``__exit__`` too, of whose other arguments it takes no notice.
    """
    pointer, other = ctypes.POINTER(Hold), ctypes.py_object
    method = ctypes.pythonapi.PyInstanceMethod_New
    method.argtypes, method.restype = (other,), other
    with _lock:
        _Marks.take = staticmethod(ctypes.PYFUNCTYPE(ctypes.c_int64, pointer)(take))
        _Marks.leave = staticmethod(ctypes.PYFUNCTYPE(None, pointer)(leave))
        Hold.__exit__ = method(  # type: ignore[method-assign]
            ctypes.PYFUNCTYPE(None, pointer, other, other, other)(leave))


def _before_fork() -> None:
    """A child cannot ask a GPU for its parent's arrays there."""
    for occupancy in list(_all.values()):
        occupancy.come_home()


def _after_fork_in_child() -> None:
    """No thread that held something, but the one that forked, exists here."""
    for occupancy in list(_all.values()):
        occupancy.words[:] = 0
    for hold in _thread.holds:
        if hold.at == _HAS:
            _mark(hold.marks())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)

__all__ = ["AWAY", "VERSION", "Hold", "HoldOfPlan", "HoldToReplace", "Occupancy", "Use",
           "mark_natively", "pickle_away", "reduced_away"]
