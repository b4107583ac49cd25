"""Objects of the user's as their attributes, where the ways of a program join.

Where data chooses one of two objects of a class, it chooses their attributes, one by one: each
object is an `ObjectRecord` while its parts are merged or carried, and an object of the class is
made of the results.  No code of the class runs for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import optree

from fusec.errors import unsupported

from ..facts.code_names import HEAP_TYPE
from ..facts.static_values import attributes_in, has_attributes, is_transparent
from ..facts.trees import NAMESPACE
from ..guards.contents import everything_in, values_inside
from ..guards.places import UNBOUND, OuterPlace, Places
from ..values.array import TracedArray
from ..values.trace import Trace
from .choice import Choice

# What most variables hold, which is no object.
LEAVES: frozenset[type] = frozenset(
    {TracedArray, bool, int, float, complex, str, np.float64, np.ndarray})


class ObjectRecord:
    """An object of this class with these attributes; `source` is the one that it was taken from."""

    __slots__ = ("kind", "names", "source", "values")

    def __init__(
        self, kind: type, names: tuple[str, ...], values: list[Any], source: Any = None
    ) -> None:
        self.kind, self.names, self.values, self.source = kind, names, values, source

    def in_order(self, names: tuple[str, ...]) -> ObjectRecord:
        """The same with its attributes in the order of these names; itself if it has others."""
        if self.names == names or {*self.names} != {*names}:
            return self
        values = dict(zip(self.names, self.values, strict=True))
        return ObjectRecord(self.kind, names, [values[name] for name in names], self.source)

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self.names, self.values, strict=True)


def _parts(x: Any) -> Any:
    return x.values, (x.kind, x.names), x.names


def _whole(of: Any, values: Any) -> Any:
    kind, names = of
    return ObjectRecord(kind, names, list(values))


_RECORD: Any = ObjectRecord
optree.register_pytree_node(_RECORD, _parts, _whole, namespace=NAMESPACE)


class HoldsItself(Exception):
    """An object lies among its own attributes, at some depth."""

    def __init__(self, record: ObjectRecord) -> None:
        super().__init__(record.kind.__name__)
        self.kind = record.kind

    def refusal(self, trace: Trace) -> Exception:
        """The error for the user."""
        return unsupported(
            f"choosing, as data decides, a {self.kind.__name__} that holds itself (parts that "
            "refer to the whole, rings)", loc=trace.loc,
            cure="keep what data changes in arrays, and refer to objects by index")


class Opening:
    """Takes objects apart as the program has them at one place.

    ``start``: when the region began that ends there; ``value_of``: the value of a place then;
    ``left``: a tree with the items of its containers then.
    """

    def __init__(
        self, trace: Trace, start: int,
        value_of: Callable[[OuterPlace], Any] = lambda place: place.now(),
        left: Callable[[Any], Any] = lambda x: x,
    ) -> None:
        self.trace, self.start, self._value_of, self._left = trace, start, value_of, left
        self._records: dict[int, tuple[Any, ObjectRecord]] = {}
        self._inside: set[int | None] = set()

    def is_older(self, x: Any) -> bool:
        """Whether an object was there before the region."""
        return is_older(self.trace, x, self.start)

    def record(self, x: Any) -> ObjectRecord:
        """An object that can be taken apart as a record, one for each; a record as it is."""
        if type(x) is ObjectRecord:
            return x
        if id(x) not in self._records:
            self._records[id(x)] = x, self._record(x)
        return self._records[id(x)][1]

    def content(self, x: Any) -> ObjectRecord:
        """The record with the contents of its containers."""
        record = self.record(x)
        values = [self._left(value) for value in record.values]
        return ObjectRecord(record.kind, record.names, values, record.source)

    def _record(self, x: Any) -> ObjectRecord:
        values = self._values(x)
        return ObjectRecord(type(x), tuple(values), list(values.values()), x)

    def _values(self, x: Any) -> dict[str, Any]:
        hooks: Any = self.trace.hooks
        assigned = {place.name: self._value_of(place)
                    for place in self.trace.part(Places).attributes_of(x)}
        is_own, held = id(x) in self.trace.local.objects, dict(attributes_in(x))
        values = dict.fromkeys([*held, *assigned])
        for name in values:
            values[name] = assigned[name] if name in assigned else held[name] if is_own else (
                hooks.getattr(hooks.where, x, name))
        return {name: value for name, value in values.items() if value is not UNBOUND}

    def opened(self, x: Any) -> Any:
        """A tree with records in the place of the objects that the region made, at any depth."""
        if type(x) is not ObjectRecord and (not is_openable(self.trace, x) or self.is_older(x)):
            return over(self.opened, x)
        record = self.record(x)
        with self.inside(record):
            values = [self.opened(self._left(value)) for value in record.values]
        return ObjectRecord(record.kind, record.names, values, record.source)

    @contextmanager
    def inside(self, x: Any) -> Iterator[None]:
        """While its items are visited; raises where it is among them itself."""
        key = id(x.source) if type(x) is ObjectRecord and x.source is not None else None
        if key is not None and key in self._inside:
            raise HoldsItself(x)
        self._inside.add(key)
        try:
            yield
        finally:
            self._inside.discard(key)


def before_all(trace: Trace) -> Opening:
    """Takes objects apart of which none is of a region."""
    return Opening(trace, sys.maxsize)


def over(f: Callable[[Any], Any], x: Any) -> Any:
    """The tree with ``f`` of the items of its outermost container; itself where nothing changes."""
    kind = type(x)
    if kind is Choice:
        held = f(x.orelse)
        return x if held is x.orelse else Choice(x.test, x.then, held)
    if kind is dict:
        values = {key: f(item) for key, item in x.items()}
        return x if all(values[key] is x[key] for key in x) else values
    if kind is not list and not (isinstance(x, tuple) and (kind is tuple or hasattr(x, "_make"))):
        return x
    items = [f(item) for item in x]
    if all(new is old for new, old in zip(items, x, strict=True)):
        return x
    return items if kind is list else tuple(items) if kind is tuple else x._make(items)


class Namespaces(set[int]):
    """Of a trace: objects of its own of which the program got the dict of their attributes."""


class ChosenOf(dict[int, tuple[Any, tuple[Any, ...]]]):
    """Of a trace: objects that stand for a choice of data, each with the possible sources."""


def choose(trace: Trace, instance: Any, *sources: Any) -> None:
    """The object stands for one of these."""
    trace.note_chosen(instance, *sources)
    table = trace.part(ChosenOf)
    behind = [x for one in sources for x in table.get(id(one), (None, ()))[1]]
    before = table.get(id(instance), (None, ()))[1]
    table[id(instance)] = instance, (*before, *sources, *behind)


def is_older(trace: Trace, x: Any, start: int) -> bool:
    """Whether an object is from outside of the trace, or was made in it before ``start``."""
    return id(x) not in trace.local.objects or trace.local.births[id(x)] < start


def is_openable(trace: Trace, x: Any) -> bool:
    """Whether all that an object is are its attributes, which may be those of another one."""
    kind = type(x)
    if not kind.__flags__ & HEAP_TYPE or not is_users_class(kind):
        return False
    is_usual = kind.__new__ is object.__new__ and not hasattr(kind, "__del__") and (
        kind.__getattribute__ is object.__getattribute__)
    return is_usual and is_transparent(x) and id(x) not in trace.part(Namespaces) and (
        optree.tree_is_leaf(x, none_is_leaf=True, namespace=NAMESPACE))


def is_users_class(kind: type) -> bool:
    """Whether a class is the user's."""
    return bool(kind.__flags__ & HEAP_TYPE) and (
        kind not in (TracedArray, ObjectRecord, Choice)
        and str(kind.__module__).partition(".")[0] not in ("fusec", "numpy"))


def is_frozen(x: Any) -> bool:
    """Whether it is an object of a frozen dataclass: nobody can tell a copy by a write."""
    return bool(getattr(getattr(type(x), "__dataclass_params__", None), "frozen", False))


def records_in(x: Any) -> list[ObjectRecord]:
    """The records in a tree, those in others too."""
    found: list[ObjectRecord] = []
    if type(x) in LEAVES:
        return found

    def is_leaf(y: Any) -> bool:
        if type(y) is ObjectRecord:
            found.append(y)
        return False

    optree.tree_leaves(x, is_leaf=is_leaf, none_is_leaf=True, namespace=NAMESPACE)
    return found


def built(trace: Trace, record: ObjectRecord) -> Any:
    """An object of the class with the record's attributes, as the trace made it now."""
    instance: Any = object.__new__(record.kind)
    hooks: Any = trace.hooks
    hooks.note_made(instance)
    for name, value in zip(record.names, record.values, strict=True):
        object.__setattr__(instance, name, value)
    return instance


class JoinedObjects:
    """The objects that stand for those of two sides: new ones, but where a side has one object in
    several places, or one that was there before, writes would have to be seen in both."""

    def __init__(self, openings: tuple[Opening, Opening]) -> None:
        self.trace, self.openings = openings[0].trace, openings
        self._made: dict[tuple[int, ...], Any] = {}
        self._standing: dict[int, tuple[Any, list[Any]]] = {}  # for objects of the sides
        self._containers: dict[int, tuple[Any, list[Any]]] = {}  # and for lists and dicts

    def of(self, record: ObjectRecord, sides: tuple[Any, Any]) -> Any:
        """The object for these; None is of no side."""
        key = tuple(map(id, sides))
        if key not in self._made:
            made = self._made[key] = built(self.trace, record)
            sources = [(one, x.source if type(x) is ObjectRecord else x)
                       for one, x in zip(self.openings, sides, strict=True) if x is not None]
            chosen = [x for one, x in sources if one.is_older(x) or (
                id(x) in self.trace.local.chosen)]
            if chosen:
                choose(self.trace, made, *chosen)
            for _, x in sources:
                self._standing.setdefault(id(x), (x, []))[1].append(made)
        return self._made[key]

    def one_for(self, container: Any, sides: tuple[Any, Any]) -> Any:
        """The container for these two: one, where they lie in several places."""
        key = tuple(map(id, sides))
        if key not in self._made:
            self._made[key] = container
            for x in sides:
                self._containers.setdefault(id(x), (x, []))[1].append(container)
        return self._made[key]

    def note_shared(self, values: Iterable[Any]) -> None:
        """Refuse writes to those that stand for an object which another one stands for too, or
        which the program goes on with by itself."""
        for source, made in self._containers.values():
            for x in made if len(made) > 1 else ():
                self.trace.note_chosen(x, source)
        if not self._standing:
            return
        kept = {id(x) for x in everything_in(list(values), _held) if id(x) in self._standing}
        for key, (source, made) in self._standing.items():
            if len(made) > 1 or key in kept:
                for x in made:
                    choose(self.trace, x, source)


def _held(x: Any) -> Iterable[Any]:
    if type(x) is Choice:
        return [x.orelse]
    is_object = bool(type(x).__flags__ & HEAP_TYPE) and has_attributes(x)
    return [held for _, held in attributes_in(x)] if is_object else values_inside(x)
