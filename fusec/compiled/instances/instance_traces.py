"""One trace for all instances of a class: attributes that it read of the one it was made for are
found in others by the same paths, and its code runs on their Variables.

A trace that serves another instance is *bound* to it: guards, inputs from outside and assignments
are made anew for its objects, which costs about as much as a plan, and the calls of the instance
then cost as much as with a trace of its own.  Nothing here keeps an instance alive,
or the memory of a Variable.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fusec.core.records import replace
from fusec.ir.sizes.size_questions import Computed
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.facts.error_states import State, States, StatesAtSizes
from fusec.trace.facts.trees import Again
from fusec.trace.guards.container_changes import ContainerChanges
from fusec.trace.guards.contents import measure
from fusec.trace.guards.guard import Guard, itself, layout_guard
from fusec.trace.guards.measures import LayoutMeasure
from fusec.trace.guards.places import Attribute, Cell, Defaults, Global
from fusec.trace.guards.relations import SameCode
from fusec.trace.objects.variables import Met
from fusec.trace.places.outside_memory import Apart, apart_guard

from .instance_paths import (
    ContainerParts,
    Fact,
    Instance,
    NotShared,
    Object,
    Paths,
    is_of_object,
    place_of,
)

if TYPE_CHECKING:
    from fusec.trace.tracer import Traced

_NAMES = (Global, Cell)
_FIXED = (Global, Cell, Defaults, Attribute)  # here an attribute of what names lead to
_Title = tuple[str, str, bool, bool]  # of a guard: its subject and place, is_native, is_quiet


class _Owned(NamedTuple):
    """An attribute of an object that the instance leads to."""

    owner: int
    name: str


class _Buffer(NamedTuple):
    """The memory of a Variable, by its place among those that the trace met."""

    met: int


class _Variable(NamedTuple):
    """A Variable that the instance leads to, as an input of the graph."""

    input: int
    title: str
    number: int


class InstanceTrace:
    """A finished trace without the instance that it was made for.

    Raises `NotShared` where something that it depends on is no path from the instance.
    """

    def __init__(self, traced: Traced, roots: Sequence[Any], call: FlatCall) -> None:
        if traced.created or any(g.is_once for g in traced.guards):
            raise NotShared("the trace serves one call")
        self._paths = paths = Paths(roots, traced.guards)
        if any(map(paths.holds_any, _others(call, roots))):
            raise NotShared("an argument is part of the instance")
        self._kinds, self._facts, self._made = paths.kinds, paths.facts, traced.own_arrays
        self._fact_of = {fact.guard: fact for fact in self._facts}
        self._fixed = [_reference(x) for x in paths.fixed.values()]
        self._met = [self._variable(met) for met in traced.variables]
        first = len(traced.graph.inputs) - len(traced.captured)
        inputs = {met.input: i for i, met in enumerate(traced.variables)}
        self._buffers = {i: v.buffer for i, met in enumerate(traced.variables)
                         if (v := met.reference()) is not None}
        self._captured = [self._source(source, inputs.get(i))
                          for i, source in enumerate(traced.captured, first)]
        self._guards = [self._guard(i, g) for i, g in enumerate(traced.guards)]
        self._assigned = [(self._place(place), tree) for place, tree in traced.assignments]
        self._outputs = [paths.number(o.value) if o.kind in ("const", "fresh") else None
                         for o in traced.outputs]
        if any(number is None and paths.holds_any(o.value)
               for number, o in zip(self._outputs, traced.outputs, strict=True)):
            raise NotShared("a result holds a part of the instance")
        for tree in (traced.treespec, *(tree for _, tree in traced.assignments)):
            self._check_tree(tree)
        self._states = traced.states
        of = traced.states.of if isinstance(traced.states, StatesAtSizes) else traced.states
        self._places: dict[int, Any] = {}
        for place, leaves in _assigned_in(of):
            self._places[id(place)] = self._place(place)
            if any(map(paths.holds_any, leaves)):
                raise NotShared("what is assigned holds a part of the instance")
        del self._paths, self._buffers, self._fact_of
        self.traced = replace(
            traced, captured=[], guards=[], assignments=[], variables=[], created=[],
            outputs=[replace(o, value=None) if n is not None else o
                     for n, o in zip(self._outputs, traced.outputs, strict=True)],
            container_changes=ContainerChanges())

    # -- taking apart

    def _variable(self, met: Met) -> Met | _Variable:
        variable = met.reference()
        number = self._paths.number(variable)
        if number is not None:
            return _Variable(met.input, met.title, number)
        if id(variable) not in self._paths.fixed:
            raise NotShared(f"{met.title} is no path from the instance")
        return met

    def _source(self, source: Any, met: int | None) -> Any:
        if met is not None:
            return _Buffer(met)
        place = getattr(source, "place", source)
        if type(place) in _NAMES or id(source) in self._made or type(source) is Computed:
            return source
        if not is_of_object(place):
            raise NotShared("an array is read from outside")
        return self._place(place)

    def _check_tree(self, tree: Any) -> None:
        """Refuse a structure with a container from outside in it, which is found at each call, or
        with keys that are objects of the instance."""
        if tree is None:
            return
        if tree.type is Again or any(map(self._paths.holds_any, tree.entries())):
            raise NotShared("a result is a container that outlives the call, or has such keys")
        for part in tree.children():
            self._check_tree(part)

    def _place(self, place: Any) -> Any:
        """An attribute as one of another instance's object, others as they are."""
        if type(place) is Attribute and (
                number := self._paths.number(place.scope())) is not None:
            return _Owned(number, place.name)
        if type(place) in _NAMES or (type(place) is Attribute and (
                id(place.scope()) in self._paths.fixed)):
            return place
        raise NotShared(f"{place} is no path from the instance")

    def _guard(self, number: int, guard: Guard) -> Any:
        """The guard itself, where it is none of the instance; otherwise the maker of its like."""
        if type(guard) is not Guard:
            raise NotShared(f"{guard} is compared in a way of its own")
        title = guard.subject, guard.place, guard.is_native, guard.is_quiet
        if type(guard.measure) is Apart:
            return partial(_of_memory, title, guard.measure)
        fact = self._fact_of.get(number)
        if fact is not None:
            is_reader = type(guard.read) is not fact.place
            measured = None if type(fact.wanted) in (Object, ContainerParts) else fact.wanted
            return partial(_of_fact, title, fact, is_reader, measured)
        buffer = _buffer_of(guard)
        if type(buffer) is Computed or id(buffer) in self._made:
            return guard
        if buffer is not None and type(guard.measure) is not LayoutMeasure:
            raise NotShared(f"the value of {guard.subject} is used")
        if buffer is not None:
            met = next((i for i, b in self._buffers.items() if b is buffer), None)
            if met is None:
                raise NotShared(f"{guard.subject} is no Variable")
            return partial(_of_buffer, guard.subject, met)
        if type(guard.measure) is SameCode or isinstance(place_of(guard), _FIXED):
            return guard
        raise NotShared(f"{guard} is no path from the instance")

    # -- for another instance

    def _found(self, roots: Sequence[Any], call: FlatCall) -> Instance:
        fixed = [x for reference in self._fixed if (x := reference()) is not None]
        return Instance(self._kinds, roots, [*fixed, *_others(call, roots)])

    def varying(self, roots: Sequence[Any], call: FlatCall) -> set[str]:
        """The attributes whose floats alone differ from those of the instance that it was made for;
        nothing where something else does."""
        return self._found(roots, call).varying(self._facts)

    def bound(self, roots: Sequence[Any], call: FlatCall) -> Traced | None:
        """The trace for these instances; None where it would be another one."""
        start = time.perf_counter()
        found = self._found(roots, call)
        if not found.fits(self._facts):
            return None
        variables: list[Any] = [
            met if isinstance(met, Met) else _met(met, found) for met in self._met]
        buffers = [v.buffer if (v := met.reference()) is not None else None for met in variables]
        captured = [buffers[s.met] if type(s) is _Buffer else _reader(s, found)
                    for s in self._captured]
        found.readers = {(id(place.scope()), place.name): source for source in captured
                         if isinstance(place := getattr(source, "place", None), Attribute)}
        guards = [g if type(g) is Guard else g(found, captured, buffers) for g in self._guards]
        if any(b is None for b in buffers) or not all(g.holds() for g in guards):
            return None
        return replace(
            self.traced, captured=captured, guards=guards, variables=variables,
            container_changes=ContainerChanges(), states=self._states_of(found),
            assignments=[(_at(place, found), tree) for place, tree in self._assigned],
            outputs=[o if n is None else replace(o, value=found.objects[n])
                     for n, o in zip(self._outputs, self.traced.outputs, strict=True)],
            notes=list(self.traced.notes), ms=1e3 * (time.perf_counter() - start))

    def _states_of(self, found: Instance) -> States | StatesAtSizes:
        if not self._places:
            return self._states
        if isinstance(self._states, StatesAtSizes):
            return StatesAtSizes(self._bound_states(self._states.of, found), self._states.mapping)
        return self._bound_states(self._states, found)

    def _bound_states(self, states: States, found: Instance) -> States:
        def bound(state: State | None) -> Any:
            return state and State(
                [(_at(self._places[id(place)], found), tree, leaves)
                 for place, tree, leaves in state.assigned], state.written)

        return States([(node, bound(state)) for node, state in states.noted],
                      {node: bound(state) for node, state in states.at_checks.items()})


# ------------------------------------------------------------------------------- parts of a trace


def _others(call: FlatCall, roots: Sequence[Any]) -> list[Any]:
    """The arguments that are none of the instances."""
    own = set(map(id, roots))
    return [leaf for leaf in call.leaves if id(leaf) not in own]


def _reference(x: Any) -> Any:
    """A weak reference, where there is one."""
    try:
        return weakref.ref(x)
    except TypeError:
        return partial(itself, x)


def _assigned_in(states: States) -> Iterator[tuple[Any, list[Any]]]:
    """The places that states assign, with the leaves of their values."""
    for state in (*(s for _, s in states.noted), *states.at_checks.values()):
        for place, _, leaves in state.assigned if state is not None else ():
            yield place, leaves


def _buffer_of(guard: Guard) -> Any:
    read: Any = guard.read
    return read.args[0] if type(read) is partial and read.func is itself else None


def _at(place: Any, found: Instance) -> Any:
    return Attribute(found.objects[place.owner], place.name) if type(place) is _Owned else place


def _reader(source: Any, found: Instance) -> Any:
    return _at(source, found).reader if type(source) is _Owned else source


def _met(variable: _Variable, found: Instance) -> Met:
    held = found.objects[variable.number]
    return Met(variable.input, variable.title, held.occupancy, weakref.ref(held))


def _of_fact(
    title: _Title, fact: Fact, is_reader: bool, measured: Any, found: Instance,
    captured: Sequence[Any], _: Sequence[Any],
) -> Guard:
    """A guard of an attribute; an input's reads it as the input does, which is compared at once."""
    owner = found.objects[fact.owner]
    place = fact.place(owner, fact.name)
    read: Any = place
    if is_reader:
        read = found.readers.get((id(owner), fact.name), place.reader)
    if measured is None:
        measured = measure(place())
    subject, name, is_native, is_quiet = title
    return Guard(subject, name, read, measured, is_native=is_native, is_quiet=is_quiet)


def _of_buffer(
    subject: str, met: int, found: Instance, captured: Sequence[Any], buffers: Sequence[Any],
) -> Guard:
    guard = layout_guard(subject, partial(itself, buffers[met]))
    guard.is_native = True
    return guard


def _of_memory(
    title: _Title, apart: Apart, found: Instance, captured: Sequence[Any], _: Sequence[Any],
) -> Guard:
    return apart_guard(title[0], captured, apart)


__all__ = ["InstanceTrace"]
