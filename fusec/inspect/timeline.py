"""What happened when, and where: spans, flows and counters, which a profile collects.

Each thread appends to a list of its own, so recording takes no lock.  Callers guard what costs
them something: ``if timeline.on: start = timeline.now()``.  Times are nanoseconds of `now`.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from .. import locks

# Whether a profile is collecting; other modules read it as `timeline.on`.
on: bool = False
now = time.perf_counter_ns

# An event is this many entries of a list: phase, device, name, start, end, kind, loc, args.  A
# phase is X for a span, s and f for the two ends of a flow, whose args are the key that these have
# in common, and C for a counter.  Were each event an object, the garbage collector would visit
# them all, again and again: half of the time that recording takes.
FIELDS = 8


class Rows(threading.local):
    """What this thread records."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        with _lock:
            every.append((threading.current_thread().name, threading.get_native_id(), self.entries))


_lock = locks.Lock()
every: list[tuple[str, int, list[Any]]] = []  # name, number and entries of each thread
_rows = Rows()


def span(
    device: str, kind: str, name: str, start_ns: int, end_ns: int, loc: Any = None, **args: Any
) -> None:
    """Work of a kind (trace, passes, codegen, compile, kernel, library, copy, wait) on a device.

    ``device`` is "" for the thread of the calling program, ``loc`` the user's line, ``args`` what
    else a reader wants to know.
    """
    if on:
        _rows.entries.extend(("X", device, name, start_ns, end_ns, kind, loc, args or None))


def flow(key: Any, start: bool, device: str, at_ns: int) -> None:
    """One end of an arrow: where a value leaves a device, or where it is received."""
    if on:
        phase = "s" if start else "f"
        _rows.entries.extend((phase, device, "transfer", at_ns, at_ns, "", None, key))


def counter(device: str, name: str, value: float) -> None:
    """A quantity, as bytes in use, that holds from now on."""
    if on:
        at = now()
        _rows.entries.extend(("C", device, name, at, at, "", None, value))
