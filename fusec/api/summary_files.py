"""TensorBoard's event files, written with tensorboardX.

What is recorded is kept until some hundred summaries or a few seconds are together, and written at
once: a record's frame costs as much as ten numbers in it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import itertools
import operator
import os
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fusec.core import locks
from fusec.errors import user_error

MOST_KEPT, MOST_BYTES, MOST_SECONDS = 500, 8 << 20, 2.0
_numbers = itertools.count()
_files: weakref.WeakSet[EventFile] = weakref.WeakSet()


_Summary = tuple[str, str, Any, int, float]  # its kind, name, value, step and time
_step = operator.itemgetter(3)


class EventFile:
    """A new event file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._library, self._folder = _Library(), folder
        self._kept: list[_Summary] = []
        self._nbytes, self._since, self._most = 0, time.time(), MOST_KEPT
        self._lock = locks.Lock(quiet=True)  # a forked child has no half of a record
        self._writer: Any = self._opened()
        _files.add(self)

    def _opened(self) -> Any:
        suffix = f".{os.getpid()}.{next(_numbers)}"  # of one second there may be several
        return self._library.files.EventsWriter(str(self._folder / "events"), suffix)

    def renew(self) -> None:
        """In a forked child: what is in this file is the parent's.  The child's own summaries go to
        a file beside it, each at once: many children end without a word."""
        self._kept, self._most, self._writer = [], 1, None

    def add(self, kind: str, name: str, value: Any, step: int) -> None:
        """Keep a copy of the value, to be written soon."""
        now = time.time()
        if kind == "scalar":
            value = float(value.item() if isinstance(value, np.ndarray) else value)
        elif kind != "text":
            value = np.array(value)
            self._nbytes += value.nbytes
        with self._lock:
            self._kept.append((kind, name, value, step, now))
            is_due = (len(self._kept) >= self._most or now - self._since > MOST_SECONDS
                      or self._nbytes > MOST_BYTES)
        if is_due:
            self._write()

    def _write(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, []
            self._nbytes, self._since = 0, time.time()
            if kept and self._writer is None:
                self._writer = self._opened()
            for event in self._events(kept):
                self._writer.write_event(event)
            if self._most == 1:
                self._flush_writer()

    def _flush_writer(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _events(self, kept: list[_Summary]) -> Iterator[Any]:
        """An event for each run of summaries of one step; values that have a kind of their own in
        TensorBoard are events by themselves."""
        library = self._library
        for step, summaries in itertools.groupby(kept, key=_step):
            values, first = [], 0.0
            for kind, name, value, _, at in summaries:
                first = first or at
                values += library.values(kind, name, value)
            yield library.events.Event(
                wall_time=first, step=step, summary=library.summaries.Summary(value=values))

    def flush(self) -> None:
        """Have all in the file."""
        with self._lock:
            self._write()
            self._flush_writer()

    def close(self) -> None:
        """Write the rest and close the file."""
        _files.discard(self)
        self._write()
        if self._writer is not None:
            self._writer.close()
        if not self._folder.exists():
            warnings.warn(f"the folder {self._folder} was removed while summaries were written to "
                          "it: they are lost", RuntimeWarning, stacklevel=3)


@atexit.register
def _flush_all() -> None:
    for file in [*_files]:
        file.flush()


def _flush_before_fork() -> None:
    """A child has a copy of what is not yet in the file, and would write it again."""
    for file in [*_files]:
        with contextlib.suppress(OSError):  # the writer's own thread meets it later
            file.flush()


def _renew_in_child() -> None:
    for file in [*_files]:
        file.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_flush_before_fork, after_in_child=_renew_in_child)


class _Library:
    """tensorboardX's modules, imported when the first file is opened."""

    def __init__(self) -> None:
        try:
            self.files = importlib.import_module("tensorboardX.event_file_writer")
            self.events = importlib.import_module("tensorboardX.proto.event_pb2")
            self.summaries = importlib.import_module("tensorboardX.proto.summary_pb2")
            self.made = importlib.import_module("tensorboardX.summary")
        except ImportError as error:
            raise user_error(ImportError, f"fusec.summary.writer needs tensorboardX: {error}", None,
                             "pip install fusec[summary]") from error

    def values(self, kind: str, name: str, value: Any) -> list[Any]:
        """A summary as TensorBoard's values."""
        if kind == "scalar":
            return [self.summaries.Summary.Value(tag=name, simple_value=value)]
        made: Any = getattr(self, f"_{kind}")(name, value)
        for each in made.value:
            each.tag = name  # tensorboardX replaces characters that TensorBoard takes
        return list(made.value)

    def _histogram(self, name: str, values: np.ndarray) -> Any:
        values = values.ravel().astype(np.float64)
        finite = values[np.isfinite(values)]
        if not finite.size:
            return self.made.histogram_raw(name, 0.0, 0.0, 0, 0.0, 0.0, [0.0], [0])
        return self.made.histogram(name, finite, _edges())

    def _image(self, name: str, pixels: np.ndarray) -> Any:
        if pixels.dtype.kind == "f":
            pixels = (np.nan_to_num(pixels.astype(np.float64), nan=0.0).clip(0, 1) * 255).round()
        shaped = pixels.reshape(*pixels.shape[:2], -1).astype(np.uint8)
        return self.made.image(name, shaped, dataformats="HWC")

    def _text(self, name: str, words: str) -> Any:
        return self.made.text(name, words)


def _edges() -> list[float]:
    """TensorBoard's edges: powers of 1.1 from 1e-12 to 1e20, their negatives, and 0."""
    above = [1e-12]
    while above[-1] < 1e20:
        above.append(above[-1] * 1.1)
    return [*(-edge for edge in reversed(above)), 0.0, *above]
