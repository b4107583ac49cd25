"""`fusec.profile`: the timeline of calls, as a file that https://ui.perfetto.dev draws.

The file is in the JSON of Chrome's "Trace Event Format".
"""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from fusec.compiled.reports import history
from fusec.core import locks, timeline
from fusec.errors import user_error
from fusec.inspect.timeline_rows import TimelineRows
from fusec.inspect.timeline_svg import drawn

_changing = locks.Lock()
_PARTIAL = ".fusec-partial"


class Profile:
    """One profile.  ``path`` is where it is written when it ends."""

    _taken: Profile | None = None  # now

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(_text(path))
        self._file: IO[str] | None = None
        self._recording: timeline.Recording | None = None
        self._process = 0
        self._replaces: tuple[Path, Path] | None = None  # the file written, and that in its place

    def start(self) -> Profile:
        """Begin to collect.

        Raises ``OSError`` where the file cannot be made, ``RuntimeError`` where another profile
        is being taken.
        """
        with _changing:
            taken = Profile._taken
            if taken is not None and taken._process == os.getpid():
                raise user_error(
                    RuntimeError, f"a profile is being taken already, for {taken.path}", None,
                    "end it first: there is one timeline for the process")
            self._file, self._process = self._opened(), os.getpid()
            self._recording = timeline.begin()
            Profile._taken = self
        history.watch()
        return self

    def stop(self) -> None:
        """Write the file; nothing where it has been written, and in a forked child."""
        with _changing:
            if Profile._taken is not self or self._process != os.getpid():
                return
            timeline.end()
            Profile._taken = None
        history.watch()
        self._write()

    def __enter__(self) -> Profile:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except OSError as failed:
            if error is None:
                raise
            error.add_note(str(failed))  # the program's own error is the one to see

    def _opened(self) -> IO[str]:
        """The file that takes the place of ``path`` when it is whole: whatever forbids to write
        there is found out now, not after the program has run.

        The target of a link is replaced, not the link.  A pipe or a device is written to itself:
        a file in the place of ``/dev/null`` would be the end of that for all programs.
        """
        try:
            if self.path.is_dir():
                raise IsADirectoryError("it is a folder")
            target = Path(os.path.realpath(self.path))
            if target.exists() and not target.is_file():
                self._replaces = None
                return open(self.path, "w", encoding="utf-8")
            temporary = target.with_name(f".{target.name}.{os.getpid()}{_PARTIAL}")
            self._replaces = temporary, target
            return open(temporary, "w", encoding="utf-8")
        except (OSError, ValueError) as error:  # ValueError: a NUL character
            raise _unwritable(
                self.path, error,
                'give a file in a folder that is there: fusec.profile("trace.json")') from None

    def _write(self) -> None:
        file, recording = self._file, self._recording
        assert file is not None and recording is not None
        self._file = self._recording = None
        try:
            with file:
                picture = self.path.suffix.lower() == ".svg"
                for part in (_picture if picture else _parts)(recording):
                    file.write(part)
            if self._replaces is not None:
                os.replace(*self._replaces)
        except BaseException as error:
            if self._replaces is not None:
                self._replaces[0].unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise _unwritable(self.path, error, "give a file where there is room") from None
            raise

    def __repr__(self) -> str:
        return f"<fusec.profile {str(self.path)!r}>"


def _unwritable(path: Path, error: OSError | ValueError, cure: str) -> Exception:
    reason = getattr(error, "strerror", None) or error
    kind = type(error) if isinstance(error, OSError) else OSError
    return user_error(
        kind, f"a profile cannot be written to {str(path)!r}: {reason}", None, cure)


def _text(path: str | os.PathLike[str]) -> str:
    text: Any = path if isinstance(path, str) else getattr(path, "__fspath__", lambda: None)()
    if not isinstance(text, str):
        raise user_error(TypeError, f"a profile is written to a file, and got {path!r}", None,
                         'give its path: fusec.profile("trace.json")')
    return text


def _parts(recording: timeline.Recording) -> Iterator[str]:
    """The text of the file, event by event."""
    rows = TimelineRows(recording)
    yield '{"displayTimeUnit": "ms", "traceEvents": ['
    separator = "\n"
    for event in rows.events():
        yield separator + json.dumps(event, default=str)
        separator = ",\n"
    other: dict[str, Any] = {"written by": "fusec", "at": time.strftime("%Y-%m-%d %H:%M:%S")}
    if rows.lost:
        other["left out"] = f"what threads did after {timeline.MOST // timeline.FIELDS} events"
    yield f'\n], "otherData": {json.dumps(other)}}}\n'


def _picture(recording: timeline.Recording) -> Iterator[str]:
    yield drawn([*TimelineRows(recording).events()])


def profile(path: str | os.PathLike[str]) -> Profile:
    """Record the timeline, and write it to a file that https://ui.perfetto.dev draws.

        with fusec.profile("trace.json"):
            f(x)

    A row for each device and thread has spans for calls, traces, passes, code generation, compiles,
    kernels, library calls, copies and waits, with the program's lines; arrows lead from where a
    value leaves a device to where it is received; the memory in use is a curve.  While it is taken
    kernels run one by one.  Also as ``p = fusec.profile(path).start()`` and ``p.stop()``.  A path
    that ends with ``.svg`` is a picture of the rows instead.

    The file is written at the end, also after an exception.  Raises ``OSError`` at the beginning
    where it cannot be made there, ``RuntimeError`` while another profile is taken.
    """
    return Profile(path)


def _at_exit() -> None:
    """Write a profile that nobody has ended."""
    if Profile._taken is not None:
        Profile._taken.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=history.watch)
atexit.register(_at_exit)
