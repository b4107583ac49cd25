"""Changes to Python's own containers inside branches and loops of the graph.

A side of a branch, or a loop body, is traced once (or a few times), not run: a list that it changes
would change while tracing.  So such changes are refused; loops of known length then run in Python.
"""

from __future__ import annotations

import bisect
import heapq
import operator
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from fusec.errors import ConcreteValueError, unsupported
from fusec.ir import Loc
from fusec.ir.graph import new_id

from ..choice.aliases import LoopBound
from ..choice.choice import Choice
from ..guards.container_changes import CONTAINERS, ContainerChanges
from ..guards.contents import everything_in, values_inside
from ..guards.side_effects import is_outside
from ..lists.appended_items import Collector
from ..lists.growing_lists import GrowingList
from ..values.array import TracedArray
from ..values.trace import Trace

_MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "add",
    "discard", "popitem", "setdefault", "__setitem__", "__delitem__", "appendleft", "extendleft",
    "popleft", "rotate", "subtract", "move_to_end", "intersection_update", "difference_update",
    "symmetric_difference_update", "__next__", "__ior__", "__iadd__", "send",
})
_MUTATING = frozenset({
    heapq.heappush, heapq.heappop, heapq.heapify, heapq.heappushpop, heapq.heapreplace,
    bisect.insort, bisect.insort_left, random.shuffle, next,
    operator.setitem, operator.delitem, operator.iadd, operator.iconcat, operator.imul,
    operator.ior, operator.iand, operator.isub, operator.ixor,
})


class Effects:
    """The containers that exist outside the regions being traced."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._outside: list[set[int]] = []
        self.collectors: list[Collector | None] = []  # of the loop bodies being traced
        self.read: dict[int, Any] = {}  # containers found in attributes and items, kept alive

    @contextmanager
    def region(self, *roots: Any) -> Iterator[None]:
        """A side or body is being traced, made of these functions; further values that lead to
        older containers may be among them, and None."""
        ids: set[int] = set()
        for root in roots:
            _note(root, ids)
        self._outside.append(ids)
        self.trace.record.regions.append(new_id())
        try:
            yield
        finally:
            self._outside.pop()
            self.trace.record.regions.pop()

    def takes(self, fn: Any, args: tuple[Any, ...]) -> bool:
        """Whether ``fn(*args)`` appends to a list of a loop that collects its items."""
        owner = getattr(fn, "__self__", None)
        if type(owner) is GrowingList and len(args) == 1:
            owner.append(*args)
            return True
        collector = self.collectors[-1] if self.collectors else None
        return collector is not None and type(owner) is list and (
            collector.takes(fn, args))

    def note_read(self, value: Any) -> None:
        """A container that was read from an attribute or another container."""
        if self._outside and is_container(value):
            self.read[id(value)] = value

    def note_function(self, fn: FunctionType) -> None:
        """A function from outside the trace is called: its references are older than that."""
        if self._outside and fn.__closure__:
            _note(fn, self._outside[0])

    def check_call(self, fn: Any, args: tuple[Any, ...], loc: Loc | None) -> None:
        """Refuse ``outside.append(x)``, ``next(outside)`` and their like."""
        while type(fn) is partial:
            fn, args = fn.func, (*fn.args, *args)
        owner = getattr(fn, "__self__", None)
        if is_container(owner) and fn.__name__ in _MUTATORS:
            self.check_change(owner, f"{type(owner).__name__}.{fn.__name__}", loc)
        elif not args or not is_container(args[0]):
            return
        elif type(fn) in _UNBOUND and fn.__name__ in _MUTATORS:
            self.check_change(args[0], f"{type(args[0]).__name__}.{fn.__name__}", loc)
        elif type(fn) in _FUNCTIONS and fn in _MUTATING:
            self.check_change(args[0], fn.__name__, loc)

    def is_older(self, container: Any) -> bool:
        """Whether the function made the container, before the innermost region."""
        key = id(container)
        return any(key in outside for outside in self._outside) and not is_outside(
            self.trace, container)

    def birth(self, container: Any) -> int:
        """When at the latest the function made a container that is older than the innermost region:
        0 if before all regions, or if that is not known."""
        key = id(container)
        if key in self.read:
            return 0
        first = next(i for i, outside in enumerate(self._outside) if key in outside)
        return self.trace.record.regions[first] if first else 0

    def was_there(self, container: Any) -> bool:
        """Whether a container is older than the innermost region, whoever made it."""
        key = id(container)
        return key in self.read or any(key in outside for outside in self._outside) or (
            is_outside(self.trace, container))

    def check_one(self, container: Any, loc: Loc | None) -> None:
        """Refuse a change of a container that data chose, or of those that it chose from."""
        if id(container) in self.trace.local.chosen:
            kind = type(container).__name__
            raise unsupported(
                f"changing a {kind} that data chooses, or one that it may have chosen", loc=loc,
                cure="change it in each branch itself; or, where the others need not see the "
                     f"change, copy what is chosen: {kind}(x)")
        self.trace.part(LoopBound).check_apart(self.trace, container, loc)

    def check_change(self, container: Any, what: str, loc: Loc | None) -> None:
        """Refuse a change of a container that is older than the innermost region; others are noted,
        so that they can be taken back."""
        self.check_one(container, loc)
        is_held = self.trace.world.containers.is_held(container)
        if not is_held:
            self.trace.part(ContainerChanges).note(container, loc)
        if not self._outside or not is_container(container):
            return
        if is_held or self.was_there(container):
            raise ConcreteValueError(
                f"{what} in a branch or loop that data decides: while tracing it would happen once",
                loc=loc, cure=_cure(what))


def _cure(what: str) -> str:
    if what.startswith("heap"):
        return ("keep an array and a mask, and take the least by np.argmin(np.where(mask, x, "
                "np.inf)); or leave the heap to Python: fallback=\"eager\"")
    if what.startswith("deque"):
        return ("write into an array made before, with numbers for its first place and its end "
                "(x[end] = value; end += 1; x[first]; first += 1)")
    return ("write into an array made before (x[n] = value; n += 1), use x[:n]; a loop of known "
            "length may append, but not in a branch")


def is_container(x: Any) -> bool:
    """Whether it changes when it is used: containers, and iterators, which lose their items."""
    return type(x) is not TracedArray and isinstance(x, (*CONTAINERS, Iterator))


def _note(root: Any, ids: set[int]) -> None:
    """Containers reached from a value: by items, and by references of functions."""
    for value in everything_in(root, _referred_to):
        if is_container(value) or type(value) in (tuple, FunctionType):
            ids.add(id(value))


def _referred_to(value: Any) -> Iterable[Any]:
    kind = type(value)
    if kind is TracedArray:
        return ()
    if kind is FunctionType:
        return [*(cell.cell_contents for cell in value.__closure__ or () if cell != _EMPTY),
                *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if kind is partial:
        return [value.func, *value.args, *value.keywords.values()]
    if kind is np.vectorize:
        return [value.pyfunc]
    if hasattr(kind, "__fusec_refers__"):
        return [*value.__fusec_refers__()]
    if kind is Choice:
        return [value.orelse]
    if isinstance(value, BuiltinMethodType | MethodType):
        return [value.__self__]
    return () if isinstance(value, Iterator) else values_inside(value)


_EMPTY = CellType()
_FUNCTIONS = (FunctionType, BuiltinMethodType, MethodType)
_UNBOUND = (MethodDescriptorType, WrapperDescriptorType)  # list.append
