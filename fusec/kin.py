"""The traces of a class's method, for each of its instances: see `fusec.instance_traces`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fusec.trace.call.flat_call import FlatCall

from .compiled_trace import Build, CompiledTrace
from .concrete_function import ConcreteFunction
from .instance_paths import NotShared
from .instance_traces import InstanceTrace
from .jitted_methods import Kin
from .placing import trace_key
from .records import replace
from .symbolic_traces import SymbolicTrace, differs_in_sizes

MOST_KEPT = 64  # kinds of calls, of all instances together; and traces of one kind
MOST_OF_ONE = 8


class KeptTrace(CompiledTrace):
    """A trace that a class keeps; calls are made with what is bound to an instance."""

    def __init__(self, build: Build, shared: InstanceTrace) -> None:
        super().__init__(build, None)  # type: ignore[arg-type]
        self.shared = shared

    @property
    def times(self) -> dict[str, float]:
        return self.build.times


class KeptOpen(KeptTrace):
    """The same of a trace that serves several sizes, which this is one plan of."""

    def __init__(self, build: Build, shared: InstanceTrace, trace: SymbolicTrace) -> None:
        super().__init__(build, shared)
        self.trace = replace(trace, traced=shared.traced)


class KinOfInstance:
    """What one instance has of its class's traces; nothing for functions, which are no methods."""

    def __init__(self, kin: Kin | None, receiver: Callable[[], Any] | None) -> None:
        self._kin, self._receiver = kin, receiver

    @property
    def pinned(self) -> frozenset[str]:
        """The ints that traces of others turned out to need."""
        return frozenset() if self._kin is None else self._kin.pinned

    def note_pinned(self, pinned: frozenset[str]) -> None:
        if self._kin is not None:
            self._kin.pinned |= pinned

    def keep(self, call: FlatCall, concrete: ConcreteFunction, trace: SymbolicTrace | None) -> None:
        """Let other instances have a new trace, if nothing in it is this one's alone; ``trace``:
        the one with symbols, which it is a plan of."""
        kin, instance, build = self._kin, self._instance(), concrete.build
        is_usual = build.placed is None and build.schedule.executable is None
        if kin is None or instance is None or not is_usual or build.traced.created:
            return
        try:
            shared = InstanceTrace(build.traced if trace is None else trace.traced, instance, call)
        except NotShared as reason:
            build.traced.notes.append(f"each instance has its own trace: {reason}")
            return
        build = replace(build, traced=shared.traced)
        if trace is not None:
            kin.open = [KeptOpen(build, shared, trace), *kin.open][:MOST_OF_ONE]
            return
        kept = KeptTrace(build, shared)
        kept.reason, kept.line = concrete.reason, concrete.line
        key = trace_key(call)
        if len(kin.by_key) >= MOST_KEPT and key not in kin.by_key:
            kin.by_key.pop(next(iter(kin.by_key)), None)
        kin.by_key[key] = [kept, *kin.by_key.get(key, ())][:MOST_OF_ONE]

    def plan(self, call: FlatCall) -> ConcreteFunction | None:
        """A trace of another instance for a call of this one."""
        instance = self._instance()
        if self._kin is None or instance is None:
            return None
        for kept in self._kin.by_key.get(trace_key(call), ()):
            traced = kept.shared.bound(instance, call)
            if traced is not None:
                return ConcreteFunction(_of_instance(kept.build, call, traced))
        return None

    def has_other_sizes(self, call: FlatCall) -> bool:
        """Whether other instances were called with arguments that differ in sizes from these."""
        kept = () if self._kin is None else self._kin.kept()
        return any(differs_in_sizes(call, trace.build.call) for trace in kept)

    def open_traces(self, call: FlatCall) -> Iterator[SymbolicTrace]:
        """Those with symbols, for this instance."""
        instance = self._instance()
        for kept in self._kin.open if self._kin is not None and instance is not None else ():
            traced = kept.shared.bound(instance, call)
            if traced is not None:
                yield replace(kept.trace, traced=traced)

    def _instance(self) -> Any:
        return None if self._receiver is None else self._receiver()


def _of_instance(build: Build, call: FlatCall, traced: Any) -> Build:
    schedule = build.schedule
    if traced.states:  # with places of the instance's
        schedule = replace(schedule, states=traced.states)
    return replace(build, call=call, traced=traced, schedule=schedule,
                   times={"bind": traced.ms})


__all__ = ["KeptTrace", "KinOfInstance"]
