"""Objects that the program's functions reach through names: globals, closure variables, defaults.

They are noted before each function is first called, when it has changed nothing yet: the contents
of containers, and where arrays lie, so that later calls read those that lie there then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodWrapperType
from typing import Any

import numpy as np

from fusec.core.code_roles import is_ours
from fusec.core.records import dataclass

from ..facts.code_names import globals_in
from ..facts.dict_versions import Rebindings
from ..guards.array_values import GuardedArrays
from ..guards.contents import (
    ArrayContent,
    Content,
    everything_in,
    inside,
    item_of,
    measure,
    parts_of,
    values_inside,
)
from ..guards.guard import Guard, attribute_guard, is_data, place_guard
from ..guards.measures import ATOMS, Bits, Identity
from ..guards.places import UNBOUND, Cell, Defaults, Global, Key, OuterPlace
from ..guards.process_state import is_decimal, note_decimals
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray
from ..values.trace import Trace
from .kept_values import bound_to
from .outside_memory import same_guard

Reader = Callable[[], Any]
_EVALUATING = frozenset({"eval", "exec"})  # what such code reads is known when it runs


def polynomials() -> tuple[Any, ...]:
    """The class of all kinds of NumPy's, once the program has imported it (3 ms)."""
    module = sys.modules.get("numpy.polynomial")
    return () if module is None else (module.Polynomial.__base__,)


@dataclass(frozen=True, eq=False)
class ArrayPlace:
    """Where an array lies: in a place that is guarded, perhaps under keys."""

    read: Reader
    subject: str
    owner: Key  # the key of the place


class Outside:
    """Objects that one trace reaches outside."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.names: dict[Key, Guard] = {}
        self.arrays: dict[int, list[ArrayPlace]] = {}
        self.reached: dict[int, Any] = {}  # all of it, by id
        self._contents: list[Content] = []

    def enter(self, fn: FunctionType) -> None:
        """A function of the program is about to be called."""
        if not _EVALUATING.isdisjoint(fn.__code__.co_names):
            self.trace.world.watch.start()
        bound = self.trace.world.outer_names.bound_objects()
        self.trace.part(Rebindings).enter(fn.__globals__)
        for name in self._names_of(fn):
            value = name()
            if name.key not in self.names and _is_constant(value) and id(value) not in bound:
                self.names[name.key] = guard = self._guard(name)
                self.note(guard, name.key)

    def _names_of(self, fn: FunctionType) -> Iterator[OuterPlace]:
        """Defaults of the traced function itself are arguments of the call."""
        is_called = fn not in self.trace.entry or fn in getattr(self.trace.hooks, "functions", ())
        return (name for name in names_of(fn) if is_called or name.scope is not fn)

    def _guard(self, name: OuterPlace) -> Guard:
        return place_guard(name, measure(name(), self.trace.world.containers.guarded))

    def note(self, guard: Guard, key: Key) -> None:
        """The value of a guarded place, and its items, were there before the call."""
        value = guard.read()
        self.reach(value)
        if type(guard.measure) is Content:
            self._contents.append(guard.measure)
            for array, keys in guard.measure.arrays():
                title = guard.subject + "".join(f"[{k!r}]" for k in keys)
                self._add(array, ArrayPlace(partial(_item, guard.read, keys), title, key))
        elif isinstance(value, np.ndarray):
            self._add(value, ArrayPlace(guard.read, guard.subject, key))

    def _add(self, array: np.ndarray, place: ArrayPlace) -> None:
        self.reached[id(array)] = array  # so that the id stays its own
        self.arrays.setdefault(id(array), []).append(place)

    def reach(self, value: Any) -> None:
        """All that lies in it was there before the call."""
        for item in everything_in(value, self._held_by, self.reached):
            if not isinstance(item, ATOMS):
                self.trace.world.watch.see(item)
                self._note_state(item)

    def _note_state(self, item: Any) -> None:
        """Contents of libraries' objects, which their own code reads."""
        if isinstance(item, polynomials()):
            for name in ("coef", "domain", "window"):
                guard = attribute_guard(item, name)
                guard.measure = ArrayContent(guard.read())
                self.trace.world.guards.setdefault((id(item), name), guard)
        elif is_decimal(item):
            note_decimals(self.trace)

    def _held_by(self, value: Any) -> Iterable[Any]:
        if isinstance(value, (BuiltinMethodType, MethodWrapperType)):
            return [bound_to(value)]
        if type(value) is partial:
            return [bound_to(value), *parts_of(value)]
        return values_inside(self.trace.world.containers.content_before(value))

    # -- arrays that are read at each call --------------------------------------------------------

    def places_of(self, array: np.ndarray) -> list[ArrayPlace]:
        """Where an array lies."""
        return self.arrays.get(id(array), [])

    def place_of(self, array: np.ndarray) -> ArrayPlace | None:
        """The first of these."""
        return next(iter(self.places_of(array)), None)

    def guards(self, functions: Collection[FunctionType], inputs: Collection[Key]) -> list[Guard]:
        """For values that these functions read by name, less the variables that are ``inputs``."""
        guards: dict[Key, Guard] = {}
        for fn in functions:
            for name in self._names_of(fn):
                value = name()
                if name.key not in guards and name.key not in inputs and _is_constant(value):
                    guards[name.key] = guard = self.names.get(name.key) or self._guard(name)
                    if guard.refresh():
                        self.trace.part(Rebindings).is_of_name = True
        return [*(g for g in guards.values() if not self.is_read(g)), *self._same(inputs)]

    def container_at(self, container: Any) -> Reader | None:
        """How to find a container from outside again, in a place that is guarded."""
        for guard in (*self.names.values(), *self.trace.world.guards.values()):
            if type(guard.measure) in (Content, Bits):
                keys = _keys_to(container, guard.read())
                if keys is not None:
                    return partial(_item, guard.read, keys)
        return None

    def close(self) -> None:
        """At the end of the trace, which keeps no array: a weak reference to one forbids
        ``resize``.  Arrays in containers that are read at each call have guards of their own."""
        guarded = self.trace.feeds.readers.keys() | self.trace.part(GuardedArrays).keys()
        for content in self._contents:
            content.close(guarded)
        trace = self.trace
        for table in (self.names, self.arrays, self.reached, trace.world.guards,
                      trace.part(GuardedArrays)):
            table.clear()

    def is_read(self, guard: Guard) -> bool:
        """Whether the array that the guard is for has guards of its own: it is read at each call,
        or Python took its value."""
        if type(guard.measure) not in (Identity, ArrayContent):
            return False
        held = id(guard.read())
        return held in self.trace.feeds.readers or held in self.trace.part(GuardedArrays)

    def _same(self, inputs: Collection[Key]) -> Iterator[Guard]:
        """Two places of one array are one input: they must go on to hold one array."""
        for array, places in self.arrays.items():
            first = self.trace.feeds.readers.get(array)
            for place in places:
                if first is not None and place.read is not first and place.owner not in inputs:
                    yield same_guard(place.subject, place.subject.removeprefix("attribute "),
                                     place.read, first)


def _is_constant(value: Any) -> bool:
    return is_data(value) and type(value) is not TracedArray


def _keys_to(container: Any, root: Any) -> tuple[Any, ...] | None:
    """The keys that lead to a container inside another one."""
    paths: dict[int, tuple[Any, ...]] = {id(root): ()}

    def items(value: Any) -> Iterator[Any]:
        for key, item in inside(value) or ():
            paths.setdefault(id(item), (*paths[id(value)], key))
            yield item

    return next((paths[id(x)] for x in everything_in(root, items) if x is container), None)


def _item(read: Reader, keys: tuple[Any, ...]) -> Any:
    value = read()
    try:
        for key in keys:
            value = item_of(value, key)
    except (LookupError, TypeError):  # the container's guard says that it has changed
        return UNBOUND
    return value


def names_of(fn: Any) -> Iterator[OuterPlace]:
    """Globals and closure variables that a function, or code inside it such as a comprehension,
    names, and its defaults.  Those of a function that the program made in the trace are its own."""
    function = getattr(fn, "__func__", fn)
    if not isinstance(function, FunctionType) or is_ours(function.__globals__):
        return
    for name in globals_in(function.__code__, "STORE_GLOBAL", "DELETE_GLOBAL"):
        if name in function.__globals__:
            yield Global(function.__globals__, name)
    if HOOKS_NAME in function.__code__.co_freevars:
        return
    yield from (Defaults(function, name) for name in ("__defaults__", "__kwdefaults__")
                if getattr(function, name) is not None)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        if (place := Cell(cell, name))() is not UNBOUND:
            yield place
