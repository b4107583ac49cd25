"""The traces of a class's method, for each of its instances: see `instance_traces`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fusec.core.records import replace
from fusec.signature.jitted_methods import Kin
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.call.placement_settings import trace_key
from fusec.trace.call.symbolic_arguments import symbolic_arguments

from ..compiled_trace import Build, CompiledTrace
from ..concrete_function import ConcreteFunction
from ..sizes.symbolic_traces import SymbolicTrace, differs_in_sizes
from .instance_paths import NotShared, is_object
from .instance_traces import InstanceTrace

MOST_KEPT = 64  # kinds of calls, of all instances together; and traces of one kind
MOST_OF_ONE = 8


class KeptTrace(CompiledTrace):
    """A trace that a class keeps; calls are made with a trace bound to an instance."""

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


class _AnyObject:
    """Stands for an object in the key of a call: others of its class may be in its place."""

    def __repr__(self) -> str:
        return "of any instance"


_ANY = _AnyObject()


class _Seen(NamedTuple):
    """A call with other objects of their classes in the place of its own, which are ``roots``."""

    roots: list[Any]
    call: FlatCall


class KinOfInstance:
    """Traces for other instances that a function may use: of its class, where it is the method
    of one, and of the classes of objects among its arguments; nothing for calls without."""

    def __init__(self, kin: Kin, receiver: Callable[[], Any] | None) -> None:
        self._kin, self._receiver = kin, receiver

    @property
    def pinned(self) -> frozenset[str]:
        """The ints that traces of others turned out to need."""
        return frozenset() if self._receiver is None else self._kin.pinned

    def note_pinned(self, pinned: frozenset[str]) -> None:
        if self._receiver is not None:
            self._kin.pinned |= pinned

    def keep(self, call: FlatCall, concrete: ConcreteFunction, trace: SymbolicTrace | None) -> None:
        """Let other instances have a new trace, if nothing in it is this one's alone; ``trace``:
        the one with symbols, which it is a plan of."""
        kin, seen, build = self._kin, self._seen(call), concrete.build
        is_usual = build.placed is None and build.call_plan.executable is None
        if seen is None or not is_usual or build.traced.created:
            return
        try:
            shared = InstanceTrace(
                build.traced if trace is None else trace.traced, seen.roots, call)
        except NotShared as reason:
            build.traced.notes.append(f"each instance has its own trace: {reason}")
            return
        build = replace(build, traced=shared.traced, call=seen.call)
        if trace is not None:
            shared.traced = _with_key(shared.traced, _open_key(seen.call))
            kin.open = [KeptOpen(build, shared, trace), *kin.open][:MOST_OF_ONE]
            return
        kept = KeptTrace(build, shared)
        kept.reason, kept.line = concrete.reason, concrete.line
        key = trace_key(seen.call)
        if len(kin.by_key) >= MOST_KEPT and key not in kin.by_key:
            kin.by_key.pop(next(iter(kin.by_key)), None)
        kin.by_key[key] = [kept, *kin.by_key.get(key, ())][:MOST_OF_ONE]

    def plan(self, call: FlatCall) -> ConcreteFunction | None:
        """A trace of another instance for a call of this one."""
        seen = self._seen(call)
        if seen is None:
            return None
        for kept in self._kin.by_key.get(trace_key(seen.call), ()):
            traced = kept.shared.bound(seen.roots, call)
            if traced is not None:
                return ConcreteFunction(_of_instance(kept.build, call, traced))
        return None

    def has_other_sizes(self, call: FlatCall) -> bool:
        """Whether other instances were called with arguments that differ in sizes from these."""
        seen = self._seen(call)
        return seen is not None and any(
            differs_in_sizes(seen.call, trace.build.call) for trace in self._kin.kept())

    def varying(self, call: FlatCall) -> frozenset[str]:
        """The attributes whose floats are all that keeps this one from a trace of another."""
        seen = self._seen(call)
        if seen is None:
            return frozenset()
        kept = self._kin.by_key.get(trace_key(seen.call), ())
        return frozenset().union(*(one.shared.varying(seen.roots, call) for one in kept))

    def open_traces(self, call: FlatCall) -> Iterator[SymbolicTrace]:
        """Those with symbols, for this instance."""
        seen = self._seen(call) if self._kin.open and call.separate is None else None
        if seen is None:
            return
        key, own = _open_key(seen.call), _open_key(call)
        for kept in self._kin.open:
            is_like = kept.trace.arguments.key == key
            traced = kept.shared.bound(seen.roots, call) if is_like else None
            if traced is not None:
                yield replace(kept.trace, traced=_with_key(traced, own))

    def _seen(self, call: FlatCall) -> _Seen | None:
        """The call as that of any instance; None where it has none."""
        receiver = None if self._receiver is None else self._receiver()
        roots = {} if receiver is None else {id(receiver): receiver}
        numbers = {key: i for i, key in enumerate(roots)}
        parts: list[Any] = []
        leaves: list[Any] = []
        for leaf, part in zip(call.leaves, call.key[1:], strict=True):
            is_any = part[0] is type(leaf) and is_object(leaf)
            if is_any:
                roots.setdefault(id(leaf), leaf)
                number = numbers.setdefault(id(leaf), len(numbers))
                part = (part[0], _ANY, number)
            parts.append(part)
            leaves.append(None if is_any else leaf)
        if not roots:
            return None
        general = replace(call, key=(call.key[0], *parts), leaves=tuple(leaves))
        return _Seen(list(roots.values()), general)


def _open_key(call: FlatCall) -> tuple[Any, ...]:
    """The key of the traces with symbols for such calls."""
    arguments = symbolic_arguments(trace_key(call), call.needed)
    return () if arguments is None else arguments.key


def _with_key(traced: Any, key: tuple[Any, ...]) -> Any:
    """A trace with symbols, for calls of this key."""
    if traced.symbolic.key == key:
        return traced
    symbolic = copy.copy(traced.symbolic)
    symbolic.key = key
    return replace(traced, symbolic=symbolic)


def _of_instance(build: Build, call: FlatCall, traced: Any) -> Build:
    call_plan = build.call_plan
    if traced.states:  # with places of the instance's
        call_plan = replace(call_plan, states=traced.states)
    return replace(build, call=call, traced=traced, call_plan=call_plan,
                   times={"bind": traced.ms})


__all__ = ["KeptTrace", "KinOfInstance"]
