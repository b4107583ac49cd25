"""Attributes of its instance that a trace of a method read, as paths that other instances have.

A *fact* is an attribute of an object that the instance leads to, with a condition: another such
object of the same class, a container of such, or a guard's measure.  Facts are in an order in
which each object is found before its own attributes are asked for.
"""

from __future__ import annotations

import gc
from collections.abc import Container, Iterable, Iterator, Sequence
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from fusec.state.variable import Variable
from fusec.trace.facts.static_values import attributes_in, is_transparent
from fusec.trace.guards.contents import everything_in, inside, measure, values_inside
from fusec.trace.guards.guard import Guard
from fusec.trace.guards.measures import ATOMS, Bits, LayoutMeasure, Measure
from fusec.trace.guards.places import UNBOUND, Attribute, MethodOf, NamesOf, OuterPlace

_CONTAINERS = (tuple, list, dict)
_SHARED = (type, ModuleType, CodeType, np.ndarray, Variable)  # nobody's own, or inputs
_EMPTY = CellType()


class NotShared(Exception):
    """Why a trace serves the instance alone that it was made for."""


class Object(NamedTuple):
    """An object that the instance leads to, by its number."""

    number: int


class ContainerParts(NamedTuple):
    """A container, some of whose items are such objects or containers of them."""

    kind: type
    keys: tuple[Any, ...]
    items: tuple[Any, ...]


class Fact(NamedTuple):
    """``guard``: its number; ``wanted``: an `Object`, `ContainerParts` or a `Measure`."""

    guard: int
    owner: int
    place: type[Attribute]
    name: str
    wanted: Any


def is_object(x: Any) -> bool:
    """Whether another such object may stand in its place: programs read attributes of it,
    which are facts of their own."""
    return isinstance(x, Variable) or (is_transparent(x) and inside(x) is None)


def place_of(guard: Guard) -> Any:
    """The place that a guard reads; None where it reads anything else."""
    return getattr(guard.read, "place", guard.read)


def is_of_object(place: Any) -> bool:
    """Whether it is an attribute of an object, which another instance may have another one for."""
    return type(place) in (Attribute, MethodOf, NamesOf) and not isinstance(
        place.scope(), (type, FunctionType, ModuleType))


class Paths:
    """The objects that instances, the ``roots``, lead to, and the facts of them that a trace needs.

    An object that names lead to as well is ``fixed``: for other instances it is the same.
    """

    def __init__(self, roots: Sequence[Any], guards: Sequence[Guard]) -> None:
        self._attributes = {
            i: place for i, g in enumerate(guards) if is_of_object(place := place_of(g))}
        self.fixed: dict[int, Any] = {}
        self._fix(x for i, g in enumerate(guards) if i not in self._attributes for x in _read_by(g))
        self._objects = list(roots)
        self._numbers = {id(x): i for i, x in enumerate(roots)}
        self.facts: list[Fact] = []
        if any(id(x) in self.fixed or not is_object(x) for x in roots):
            raise NotShared("a name leads to the instance")
        while found := self._owned_by(self._numbers):
            for i, place in found.items():
                number = self._numbers[id(place.scope())]
                self.facts.append(Fact(i, number, type(place), place.name,
                                       self._wanted(place(), guards[i].measure)))
        if self._attributes:
            raise NotShared(f"{next(iter(self._attributes.values())).title} is no path from it")
        self.kinds = [kind_of(x) for x in self._objects]
        self._parts_of_them = self._held_by(self._objects)

    def _held_by(self, objects: Iterable[Any]) -> dict[int, Any]:
        """Values of the objects that are each one's own: lists, functions, whatever may be changed
        or told apart."""
        held = [value for x in objects if not isinstance(x, Variable)
                for _, value in attributes_in(x)]
        return {id(item): item for value in held for item in everything_in(value, _referred)
                if not isinstance(item, (*_SHARED, *ATOMS)) and id(item) not in self.fixed}

    def _owned_by(self, objects: Container[int]) -> dict[int, Attribute]:
        """The attributes left that are some of these objects', which are left no more."""
        found = {i: p for i, p in self._attributes.items() if id(p.scope()) in objects}
        self._attributes = {i: p for i, p in self._attributes.items() if i not in found}
        return found

    def _fix(self, values: Iterable[Any]) -> None:
        """Take the objects that names lead to, and those that their attributes do."""
        while True:
            for value in values:
                self.fixed.update((id(x), x) for x in everything_in(value) if is_object(x))
            found = self._owned_by(self.fixed)
            if not found:
                return
            values = [place() for place in found.values()]

    def number(self, x: Any) -> int | None:
        return self._numbers.get(id(x))

    def holds_any(self, x: Any) -> bool:
        """Whether a value is one of the objects or a part of one, or leads to such."""
        return any(id(item) in self._numbers or id(item) in self._parts_of_them
                   for item in everything_in(x, _referred))

    def _wanted(self, value: Any, measured: Measure) -> Any:
        if self._is_own(value):
            return self._entered(value)
        if inside(value) is None or not any(map(self._is_own, everything_in(value))):
            return measured
        return self._parts(value)

    def _is_own(self, x: Any) -> bool:
        return is_object(x) and id(x) not in self.fixed

    def _entered(self, x: Any) -> Object:
        number = self._numbers.setdefault(id(x), len(self._objects))
        if number == len(self._objects):
            self._objects.append(x)
        return Object(number)

    def _parts(self, container: Any) -> ContainerParts:
        if type(container) not in _CONTAINERS:
            raise NotShared(f"objects in a {type(container).__name__}")
        pairs = inside(container) or []
        if type(container) is dict and not all(isinstance(key, ATOMS) for key, _ in pairs):
            raise NotShared("a dict whose keys are objects")
        return ContainerParts(type(container), tuple(key for key, _ in pairs),
                              tuple(self._part(x) for _, x in pairs))

    def _part(self, x: Any) -> Any:
        if self._is_own(x):
            return self._entered(x)
        if inside(x) is not None and any(map(self._is_own, everything_in(x))):
            return self._parts(x)
        return measure(x)


def _referred(x: Any) -> Iterable[Any]:
    """The objects that a container, object, function or iterator refers to."""
    if isinstance(x, FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if c != _EMPTY]
        return [*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    if isinstance(x, (MethodType, BuiltinMethodType)):
        return [x.__self__, *([x.__func__] if isinstance(x, MethodType) else [])]
    if is_transparent(x):
        return [value for _, value in attributes_in(x)]
    if isinstance(x, dict):
        return [*x, *x.values()] if "__builtins__" not in x else ()
    if isinstance(x, Iterator):
        return [y for y in gc.get_referents(x) if not isinstance(y, (FrameType, *_SHARED))]
    return values_inside(x)


def _read_by(guard: Guard) -> tuple[Any, ...]:
    """The object that a guard of anything but an object's attribute reads."""
    place = place_of(guard)
    return (place(),) if isinstance(place, OuterPlace) else ()


def kind_of(x: Any) -> Any:
    """The kind that another object must share with this one."""
    if not isinstance(x, Variable):
        return type(x)
    return type(x), x.dtype, x.shape, x.name, x.trainable, x.stated_device


class Instance:
    """The objects of another instance, as facts lead to them; none of them is ``fixed``."""

    def __init__(self, kinds: Sequence[Any], roots: Sequence[Any], fixed: Iterable[Any]) -> None:
        self._kinds = kinds
        self._taken = set(map(id, fixed))
        self.objects: list[Any] = [UNBOUND] * len(kinds)
        self.readers: dict[tuple[int, str], Any] = {}  # of inputs, by the object and the attribute
        self._is_alike = all(self._is(i, root) for i, root in enumerate(roots))

    def fits(self, facts: Iterable[Fact]) -> bool:
        """Whether all facts are true of it; it knows its objects then."""
        return self._is_alike and all(self._matches(
            fact.wanted, fact.place.of(self.objects[fact.owner], fact.name)) for fact in facts)

    def varying(self, facts: Iterable[Fact]) -> set[str]:
        """The names of floats that are others, where all other facts are true."""
        names: set[str] = set()
        for fact in facts if self._is_alike else ():
            value = fact.place.of(self.objects[fact.owner], fact.name)
            if self._matches(fact.wanted, value):
                if type(fact.wanted) is LayoutMeasure and fact.wanted.layout == (float,):
                    names.add(fact.name)  # an input of that trace
            elif type(fact.wanted) is Bits and fact.wanted.kind is type(value) is float:
                names.add(fact.name)
            else:
                return set()
        return names

    def _matches(self, wanted: Any, value: Any) -> bool:
        if type(wanted) is Object:
            return self._is(wanted.number, value)
        if type(wanted) is not ContainerParts:
            return bool(wanted.matches(value))
        items: Any = value
        if type(value) is not wanted.kind or len(items) != len(wanted.items):
            return False
        return all(type(k) is type(key) and k == key and self._matches(item, x)
                   for key, item, (k, x) in zip(
                       wanted.keys, wanted.items, inside(value) or [], strict=True))

    def _is(self, number: int, value: Any) -> bool:
        """Whether a value may be the object of this number, and no other is."""
        if self.objects[number] is not UNBOUND:
            return self.objects[number] is value
        if id(value) in self._taken or kind_of(value) != self._kinds[number]:
            return False
        self.objects[number] = value
        self._taken.add(id(value))
        return True


__all__ = ["ContainerParts", "Fact", "Instance", "NotShared", "Object", "Paths", "is_object",
           "is_of_object", "kind_of", "place_of"]
