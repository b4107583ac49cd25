"""A function that is traced again and again: one warning, with the cause and the cure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from .errors import RetraceWarning
from .inspect import log

MANY = 32  # traces of one cause
_SIZES = "the types or shapes of the arguments"
_SCOPE = "device scope"


class Storm:
    """Counts the traces of one function by cause."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._warned: set[str] = set()

    def note(self, fn: Callable[..., Any], reason: str, ints: Collection[str]) -> None:
        """A trace was made for this reason, with the arguments ``ints`` static for their values."""
        cause = _cause(reason, ints)
        self._counts[cause] += 1
        if self._counts[cause] >= MANY:
            self._tell(cause, fn, f"was traced {MANY} times: {_text(cause, reason)}")

    def note_dropped(self, fn: Callable[..., Any], limit: int, paths: Sequence[str]) -> None:
        """More traces than ``limit``: the least recently used is forgotten."""
        names = ", ".join(dict.fromkeys(path.partition("[")[0] for path in paths))
        self._tell("dropped", fn, f"has more than {limit} traces, of which the least recently used "
                   f"are dropped and traced again; they differ in {names}. Pad arrays to a few "
                   "sizes, or call it with pieces of one size")

    def _tell(self, cause: str, fn: Callable[..., Any], text: str) -> None:
        if cause in self._warned:
            return
        self._warned.add(cause)
        code = getattr(fn, "__code__", None)
        where = (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 1)
        log.warn(f"{getattr(fn, '__name__', fn)} {text}", RetraceWarning, *where)


def _cause(reason: str, ints: Collection[str]) -> str:
    """What the reasons of one storm have in common."""
    if reason.startswith(_SCOPE):
        return _SCOPE
    if reason.startswith("no longer true: "):
        return reason.removeprefix("no longer true: ").partition(" is ")[0]
    return ", ".join(sorted(ints)) if any(f"{name}: int" in reason for name in ints) else _SIZES


def _text(cause: str, reason: str) -> str:
    if reason.startswith("no longer true: "):
        return f"{cause} changes between calls. Pass what changes as an argument"
    if cause == _SCOPE:
        return (f"each {cause} has its own trace ({reason}). Where they are functions, give the "
                "same one at each call")
    if cause == _SIZES:
        return (f"{cause} differ ({reason}). Pad arrays to a few sizes, or call it with pieces of "
                "one size")
    first = cause.partition(",")[0]
    return (f"each value of {cause} has its own trace, because it decides sizes. Pass "
            f"np.asarray({first}), an array of no dimension, which is a number of the run")


__all__ = ["MANY", "Storm"]
