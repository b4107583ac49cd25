"""Summaries of a run: the writer that is open, and how compiled functions write to it."""

from __future__ import annotations

import operator
import os
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from fusec.compiled.calls.fast_calls import forget_plans
from fusec.core import locks
from fusec.errors import user_error
from fusec.ops.calls.host_calls import HostObject
from fusec.trace.guards.guard import Guard
from fusec.trace.library.arguments import Encoder
from fusec.trace.library.host_calls import call_host
from fusec.trace.operands.operands import as_traced
from fusec.trace.values.array import TracedArray
from fusec.trace.values.trace import Trace, current

from .summary_files import EventFile

_NOBODY = -1  # of `_state`: no writer
_open: list[Writer] = []  # the innermost last
_changing = locks.Lock()
_CHANNELS, _STEPS = (1, 3, 4), 1 << 63


class Writer:
    """A context in which summaries are written to files in a folder, each step that is a multiple
    of ``every``; None: nowhere.

    It is the process's, not a thread's; of several the innermost is written to.  What is written
    reaches the files within seconds, and when the context ends.  ``path`` is the folder.  Raises
    ``TypeError`` and ``ValueError`` for a folder that cannot be written, an ``every`` below 1, and
    ``ImportError`` where tensorboardX is missing.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, *, every: int = 1) -> None:
        self.every = _checked_every(every)
        self.path = None if folder is None else _checked_folder(folder)
        self._file: EventFile | None = None

    def __enter__(self) -> Writer:
        if self in _open:
            raise user_error(RuntimeError, "the writer is open", None, "make another one")
        if self.path is not None:
            self._file = EventFile(self.path)
        with _changing:
            _open.append(self)
        forget_plans()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _changing:
            _open.remove(self)
        forget_plans()
        if self._file is not None:
            self._file.close()
            self._file = None

    def flush(self) -> None:
        """Have all that was written so far in the file."""
        if self._file is not None:
            self._file.flush()

    def write(self, kind: str, name: str, value: Any, step: int) -> None:
        """Write one summary."""
        if self._file is not None:
            self._file.add(kind, name, value, step)

    def __repr__(self) -> str:
        return f"<fusec.summary.writer({str(self.path) if self.path else None!r})>"


def _checked_every(every: Any) -> int:
    if isinstance(every, bool) or not isinstance(every, (int, np.integer)):
        raise user_error(TypeError, f"fusec.summary.writer(every={every!r}): an int is needed")
    if every < 1:
        raise user_error(ValueError, f"fusec.summary.writer(every={every!r}): at least 1", None,
                         "for no summaries fusec.summary.writer(None)")
    return int(every)


def _checked_folder(folder: Any) -> Path:
    """The folder, which is made if need be."""
    try:
        path = Path(os.fspath(folder)).expanduser().absolute()
    except TypeError:
        raise user_error(
            TypeError, f"fusec.summary.writer({folder!r}): the path of a folder is needed, or "
            "None") from None
    try:
        path.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(path, os.W_OK | os.X_OK)
        reason = "this user may not write there"
    except (OSError, ValueError) as error:
        is_usable, reason = False, str(error)
    if not is_usable:
        raise user_error(ValueError, f"fusec.summary.writer({folder!r}): {reason}", None,
                         "give a folder that is there, or can be made, and written")
    return path


# ------------------------------------------------------------------------------------- recording


def _state() -> int:
    """How often the writer that is open writes: 0 never, `_NOBODY` where there is none."""
    try:
        writer = _open[-1]
    except IndexError:
        return _NOBODY
    return 0 if writer.path is None else writer.every


def every_now() -> int:
    """The same, for a function that is run or traced; raises ``RuntimeError`` without a writer."""
    trace, state = current(), _state()
    if trace is not None:
        _note_state(trace)
    if state == _NOBODY:
        raise _outside(trace)
    return state


def _note_state(trace: Trace) -> None:
    """The trace is for writers that write as often; `forget_plans` announces other ones."""
    title = "how often fusec.summary.writer writes (0: never, -1: there is none)"
    trace.world.guards.setdefault(
        (id(_open), "summary"), Guard(title, title, _state, is_announced=True))


def _outside(trace: Trace | None) -> Exception:
    return user_error(
        RuntimeError, "a summary outside of a writer", None if trace is None else trace.loc,
        'with fusec.summary.writer("runs/1"): around the calls; fusec.summary.writer(None) '
        "writes nothing")


def record(kind: str, name: Any, value: Any, step: Any) -> None:
    """Write to the writer that is open, when the code runs."""
    trace = current()
    loc = None if trace is None else trace.loc
    if not isinstance(name, str):
        raise user_error(TypeError, f"fusec.summary.{kind}: the name is {_titled(name)}", loc,
                         "give it a str, that is known while tracing")
    if kind != "text" and (value is None or isinstance(value, (str, bytes))):
        raise _refused(kind, value, "numbers are needed", loc, "fusec.summary.text writes words")
    if trace is None or kind == "text":
        checked = _CHECKS[kind](value, loc)
    if trace is None:
        _write(kind, name, checked, step)
        return
    if kind == "text":
        operands, form = [], (checked,)
    else:
        array = as_traced(trace, value)
        _CHECKS[kind](array, loc)
        operands, form = [array], (("operand", 0),)
    _call(trace, kind, name, form, operands, step)


def _call(
    trace: Trace, kind: str, name: str, form: tuple[Any, ...], operands: list[TracedArray],
    step: Any,
) -> None:
    encoder = Encoder(trace, f"fusec.summary.{kind}", [*operands])
    at = encoder.encode(_index(step, trace), True)
    target = HostObject.of(encoder.name, held=partial(_write, kind, name))
    call_host(trace, "record", target, kind, [x.value for x in encoder.operands],
              ("tuple", *form, at))


def _index(step: Any, trace: Trace) -> Any:
    """A step as it is encoded; raises ``TypeError`` for one that is no integer."""
    x = step if isinstance(step, int) and not isinstance(step, bool) else as_traced(trace, step)
    if type(x) is TracedArray and (x.dtype.kind not in "iu" or x.shape):
        raise _no_integer(_titled(x), trace.loc)
    return x


def _no_integer(title: str, loc: Any) -> Exception:
    return user_error(TypeError, f"a summary's step is {title}", loc, "give it an integer")


def _number(step: Any) -> int:
    """A step; raises ``TypeError`` for one that is no integer, ``ValueError`` beyond 64 bits."""
    try:
        number = operator.index(step)
    except TypeError:
        raise _no_integer(_titled(step), None) from None
    if isinstance(step, bool):
        raise _no_integer(_titled(step), None)
    if not -_STEPS <= number < _STEPS:  # the whole event would be refused, when it is written
        raise user_error(ValueError, f"a summary's step is {number}, beyond 64 bits")
    return number


def _write(kind: str, name: str, value: Any, step: Any) -> None:
    """Write now; nothing where no writer is open any more."""
    number = _number(step)
    try:
        writer = _open[-1]
    except IndexError:
        return
    writer.write(kind, name, value, number)


# ----------------------------------------------------------------------------------------- checks


def _titled(x: Any) -> str:
    if type(x) is TracedArray:
        return str(x.type)
    return f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else f"{x!r}"


def _refused(kind: str, x: Any, wanted: str, loc: Any, cure: str) -> Exception:
    return user_error(TypeError, f"fusec.summary.{kind} of {_titled(x)}: {wanted}", loc, cure)


def _array(x: Any) -> Any:
    return x if type(x) is TracedArray else np.asarray(x)


def _scalar(x: Any, loc: Any) -> Any:
    array = _array(x)
    if array.dtype.kind not in "?biuf" or any(size != 1 for size in array.shape):
        raise _refused("scalar", array, "one real number is needed", loc,
                       "np.mean(x), or fusec.summary.histogram")
    return array


def _histogram(x: Any, loc: Any) -> Any:
    array = _array(x)
    if array.dtype.kind not in "?biuf":
        raise _refused("histogram", array, "real numbers are needed", loc, "np.abs(x)")
    return array


def _image(x: Any, loc: Any) -> Any:
    array = _array(x)
    is_shaped = len(array.shape) == 2 or (
        len(array.shape) == 3 and array.shape[2] in _CHANNELS)
    if not is_shaped or (array.dtype.kind != "f" and array.dtype != np.uint8):
        raise _refused("image", array, "uint8 or floats of (height, width[, 1, 3 or 4]) are needed",
                       loc, "x[..., None] adds a channel, x / x.max() brings numbers to 0 to 1")
    return array


def _text(x: Any, loc: Any) -> str:
    if not isinstance(x, str):
        raise _refused("text", x, "a str is needed", loc,
                       "fusec.summary.scalar writes numbers of the call")
    return x


_CHECKS: dict[str, Any] = {
    "scalar": _scalar, "histogram": _histogram, "image": _image, "text": _text}
