"""``warnings.warn`` in converted code: at each call, in program order, from the user's own line.

It is a call of the host, as a print is.  Python's filters and the module's registry decide when the
code runs whether the warning is shown.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain, islice, takewhile
from types import FrameType
from typing import Any, NamedTuple

from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ops.calls.host_calls import HostObject

from ..library.host_calls import call_host
from ..objects.tracing_hooks import TracingHooks
from ..values.array import TracedArray
from ..values.handlers import everywhere
from ..values.trace import Trace

_TRACER = "fusec.trace.tracer"


class _Place(NamedTuple):
    """A line of the program, and the names of its module."""

    file: str
    line: int
    names: dict[str, Any]


@dataclass(frozen=True)
class _Announcement:
    """A call of ``warnings.warn`` less its message; ``places`` are the calls down to it that are
    compiled, the innermost first."""

    category: Any
    level: int
    source: Any
    skipped: tuple[str, ...]
    places: tuple[_Place, ...]

    def __call__(self, message: Any) -> None:
        file, line, names = self._place()
        registry = names.setdefault("__warningregistry__", {})
        module = names.get("__name__", "<string>")
        warnings.warn_explicit(
            message, self.category, file, line, module, registry, source=self.source)

    @property
    def is_numeric(self) -> bool:
        """Whether a function of NumPy or SciPy warns."""
        return str(self.places[0].names.get("__name__")).partition(".")[0] in ("numpy", "scipy")

    def _place(self) -> _Place:
        """The line that ``stacklevel`` selects among the compiled calls and their callers."""
        places = chain(self.places, _callers(_frames(sys._getframe(1))))
        if self.skipped:
            outside = (p for p in places if not p.file.startswith(self.skipped))
            return next(islice(outside, max(self.level - 2, 0), None), None) or _OUTERMOST
        return next(islice(places, max(self.level - 1, 0), None), None) or _OUTERMOST


def _beyond() -> _Place:
    """The location Python reports beyond the last caller, which depends on its version."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("", stacklevel=1 << 20)
    return _Place(caught[0].filename, caught[0].lineno, sys.__dict__)


# Asked for once, before any program runs: asking makes Python forget which warnings it has shown.
_OUTERMOST = _beyond()


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _callers(frames: Iterable[FrameType]) -> Iterator[_Place]:
    """The frames of the program's functions, except local ones that conversion has made."""
    for frame in frames:
        if _module_name(frame).partition(".")[0] != "fusec" and not (
                frame.f_code.co_name.startswith("_fusec_")):
            yield _Place(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)


def _module_name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "fusec"))  # compiled plans are of no module


def _traced_calls(line: int) -> tuple[_Place, ...]:
    """The calls that are being traced, the innermost first, which is at that line."""
    traced = takewhile(lambda f: _module_name(f) != _TRACER, _frames(sys._getframe(1)))
    first, *callers = _callers(traced)
    return (first._replace(line=line), *callers)


@everywhere(warnings.warn)
def _warn(
    hooks: TracingHooks, message: Any, category: Any = None, stacklevel: Any = 1,
    source: Any = None, *, skip_file_prefixes: tuple[str, ...] = (),
) -> None:
    trace = hooks.trace
    says = _Announcement(
        type(message) if isinstance(message, Warning) else category or UserWarning,
        int(stacklevel), source, skip_file_prefixes, _traced_calls(hooks.where[1]))
    if says.is_numeric:  # data decides in a branch, and compiled code does not warn of numbers
        if not trace.in_region:
            says(message)
        return
    if not trace.active or _is_caught(trace):
        says(message)
        return
    operands = [message.value] if type(message) is TracedArray else []
    form = ("operand", 0) if operands else _text(message)
    call_host(trace, "warn", HostObject.of("warnings.warn", held=says), "warn", operands,
              ("tuple", form))


def _is_caught(trace: Trace) -> bool:
    """Whether a ``with warnings.catch_warnings()`` of the program is around the call, so that it
    is heard of while the function is traced."""
    caught = warnings.filters is not trace.world.filters
    if caught and trace.in_region:
        raise unsupported(
            "a warning in warnings.catch_warnings, in a branch or loop that data decides",
            loc=trace.loc, cure="catch the warnings of the whole call")
    return caught


def _text(message: Any) -> Any:
    return message if type(message) is str else HostObject.of(type(message).__name__, held=message)
