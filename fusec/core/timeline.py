"""The timeline of a process: spans, flows and counters, which a profile collects.

Each thread appends to a list of its own, so recording takes no lock.  Callers guard costly
arguments: ``if timeline.on: start = timeline.now()``.  Times are nanoseconds of `now`.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from . import locks

# Whether a profile is collecting; other modules read it as `timeline.on`.
on: bool = False
now = time.perf_counter_ns

# An event is this many entries of a list: phase, device, name, start, end, kind, loc, args.  A
# phase is X for a span, s and f for the two ends of a flow, whose args are the key that these have
# in common, and C for a counter.  Were each event an object, the garbage collector would visit
# them all, again and again: half of the time that recording takes.
FIELDS = 8
MOST = 8_000_000  # entries of a thread: later ones are counted, not kept
HOST = "/job:localhost/task:0/device:CPU:0"  # where threads run kernels that are no device's own


class Recording:
    """The recording of one profile: for each thread its name, its number and its events."""

    def __init__(self) -> None:
        self.start = now()
        self.threads: list[tuple[str, int, list[Any]]] = []


class _Rows(threading.local):
    """The recording of this thread, and the device whose thread it is."""

    recording: Recording | None = None
    device = HOST

    def enter(self, recording: Recording | None) -> None:
        """Begin a list for the profile of now."""
        self.entries: list[Any] = []
        self.recording = recording
        if recording is not None:
            with _lock:
                recording.threads.append(
                    (threading.current_thread().name, threading.get_native_id(), self.entries))


_lock = locks.Lock()
_recording: Recording | None = None
_rows = _Rows()


def _add(*event: Any) -> None:
    rows = _rows
    if rows.recording is not _recording:
        rows.enter(_recording)
    if len(rows.entries) < MOST:
        rows.entries.extend(event)


def span(
    device: str, kind: str, name: str, start_ns: int, end_ns: int, loc: Any = None, **args: Any
) -> None:
    """Work of a kind (call, trace, passes, codegen, compile, kernel, library, copy, wait).

    ``device`` is "" for work of the compiler and the calling program, ``loc`` the user's line,
    ``args`` further facts for a reader.
    """
    if on:
        rows = _rows
        if rows.recording is not _recording:
            rows.enter(_recording)
        if len(rows.entries) < MOST:
            rows.entries.extend(("X", device, name, start_ns, end_ns, kind, loc, args or None))


def since(kind: str, name: str, start: float, loc: Any = None, **args: Any) -> None:
    """A span of the compiler's, from the ``time.perf_counter()`` that it began at until now."""
    span("", kind, name, int(1e9 * start), now(), loc, **args)


def flow(key: Any, start: bool, device: str, at_ns: int) -> None:
    """One end of an arrow: where a value leaves a device, or where it is received."""
    if on:
        _add("s" if start else "f", device, "transfer", at_ns, at_ns, "", None, key)


def counter(device: str, name: str, value: float) -> None:
    """A quantity, as bytes in use, that holds from now on."""
    if on:
        at = now()
        _add("C", device, name, at, at, "", None, value)


def device_here() -> str:
    """The device whose thread this is; of other threads the first CPU, which their kernels use."""
    return _rows.device


def enter_device(name: str) -> None:
    """This thread is that device's from now on."""
    _rows.device = name


def begin() -> Recording:
    """Collect from now on.  There is one profile at a time: see to that before."""
    global on, _recording
    _recording = Recording()
    on = True
    return _recording


def end() -> None:
    """Collect nothing any more; an event of this moment may still come."""
    global on, _recording
    on, _recording = False, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=end)  # the profile is the parent's
