"""The progress of a compilation on stderr: where that takes longer than a person waits
without a word (`config.progress`).

The stages tell it (`compiling`, `stage`, `at`, `traced`), which costs an attribute of this thread.
A compilation that takes half of that time, or may, gets a thread that writes: a bar where stderr
is a terminal, else a line now and then.
"""

from __future__ import annotations

import sys
import threading
import time
from _queue import Empty, SimpleQueue
from collections.abc import Iterator
from contextlib import contextmanager

from fusec import config
from fusec.core import locks, log

REDRAW, OFTEN, GROWTH = 0.2, 5.0, 1.5  # seconds: of a bar, until the second line, from then on
WIDTH = 24  # of a bar
_bar = locks.Lock()  # of the terminal's line: one bar at a time


class Compilation:
    """One function that is compiled on this thread."""

    def __init__(self, title: str) -> None:
        self.title, self.start = title, time.perf_counter()
        self.name, self.done, self.total = "tracing", 0, 0
        self.first = 0  # number of the first operation
        self.ended: SimpleQueue[None] | None = None  # of what is watched
        self.watcher: threading.Thread | None = None

    def enter(self, name: str, done: int, total: int, is_long: bool = False) -> None:
        self.name, self.done, self.total = name, done, total
        if self.ended is None and (is_long or 2 * self.seconds() > config.progress):
            self._watch()

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def _watch(self) -> None:
        self.ended = SimpleQueue()
        if config.progress and log.enabled(log.WARN):
            self.watcher = threading.Thread(
                target=_watched, args=(self, self.ended), name="fusec progress", daemon=True)
            self.watcher.start()

    def end(self) -> None:
        if self.ended is not None:
            self.ended.put(None)
        if self.watcher is not None:
            self.watcher.join(1.0)

    def __str__(self) -> str:
        """As ``tracing, 5,120 operations`` or ``pass fusion, 17 of 23``."""
        if self.total:
            return f"{self.name}, {self.done:,} of {self.total:,}"
        return f"{self.name}, {self.done:,} operations" if self.done else self.name


class _Here(threading.local):
    work: Compilation | None = None


_here = _Here()


@contextmanager
def compiling(title: str) -> Iterator[None]:
    """A function is compiled inside; one that another's compilation makes belongs to that."""
    if _here.work is not None:
        yield
        return
    work = _here.work = Compilation(title)
    try:
        yield
    finally:
        _here.work = None
        work.end()


def stage(name: str, done: int = 0, total: int = 0, is_long: bool = False) -> None:
    """The stage from now on, and the number of its steps; ``is_long``: it may take seconds without
    telling anything."""
    if _here.work is not None:
        _here.work.enter(name, done, total, is_long)


def at(done: int) -> None:
    """How much of the stage is done."""
    work = _here.work
    if work is not None:
        work.enter(work.name, done, work.total)


def traced(number: int) -> None:
    """Tracing has come to the operation of this number."""
    work = _here.work
    if work is not None:
        work.first = work.first or number
        work.enter("tracing", number - work.first, 0)


# -- the thread that writes -----------------------------------------------------------------------

def _watched(work: Compilation, ended: SimpleQueue[None]) -> None:
    if _is_over(ended, max(config.progress - work.seconds(), 0.0)):
        return
    if _is_terminal() and _bar.try_acquire():
        try:
            _draw(work, ended)
        finally:
            _bar.release()
    else:
        _write_lines(work, ended)


def _is_over(ended: SimpleQueue[None], seconds: float) -> bool:
    """Wait for the end, at most so long: a queue, for locks are made in `locks` alone."""
    try:
        ended.get(timeout=seconds)
    except Empty:
        return False
    return True


def _write_lines(work: Compilation, ended: SimpleQueue[None]) -> None:
    wait, is_over = OFTEN, False
    while not is_over:
        _write(f"fusec: compiling {work.title} for {work.seconds():.0f} s: {work}\n")
        is_over, wait = _is_over(ended, wait), wait * GROWTH
    _write(f"fusec: {work.title}: compiled for {work.seconds():.1f} s\n")


def _draw(work: Compilation, ended: SimpleQueue[None]) -> None:
    is_over = False
    while not is_over:
        filled = WIDTH * work.done // work.total if work.total else 0
        bar = f" [{'=' * filled:{WIDTH}}]" if work.total else ""
        line = f"fusec: compiling {work.title}, {work.seconds():.1f} s:{bar} {work}"
        _write(f"\r\x1b[K{line[:_columns() - 1]}")
        is_over = _is_over(ended, REDRAW)
    _write("\r\x1b[K")


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except Exception:  # whatever the stream is
        return False


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:  # a closed stream fails no call
        pass
