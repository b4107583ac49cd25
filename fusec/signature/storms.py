"""A function that is traced again and again: one warning, with the cause and the cure."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from fusec.core import log
from fusec.errors import RetraceWarning

MANY = 32  # traces of one cause
# Traces for one thing outside of the arguments that changes between calls, or one argument that is
# another object at each call.
CHANGES = 8
SPENT = 3  # traces in a row that no second call can have
_SIZES = "the types or shapes of the arguments"
_SCOPE = "device scope"
_CHANGED = "no longer true: "
# "f: function <lambda> before, ..."
_OBJECT = re.compile(r"(?P<path>[^:;]+): (?P<kind>[A-Za-z_]\w*) \D")
_VALUES = frozenset({"bool", "bytes", "complex", "float", "int", "str"})  # equal ones share a trace
_FIELDS = ("; the fields of an object are arguments where its class is registered "
           "(optree.register_pytree_node, namespace='fusec')")


class StormCause(Protocol):
    """A guard of a trace."""

    subject: str

    @property
    def is_once(self) -> bool: ...


class Storm:
    """Counts the traces of one function by cause."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._warned: set[str] = set()
        self._spent = 0

    def note(self, fn: Callable[..., Any], reason: str, ints: Collection[str]) -> None:
        """A trace was made for this reason, with the arguments ``ints`` static for their values."""
        cause = _cause(reason, ints)
        self._counts[cause] += 1
        is_object = cause not in (_SIZES, _SCOPE) and _is_of_object(reason)
        most = CHANGES if is_object or reason.startswith(_CHANGED) else MANY
        if self._counts[cause] >= most:
            self._tell(cause, fn, f"was traced {most} times: {_text(cause, reason)}")

    def note_spent(self, fn: Callable[..., Any], guard: StormCause | None) -> None:
        """After the first call of a new trace ``guard`` does not hold, so that the next call will
        be traced, too; None where all do."""
        self._spent = 0 if guard is None else self._spent + 1
        if guard is None or self._spent < SPENT:
            return
        other = ", or another thread," if threading.active_count() > 1 else ""
        text = str(guard) if guard.is_once else (
            f"the call itself{other} changes {guard.subject}")
        self._tell(_subject(str(guard)), fn, f"is traced at each call: {text}. Keep what changes "
                   "in an array, a number or a fusec.Variable that is assigned, or return it")

    def note_dropped(
        self, fn: Callable[..., Any], limit: int, paths: Sequence[str], are_objects: bool
    ) -> None:
        """More traces than ``limit``, or objects that one serves: the least recently used is
        forgotten."""
        if are_objects:
            self._tell("objects", fn, f"was given more than {limit} objects: its trace is fitted "
                       "to each at the first call with it, which takes a millisecond. Give the "
                       f"same ones at each call{_FIELDS}")
            return
        names = ", ".join(dict.fromkeys(path.partition("[")[0] for path in paths))
        self._tell("dropped", fn, f"has more than {limit} traces, of which the least recently used "
                   f"are dropped and traced again; they differ in {names}. Pad arrays to a few "
                   "sizes, or call it with pieces of one size")

    def note_made_again(self, fn: Callable[..., Any], limit: int, paths: Sequence[str]) -> None:
        """A plan of sizes was made that had been dropped, to keep all of them below ``limit``."""
        self._counts["made again"] += 1
        if self._counts["made again"] >= MANY:
            names = ", ".join(dict.fromkeys(path.partition("[")[0] for path in paths))
            self._tell("made again", fn, (
                f"made plans of {MANY} sizes anew that it had dropped: its plans may take "
                f"{limit / 2**20:.0f} MiB (fusec.config.plan_cache_bytes). Raise that, or pad "
                f"{names} to fewer sizes"))

    def _tell(self, cause: str, fn: Callable[..., Any], text: str) -> None:
        if cause in self._warned:
            return
        self._warned.add(cause)
        code = getattr(fn, "__code__", None)
        where = (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 1)
        log.warn(f"{getattr(fn, '__name__', fn)} {text}", RetraceWarning, *where)


def _subject(text: str) -> str:
    """The subject of a guard, as reasons name it."""
    return text.partition(" is ")[0]


def _cause(reason: str, ints: Collection[str]) -> str:
    """The common cause of the reasons of one storm."""
    if reason.startswith(_SCOPE):
        return _SCOPE
    if reason.startswith(_CHANGED):
        return _subject(reason.removeprefix(_CHANGED))
    if any(f"{name}: int" in reason for name in ints):
        return ", ".join(sorted(ints))
    given = _OBJECT.match(reason)
    return _SIZES if given is None else f"{given['kind']} {given['path']}"


def _is_of_object(reason: str) -> bool:
    """Whether an argument is another object, and no flag or name, at each call."""
    given = _OBJECT.match(reason)
    return given is not None and given["kind"] not in _VALUES


def _text(cause: str, reason: str) -> str:
    if reason.startswith(_CHANGED):
        return f"{cause} changes between calls. Pass what changes as an argument"
    if cause == _SCOPE:
        return (f"each {cause} has its own trace ({reason}). Where they are functions, give the "
                "same one at each call")
    if cause == _SIZES:
        return (f"{cause} differ ({reason}). Pad arrays to a few sizes, or call it with pieces of "
                "one size")
    if _OBJECT.match(reason):
        fields = _FIELDS if _is_of_object(reason) else ""
        return (f"each value of {cause.partition(' ')[2]} has its own trace ({reason}). Make it "
                f"once, outside, and give the same one at each call{fields}")
    first = cause.partition(",")[0]
    return (f"each value of {cause} has its own trace, because it decides sizes. Pass "
            f"np.asarray({first}), an array of no dimension, which is a number of the run")


__all__ = ["CHANGES", "MANY", "SPENT", "Storm"]
