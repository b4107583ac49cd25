"""Variables of outer scopes that the program assigns: ``global`` and ``nonlocal`` names.

Those from outside the traced function are read at each call and assigned after it, as attributes
are.  In branches and loops they all are variables like any other: which there are is known from the
functions that were called.  While a function is traced the traced value stands in the variable
itself, where every function sees it; afterwards what it held is put back.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from fusec.ir.graph import new_id

from ..choice.choice import UNBOUND
from ..facts.refusals import is_compiled
from ..guards.container_changes import may_be_held
from ..guards.guard import layout_guard
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray
from ..values.assigned_names import AssignedLater, is_named
from ..values.trace import Trace
from .apart import captured
from .attributes import Assignment, scalar_type
from .cells import contents, put

Key = tuple[int, str]


@dataclass(eq=False)
class Place:
    """A variable of an outer scope: a cell, or a name in a module's dictionary."""

    name: str
    scope: CellType | dict[str, Any]

    @property
    def key(self) -> Key:
        return id(self.scope), "" if isinstance(self.scope, CellType) else self.name

    @property
    def subject(self) -> str:
        """What messages call it."""
        return f"{'closure variable' if isinstance(self.scope, CellType) else 'global'} {self.name}"

    @property
    def value(self) -> Any:
        if isinstance(self.scope, CellType):
            return contents(self.scope)
        return self.scope.get(self.name, UNBOUND)

    @value.setter
    def value(self, value: Any) -> None:
        if isinstance(self.scope, CellType):
            put(self.scope, value)
        elif value is not UNBOUND:
            self.scope[self.name] = value
        else:
            self.scope.pop(self.name, None)


def _is_place(place: Any) -> bool:
    return type(place) is Place


@dataclass
class OuterNames:
    """The outer variables that functions called so far assign."""

    trace: Trace
    places: dict[str, Place] = field(default_factory=dict)  # by what messages call them
    initial: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)  # of those from outside: to put back
    known: set[Key] = field(default_factory=set)
    entered: set[FunctionType] = field(default_factory=set)
    # Variables of functions that were called in a region, and containers made in one, with when
    # that was.
    born: dict[int, tuple[int, Any]] = field(default_factory=dict)
    is_begun: bool = False

    def enter(self, fn: FunctionType) -> None:
        """A function of the program is about to be called."""
        is_inside = HOOKS_NAME in fn.__code__.co_freevars
        self.entered.add(fn)
        for place in _assigned(fn, not is_inside):
            if place.key not in self.known:
                self._check_unread(fn, place, is_inside)
                self.known.add(place.key)
                self._add(place, is_inside)

    def note_frame(self, cells: Iterable[CellType]) -> None:
        """A function of the program begins with these variables."""
        if self.trace.in_region:
            self.born.update((id(cell), (new_id(), cell)) for cell in cells)

    def forget(self, start: int) -> None:
        """Let go of variables that began after ``start``, in a side of a branch or in a loop's body
        that ends: each of its ways, and each iteration, has its own."""
        over = {key for key, (born, _) in self.born.items() if born > start}
        for title, place in list(self.places.items()) if over else ():
            if id(place.scope) in over:
                del self.places[title], self.initial[title]
                self.known.discard(place.key)
        for key in over:
            del self.born[key]

    def _check_unread(self, fn: FunctionType, place: Place, is_inside: bool) -> None:
        """What was read as a constant cannot become an input: the trace begins anew."""
        found, names = place.value, self.trace.world.assigned_names
        if is_inside or not self.is_begun or not (
                type(found) is np.ndarray or may_be_held(found) or names.may_be_input(found)):
            return
        if is_named(self.entered - {fn}, place.name):
            raise AssignedLater(place=place)

    def _add(self, place: Place, is_inside: bool) -> None:
        title = self._title(place.subject)
        found = place.value
        if not is_inside:
            self.before[title] = found
            place.value = self._input(place, found)
        self.places[title], self.initial[title] = place, place.value

    def _title(self, subject: str) -> str:
        title, number = subject, 2
        while title in self.places:
            title, number = f"{subject} ({number})", number + 1
        return title

    def _input(self, place: Place, found: Any) -> Any:
        """What stands for the value: an array or number is an input, others are constants."""
        trace, is_array = self.trace, type(found) is np.ndarray and is_compiled(found.dtype)
        is_local = is_array and id(found) in trace.local.arrays
        if may_be_held(found) and not trace.world.containers.is_held(found):
            trace.world.guards[place.key] = trace.world.containers.enter(
                place.subject, lambda: place.value)
            return found
        if is_local or not (is_array or trace.world.assigned_names.may_be_input(found)):
            return found

        def read() -> Any:
            return place.value

        trace.world.guards[place.key] = layout_guard(place.subject, read)
        if is_array:
            trace.feeds.readers.setdefault(id(found), read)
            return captured(trace, found, read, place.subject)
        trace.world.assigned_names.has_ints |= type(found) is int
        return TracedArray(trace, None, (), trace.capture_number(
            scalar_type(found), place.subject, read))

    @contextmanager
    def held(self, entry: Iterable[FunctionType]) -> Iterator[None]:
        """For the time of the trace of these functions."""
        try:
            for place in self.trace.world.assigned_names.places.values():
                self.known.add(place.key)
                self._add(place, False)
            for fn in entry:
                self.enter(fn)
            self.is_begun = True
            yield
        finally:
            self._put_back()

    def made(self) -> set[int]:
        """The ids of what the program bound them to since the trace began."""
        return {id(place.value) for title, place in self.places.items()
                if title in self.before and type(place) is Place
                and place.value is not self.initial[title]}

    # -- as variables of branches and loops -------------------------------------------------------

    def read(self) -> dict[str, Any]:
        """What every one of them holds."""
        return {title: place.value for title, place in self.places.items()}

    def write(self, values: Mapping[str, Any]) -> None:
        """Bind those that ``values`` names."""
        for title, value in values.items():
            if title in self.places:
                self.places[title].value = value

    def restore(self, values: Mapping[str, Any], restored: Collection[int] = ()) -> None:
        """Bind all as they were when `read` gave these values, new ones as they were found.

        ``restored`` are the ids of cells that have been, under the names of the program's own
        variables: what was found in them was a value of the attempt that is taken back.
        """
        self.write({title: values.get(title, self.initial[title])
                    for title, place in self.places.items()
                    if title in values or id(place.scope) not in restored})

    def is_cell(self, cell: CellType) -> bool:
        """Whether the cell is one of them."""
        return (id(cell), "") in self.known

    # -- the end of the trace ---------------------------------------------------------------------

    def hold(self, place: Any, found: Any) -> None:
        """Take a variable as one of these, an item of a container in which its traced value is."""
        self.before[self.hold_inside(place)] = found

    def hold_inside(self, place: Any) -> str:
        """The same of a container that the function made; gives the variable's title."""
        title = self._title(place.subject)
        self.known.add(place.key)
        self.places[title], self.initial[title] = place, place.value
        return title

    def effects(self, which: Callable[[Any], bool] = _is_place) -> list[tuple[Any, Any]]:
        """What is to be assigned after each call, of the variables asked for."""
        found = []
        for title in self.before:
            place = self.places[title]
            if which(place) and place.value is not UNBOUND and (
                    place.value is not self.initial[title]):
                found.append((Assignment(_finder(place), "value", title), place.value))
        return found

    def _put_back(self) -> None:
        """What they held before the trace."""
        for title, value in self.before.items():
            if self.places[title].value is not UNBOUND:
                self.places[title].value = value

    def are_inputs(self) -> set[Key]:
        """Those that need no guard on their value."""
        return {self.places[t].key for t in self.before if type(self.initial[t]) is TracedArray
                or self.trace.world.containers.is_held(self.initial[t])}


def _finder(place: Any) -> Callable[[], Any]:
    """Gives the variable at a later call."""
    return partial(_same, place) if type(place) is Place else place.later


def _same(place: Place) -> Place:
    return place


def _assigned(fn: FunctionType, with_globals: bool) -> Iterator[Place]:
    free, module = _stored(fn.__code__)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    yield from (Place(name, cells[name]) for name in free if name in cells)
    yield from (Place(name, fn.__globals__) for name in (module if with_globals else ()))


@functools.lru_cache(1000)
def _stored(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Free and global variables that a function's code, or code inside it, assigns."""
    free: dict[str, None] = {}
    module: dict[str, None] = {}
    for i in dis.get_instructions(code):
        if i.opname in ("STORE_DEREF", "DELETE_DEREF") and i.argval in code.co_freevars:
            free[i.argval] = None
        elif i.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            module[i.argval] = None
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            inner_free, inner_module = _stored(inner)
            free.update((n, None) for n in inner_free if n in code.co_freevars)
            module.update(dict.fromkeys(inner_module))
    return tuple(n for n in free if not n.startswith("_fusec_")), tuple(module)
