"""Variables of outer scopes that the program assigns: ``global`` and ``nonlocal`` names.

Those from outside the traced function are read at each call and assigned after it, as attributes
are.  In branches and loops they all are variables like any other: which there are is known from the
functions that were called.  While a function is traced the traced value stands in the variable
itself, where every function sees it; afterwards its old value is put back.
"""

from __future__ import annotations

import copy
import dis
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from fusec.ir import Loc
from fusec.ir.graph import new_id

from ..guards.container_changes import may_be_held
from ..guards.places import Attribute, Cell, Global, Key, OuterPlace, Places
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray
from ..values.assigned_names import AssignedLater, is_named
from ..values.trace import Trace
from .outside_memory import stand_in

_STORING = frozenset({"STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL"})


class OuterNames:
    """The outer variables that functions called so far assign."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.places = trace, trace.part(Places)
        self.entered: set[FunctionType] = set()
        self.is_begun = False

    def enter(self, fn: FunctionType) -> None:
        """A function of the program is about to be called."""
        is_inside = HOOKS_NAME in fn.__code__.co_freevars
        self.entered.add(fn)
        for place in _assigned(fn, not is_inside):
            if place not in self.places:
                self._check_unread(fn, place, is_inside)
                self._add(place, is_inside)

    def enter_parts(self, functions: Iterable[Callable[..., Any]]) -> None:
        """Parts of a function that bind its variables within an expression."""
        for fn in functions:
            for place in _assigned(fn, False):
                if place not in self.places:
                    self._add(place, is_inside=True)

    def note_frame(self, cells: Iterable[CellType]) -> None:
        """A function of the program begins with these variables."""
        if self.trace.in_region:
            self.places.born.update((id(cell), (new_id(), cell)) for cell in cells)

    def _check_unread(self, fn: FunctionType, place: OuterPlace, is_inside: bool) -> None:
        """A name read as a constant cannot become an input: the trace begins anew."""
        value, names = place(), self.trace.world.assigned_names
        if is_inside or not self.is_begun or not (
                type(value) is np.ndarray or may_be_held(value) or names.may_be_input(value)):
            return
        if is_named(self.entered - {fn}, place.name):
            raise AssignedLater(place=place)

    def _add(self, place: OuterPlace, is_inside: bool = False) -> None:
        if is_inside:
            self.places.add(place)
            return
        value = place()
        place.put(stand_in(self.trace, place, value))
        self.places.add_outside(place, value)

    @contextmanager
    def held(self, entry: Iterable[FunctionType]) -> Iterator[None]:
        """For the time of the trace of these functions."""
        try:
            for place in self.trace.world.assigned_names.places.values():
                self._add(copy.copy(place))  # which an attempt before gave a title
            for fn in entry:
                self.enter(fn)
            self.is_begun = True
            yield
        finally:
            self.places.put_back()

    def assigned_at(self, place: OuterPlace) -> Loc | None:
        """The first line of the functions called so far that assigns the name."""
        found = [line for fn in self.entered for p in _assigned(fn, True) if p.key == place.key
                 for line in _lines(fn, p.name)]
        return min(found, default=None)

    def bound_objects(self) -> set[int]:
        """The ids of objects that the program bound them to since the trace began."""
        return {id(p()) for p in self.places.changed() if isinstance(p, (Cell, Global))}

    def are_inputs(self) -> set[Key]:
        """Variables, and items, that need no guard on their value."""
        initial, is_held = self.places.initial, self.trace.world.containers.is_held
        return {place.key for title, place in self.places.outside() if type(place) is not Attribute
                and (type(initial[title]) is TracedArray or is_held(initial[title]))}


def _assigned(fn: Any, with_globals: bool) -> Iterator[OuterPlace]:
    free, module = _stored(fn.__code__)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    yield from (Cell(cells[name], name) for name in free if name in cells)
    yield from (Global(fn.__globals__, name) for name in (module if with_globals else ()))


def _lines(fn: FunctionType, name: str) -> Iterator[Loc]:
    for i in dis.get_instructions(fn.__code__):
        at = i.positions
        if i.opname in _STORING and i.argval == name and at is not None and at.lineno:
            yield Loc(fn.__code__.co_filename, at.lineno, at.col_offset or 0, fn.__name__,
                      at.end_col_offset or 0)


@functools.lru_cache(1000)
def _stored(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Free and global variables that a function's code, or code inside it, assigns."""
    free: dict[str, None] = {}
    module: dict[str, None] = {}
    for i in dis.get_instructions(code):
        if i.opname not in _STORING:
            continue
        if i.argval in code.co_freevars:
            free[i.argval] = None
        elif i.opname.endswith("GLOBAL"):
            module[i.argval] = None
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            inner_free, inner_module = _stored(inner)
            free.update((n, None) for n in inner_free if n in code.co_freevars)
            module.update(dict.fromkeys(inner_module))
    return tuple(n for n in free if not n.startswith("_fusec_")), tuple(module)
