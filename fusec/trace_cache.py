"""The traces of one function by key, least recently used first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from fusec.trace.call.flat_call import FlatCall, differ, explain_miss

from .errors import user_error
from .placing import USUAL, difference, parts_of, trace_key
from .storms import Storm

if TYPE_CHECKING:
    from .compiled_trace import CompiledTrace
    from .concrete_function import ConcreteFunction

MAX_TRACES = 256  # per function; the least recently used goes first
OTHER_SIZES = "other sizes, of a trace that serves them"
OTHER_INSTANCE = "another instance, of a trace that serves it"
_state = threading.local()
Plan = TypeVar("Plan", bound="CompiledTrace")


def newest_of_each(plans: Iterable[Plan]) -> list[Plan]:
    """Of the plans of each trace the newest, which comes last."""
    newest: dict[int, Plan] = {}
    for plan in plans:
        newest.pop(id(plan.origin), None)
        newest[id(plan.origin)] = plan
    return list(newest.values())


class TraceCache:
    """What was compiled for which keys, and why a call found nothing in it."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self._traces: OrderedDict[tuple, list[ConcreteFunction]] = OrderedDict()
        self._storm = Storm()

    def find(self, key: tuple) -> ConcreteFunction | None:
        for concrete in self._traces.get(key, ()):
            if concrete.guards_hold():
                concrete.hits += 1
                return concrete
        return None

    def remember(self, call: FlatCall, concrete: ConcreteFunction, ints: Collection[str]) -> None:
        """Keep a new trace; ``ints`` are the arguments that are static for their values."""
        if concrete.reason not in (OTHER_SIZES, OTHER_INSTANCE):
            self._storm.note(self._fn, concrete.reason, ints)
        if concrete.build.traced.created:  # it would keep them alive
            return
        key = trace_key(call)
        others = [c for c in self._traces.get(key, ()) if not c.is_for_once]
        self._traces[key] = [concrete, *others]
        self._traces.move_to_end(key)
        while sum(map(len, self._traces.values())) > MAX_TRACES:
            _, dropped = self._traces.popitem(last=False)
            if all(c.build.traced.symbolic is None for c in dropped):
                self._storm.note_dropped(self._fn, MAX_TRACES, call.paths)

    def note_first_call(self, concrete: ConcreteFunction) -> None:
        """A new trace has answered the call that it was made for."""
        if not concrete.build.traced.created:
            self._storm.note_spent(
                self._fn, next((g for g in concrete.guards if not g.holds()), None))

    def drop(self, concrete: ConcreteFunction) -> None:
        """Forget a trace whose Variable is gone.  This may happen at any moment: no table changes
        its size."""
        key = trace_key(concrete.build.call)
        traces = self._traces.get(key)
        if traces:
            self._traces[key] = [c for c in traces if c is not concrete]

    def miss_reason(self, call: FlatCall) -> str:
        """Why no known trace answers this call: the difference from the nearest one."""
        if not self._traces:
            return "first call"
        wanted = trace_key(call)
        if wanted in self._traces:
            failed = [g for c in self._traces[wanted] for g in c.guards if not g.holds()]
            return f"no longer true: {failed[0]}" if failed else "first call"

        def distance(key: tuple) -> int:
            return sum(differ(a, b) for a, b in zip(key, wanted, strict=False)) + abs(
                len(key) - len(wanted))

        placing, nearest = parts_of(min(self._traces, key=distance))
        moved = difference(placing, call.placing or USUAL)
        if moved and nearest == call.key:
            return moved
        return "; ".join(filter(None, [moved, explain_miss(call.paths, nearest, call.key)]))

    def forbid_retrace(self, name: str, call: FlatCall) -> None:
        """Raise ``RuntimeError`` within `no_retrace`, unless this is the first trace."""
        if getattr(_state, "no_retrace", 0) and self._traces:
            raise user_error(
                RuntimeError, f"{name} would be traced again inside fusec.no_retrace()",
                None, "call it once with such arguments before", notes=[self.miss_reason(call)])

    def every(self) -> Iterator[ConcreteFunction]:
        """What was compiled, oldest first."""
        return (c for group in self._traces.values() for c in reversed(group))

    def every_trace(self) -> list[ConcreteFunction]:
        """Every trace, newest last; of one that serves several sizes the newest plan."""
        return newest_of_each(self.every())

    def clear(self) -> None:
        self._traces.clear()


@contextmanager
def no_retrace() -> Any:
    """Inside the block a jitted function that would be traced again raises instead.

    Raises ``RuntimeError`` naming how the call differs from the nearest trace; a function's first
    trace is allowed.
    """
    _state.no_retrace = getattr(_state, "no_retrace", 0) + 1
    try:
        yield
    finally:
        _state.no_retrace -= 1
