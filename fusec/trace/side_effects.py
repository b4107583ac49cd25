"""Effects that a compiled function would have while it is traced only: a warning, once a line.

What a trace records happens at each call: assignments to attributes, draws of random numbers,
`fusec.print`.  Everything else that a program does to the world runs as Python runs it: when the
function is traced.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from fusec.errors import SideEffectWarning, unsupported
from fusec.inspect import log
from fusec.ir import Loc

from .context import Trace

_PRINT = "fusec.print prints the values of every call"
_CLOCKS = frozenset({"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic",
                     "monotonic_ns", "process_time", "process_time_ns"})
_LOGGING = frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"})
_seen: set[tuple[str, int, str]] = set()


def warn_of_effect(trace: Trace, fn: Callable[..., Any]) -> None:
    """Warn, once for each line, of a call with an effect or with a result that changes by itself.
    """
    found = _effect(fn)
    if found is not None:
        warn(trace, *found)


def warn(trace: Trace, what: str, way_out: str) -> None:
    loc = trace.loc or Loc("<unknown>", 0)
    if (loc.file, loc.line, what) in _seen:
        return
    _seen.add((loc.file, loc.line, what))
    log.warn(
        f"{what} happens while {trace.name} is traced, not at each call: {way_out}",
        SideEffectWarning, loc.file, loc.line)


def _effect(fn: Callable[..., Any]) -> tuple[str, str] | None:
    """What a call does that is not recorded, and the way out."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__name__", "")
    owner = getattr(fn, "__self__", None)
    if fn is print:
        return "print", _PRINT
    if fn is open or fn is input:
        return name, "do it before the call and pass what it gives"
    if module == "time" and (name in _CLOCKS or name == "sleep"):
        return f"time.{name}", "measure around the call, or with fusec.benchmark"
    if module == "logging" and name in _LOGGING:
        return f"logging ({name})", f"log the results after the call; {_PRINT}"
    if isinstance(owner, io.IOBase) and name.startswith(("write", "flush")):
        return f"{type(owner).__name__}.{name}", f"{_PRINT}, to a file too (file=...)"
    if owner is not None and name in ("now", "utcnow", "today") and (
            getattr(owner, "__module__", "") == "datetime"):
        return f"{owner.__name__}.{name}", "pass the time as an argument"
    return None


def check_unconsumed(trace: Trace, iterator: Any, loc: Loc | None) -> None:
    """Refuse an iterator from outside: what it gave is gone at the next call."""
    is_pythons = isinstance(iterator, Iterator) and type(
        type(iterator).__next__) is not FunctionType  # a class of the user's has attributes
    if is_pythons and trace.active and is_outside(trace, iterator):
        raise unsupported("taking items of an iterator that outlives the call", loc=loc,
                          cure="take the items before the call and pass them")


def is_outside(trace: Trace, container: Any) -> bool:
    """Whether a container or iterator is a global, a closure variable of the traced function, was
    found in an attribute, or lies in one that is."""
    functions = (*trace.entry, *getattr(trace.hooks, "functions", ()))
    return id(container) in trace.reachable.reached or any(
        container is fn.__globals__ for fn in functions)
