"""The traces of one function by key, least recently used first."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fusec import config
from fusec.errors import user_error
from fusec.signature.storms import Storm
from fusec.trace.call.flat_call import FlatCall, differ, explain_miss
from fusec.trace.call.placement_settings import USUAL, difference, parts_of, trace_key

if TYPE_CHECKING:
    from .compiled_trace import CompiledTrace
    from .concrete_function import ConcreteFunction

MAX_TRACES = 256  # per function; the least recently used goes first
# What a plan takes and each of its steps, about: plans of 1 to 30 steps took 18 to 260 KiB.
PLAN_BYTES, STEP_BYTES = 8 << 10, 10 << 10
MOST_DROPPED = 1 << 14  # keys of plans that were dropped and may come again
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
    """Compiled traces by their keys, and why a call found none."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self._traces: OrderedDict[tuple, list[ConcreteFunction]] = OrderedDict()
        self._numbers = itertools.count()
        self._costs: dict[tuple, _Cost] = {}
        self._total = _NOTHING
        self._dropped: set[int] = set()  # hashes of keys
        self._storm = Storm()

    def find(self, key: tuple) -> ConcreteFunction | None:
        for concrete in self._traces.get(key, ()):
            if concrete.guards_hold():
                concrete.hits += 1
                self._used(key)
                return concrete
        return None

    def _used(self, key: tuple) -> None:
        with suppress(KeyError):  # another thread may have dropped it
            self._traces.move_to_end(key)

    def remember(self, call: FlatCall, concrete: ConcreteFunction, ints: Collection[str]) -> None:
        """Keep a new trace; ``ints`` are the arguments that are static for their values."""
        if concrete.reason not in (OTHER_SIZES, OTHER_INSTANCE):
            self._storm.note(self._fn, concrete.reason, ints)
        if concrete.build.traced.created:  # it would keep them alive
            return
        concrete.number = next(self._numbers)
        key = trace_key(call)
        others = [c for c in self._traces.get(key, ()) if not c.is_for_once]
        group = self._traces[key] = [concrete, *others][:MAX_TRACES]
        self._traces.move_to_end(key)
        self._forget_cost(key)
        cost = self._costs[key] = _cost(group)
        self._total = _Cost(self._total.traces + cost.traces, self._total.nbytes + cost.nbytes)
        if cost.nbytes and hash(key) in self._dropped:
            self._storm.note_made_again(self._fn, config.plan_cache_bytes, call.paths)
        self._make_room(cost, call, concrete.reason)

    def _forget_cost(self, key: tuple) -> None:
        cost = self._costs.pop(key, _NOTHING)
        self._total = _Cost(self._total.traces - cost.traces, self._total.nbytes - cost.nbytes)

    def _make_room(self, newest: _Cost, call: FlatCall, reason: str) -> None:
        """Drop the traces, or plans of sizes, that were used longest ago where there are too many
        of them."""
        while self._total.traces > MAX_TRACES:
            self._pop(lambda cost: cost.traces > 0)
            self._storm.note_dropped(
                self._fn, MAX_TRACES, call.paths, reason == OTHER_INSTANCE)
        while self._total.nbytes > max(config.plan_cache_bytes, newest.nbytes):
            if len(self._dropped) >= MOST_DROPPED:
                self._dropped.clear()
            self._dropped.add(hash(self._pop(lambda cost: cost.nbytes > 0)))

    def _pop(self, is_such: Callable[[_Cost], bool]) -> tuple:
        key = next(key for key in self._traces if is_such(self._costs[key]))
        del self._traces[key]
        self._forget_cost(key)
        return key

    def note_first_call(self, concrete: ConcreteFunction) -> None:
        """A new trace has answered the call that it was made for."""
        traced = concrete.build.traced
        if not traced.created:
            holds = traced.checks is not None and traced.checks.every()
            self._storm.note_spent(self._fn, None if holds else next(
                (g for g in concrete.guards if not g.holds()), None))

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
        """The compiled traces, oldest first."""
        held = (c for group in self._traces.values() for c in group)
        return iter(sorted(held, key=lambda concrete: concrete.number))

    def every_trace(self) -> list[ConcreteFunction]:
        """Every trace, newest last; of one that serves several sizes the newest plan."""
        return newest_of_each(self.every())

    def clear(self) -> None:
        self._traces.clear()
        self._costs.clear()
        self._dropped.clear()
        self._total = _NOTHING


class _Cost(NamedTuple):
    """How many traces of their own there are for a key, and the bytes of plans of other traces."""

    traces: int
    nbytes: int


_NOTHING = _Cost(0, 0)


def _cost(group: list[ConcreteFunction]) -> _Cost:
    plans = [c for c in group if c.build.traced.symbolic is not None]
    return _Cost(len(group) - len(plans), sum(
        PLAN_BYTES + STEP_BYTES * len(c.build.call_plan.steps) + c.build.traced.own_bytes
        for c in plans))


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
