"""Every lock of fusec is made here, so that a forked child finds all of them free.

A child has only the thread that forked: locks that another thread held would stay held for ever.
Most are simply made anew in the child, because the state they guard is whole between two bytecodes.
Those made with ``quiet=True`` guard state that is not, as LLVM's own: a fork waits for them, and
for modules of a trace that another thread is importing, whose locks Python does not make anew.
"""

from __future__ import annotations

import _imp
import _thread
import contextlib
import importlib
import os
import sys
import threading
import time
import weakref
from typing import Any

_IMPORTED = sys.stdlib_module_names | {"fusec", "llvmlite", "numpy", "optree"}  # by a trace
_PATIENCE = 5.0  # seconds: an import may wait for the very thread that forks
_module_locks: dict[str, Any] = getattr(  # names to weak references; Python has no public view
    importlib._bootstrap, "_module_locks", {})


class Lock(_thread.RLock):  # type: ignore[misc]  # final in the stubs alone
    """A re-entrant lock for ``with`` blocks that is free in a forked child.

    One that the forking thread itself holds stays held.  Entering and leaving are builtins: a
    method in Python could be interrupted (Ctrl-C) after the lock is taken, or before it is given
    back, and no other thread would ever get it.
    """

    def __init__(self, quiet: bool = False) -> None:
        if quiet:
            hold_over_forks(self)
        else:
            _all.add(self)

    def try_acquire(self) -> bool:
        """Take it if that needs no waiting; `release` gives it back."""
        return self.acquire(blocking=False)

    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return bool(self._is_owned())  # type: ignore[attr-defined]

    def renew(self) -> None:
        """In a forked child: free, or the forking thread's own."""
        if not self.is_mine():
            self._at_fork_reinit()  # type: ignore[attr-defined]


def condition() -> threading.Condition:
    """One whose lock is free in a forked child; entering it can be interrupted, as Python's can."""
    return threading.Condition(Lock())


_all: weakref.WeakSet[Lock] = weakref.WeakSet()
_quiet: list[contextlib.AbstractContextManager[Any]] = []  # in the order they are taken
_held = threading.local()


def hold_over_forks(lock: contextlib.AbstractContextManager[Any]) -> None:
    """Let a fork wait for this lock too, after those named before."""
    _quiet.append(lock)


def every_lock() -> list[Lock]:
    """Every lock that is alive, for tests."""
    return [*_all, *(lock for lock in _quiet if isinstance(lock, Lock))]


def _before_fork() -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        _wait_for_imports(deadline)
        _held.stack = stack = contextlib.ExitStack()
        for lock in _quiet:
            stack.enter_context(lock)
        _imp.acquire_lock()  # no import begins until the fork is over
        stack.callback(_imp.release_lock)
        if not _is_imported_elsewhere() or time.monotonic() > deadline:
            return
        stack.close()


def _wait_for_imports(deadline: float) -> None:
    """They may need the locks that a fork holds, and so are waited for without those."""
    while _is_imported_elsewhere() and time.monotonic() < deadline:
        time.sleep(0.0005)


def _is_imported_elsewhere() -> bool:
    """Whether another thread holds the lock of a module that a trace may import."""
    me = threading.get_ident()
    for name, reference in list(_module_locks.items()):
        owner = getattr(reference(), "owner", None)
        if owner not in (None, me) and name.partition(".")[0] in _IMPORTED:
            return True
    return False


def _drop_locks_of_modules() -> None:
    """Those that a lost thread took without having begun its import."""
    me = threading.get_ident()
    for name, reference in list(_module_locks.items()):
        if getattr(reference(), "owner", None) != me:
            _module_locks.pop(name, None)


def _after_fork() -> None:
    _held.stack.close()


def _after_fork_in_child() -> None:
    _after_fork()
    _drop_locks_of_modules()
    for lock in list(_all):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork,
                        after_in_child=_after_fork_in_child)
