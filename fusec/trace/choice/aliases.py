"""Aliases of the memory that a variable leaves a loop with.

With no iteration, or one that does not bind it, a variable has after the loop its array from
before, or another one's.  Its value is the loop's result; whether it shares memory with an older
array matters only when one of the two is written, and if another name can still see it.

The same of lists and dicts: after the loop a container of its own stands for each.  Where
every iteration makes a new one, whether there was an iteration is checked when the code runs;
otherwise a change is refused.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import CellType, CodeType, FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from fusec.errors import Loc, UnsupportedError, unsupported
from fusec.ir import Value

from ..facts.static_values import attributes_in
from ..guards.places import Attribute, Cell, Places
from ..guards.side_effects import is_outside
from ..values.array import TracedArray
from ..values.selected_arrays import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace, current

_DEPTH = 3  # of containers and objects that are looked into
_EMPTY = CellType()


class Frames:
    """The functions of the program that run: each keeps the getter of its cells until it ends."""

    def __init__(self) -> None:
        self.running: WeakSet[FunctionType] = WeakSet()


def shown_elsewhere(storage: Storage, bound: Collection[int]) -> bool:
    """Whether an array of this memory outlives that the cells ``bound``, by their ids, are bound
    anew: as an argument, or in another variable of the functions that are being traced."""
    return any(isinstance(root, Copied) or root.origin is not None or _is_held(root, bound)
               or (root.stands_for is not None and shown_elsewhere(root.stands_for, bound))
               or ((to := root.written_to) is not None
                   and (to.is_constant or shown_elsewhere(to, bound)))
               for root in roots(storage))


def _is_held(root: Storage, bound: Collection[int]) -> bool:
    trace = current()
    if trace is None:
        return False
    return any(_shows(trace, fn, root, _DEPTH + 1, bound) for fn in trace.part(Frames).running
               ) or any(_shows(trace, value, root, 0, ()) for value in _assigned(trace))


def is_found(trace: Trace, containers: Collection[Any]) -> bool:
    """Whether a variable of the functions that are being traced leads to one of the containers."""
    inside: dict[int, list[Any]] = {}
    for place in trace.part(Places).of_kind(Attribute):
        obj = place.scope()
        if id(obj) not in inside:
            assigned = trace.part(Places).attributes_of(obj)
            names = {x.name for x in assigned}
            inside[id(obj)] = [x.now() for x in assigned] + [
                x for name, x in attributes_in(obj) if name not in names]
    return reached_of({*map(id, containers)}, [*trace.part(Frames).running], inside)


def _assigned(trace: Trace) -> Iterator[Any]:
    """Values of attributes that the program assigns: all that have the object may see it."""
    places = trace.part(Places)
    for place in places.of_kind(Attribute):
        yield from (place.now(), places.initial[place.title])


def memory_of(trace: Trace, x: Any) -> list[Storage]:
    """The memory that an array may show, a traced one or a plain one that is in the graph."""
    storage = x.storage if type(x) is TracedArray else (
        trace.local.memory.storage_of(x) if type(x) is np.ndarray else None)
    return [] if storage is None else roots(storage)


def _shows(trace: Trace, value: Any, root: Storage, depth: int, bound: Collection[int]) -> bool:
    if type(value) in (TracedArray, np.ndarray):
        return root in memory_of(trace, value)
    return depth > 0 and any(
        _shows(trace, item, root, depth - 1, bound) for item in _inside(value, bound))


def _inside(value: Any, bound: Collection[int]) -> Iterable[Any]:
    """The items of containers, functions and objects."""
    if isinstance(value, (list, tuple, set)):
        return value
    if isinstance(value, FunctionType):
        return [Cell(cell, "")() for cell in value.__closure__ or () if id(cell) not in bound]
    held: Any = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    is_data = isinstance(held, dict) and not isinstance(value, (ModuleType, type))
    return list(held.values()) if is_data else ()


def held_by(body: Callable[..., Any]) -> dict[str, Any]:
    """The values of the variables from around the body."""
    held: dict[str, Any] = {}
    for name, cell in zip(body.__code__.co_freevars, body.__closure__ or (), strict=True):
        try:
            held[name] = cell.cell_contents
        except ValueError:
            continue
    return held


def is_reached(target: Any, roots: Iterable[Any]) -> bool:
    """Whether code that has ``roots`` may come upon ``target``: by items, attributes, closures,
    default values, iterators, at any depth."""
    return reached_of({id(target)}, roots)


def reached_of(
    targets: Collection[int], roots: Iterable[Any],
    inside: Mapping[int, Iterable[Any]] = MappingProxyType({}),
) -> bool:
    """The same of one of several, by their ids; ``inside`` has the contents of some objects."""
    todo, visited = list(roots), set()
    while todo:
        value = todo.pop()
        if id(value) in targets:
            return True
        if gc.is_tracked(value) and id(value) not in visited:
            visited.add(id(value))
            todo += inside[id(value)] if id(value) in inside else _references(value)
    return False


def _references(value: Any) -> Iterable[Any]:
    """As the garbage collector knows them; none of the process (modules, globals) or the
    tracer."""
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != _EMPTY]
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(),
                value.__dict__]
    if isinstance(value, type):
        return vars(value).values() if "<locals>" in value.__qualname__ else ()
    if isinstance(value, dict) and "__builtins__" in value:
        return ()
    if isinstance(value, (ModuleType, CodeType, FrameType)) or (
            str(type(value).__module__).partition(".")[0] == "fusec"):
        return ()
    return gc.get_referents(value)


# -- lists and dicts ------------------------------------------------------------------------------


class Rebound(NamedTuple):
    """``new`` stands for ``final``, which an iteration left, or where there was none for
    ``before``; ``moved``: one of those from before the loop, of this or another variable."""

    new: Any
    before: Any
    final: Any
    moved: bool


class _Entered(NamedTuple):
    """Whether a loop ran, and the regions in which that is known."""

    holds: Value
    regions: tuple[int, ...]


class LoopBound(dict[int, tuple[Any, tuple[_Entered, ...]]]):
    """Of a trace, by their ids: containers that stand for those which a loop may have bound, and
    those from before it."""

    def note(self, trace: Trace, containers: tuple[Any, ...], entered: Value | None) -> None:
        """None: it is not known when the code runs either."""
        if entered is None:
            for x in containers:
                trace.note_chosen(containers[0], x)
            return
        one = _Entered(entered, tuple(trace.record.regions))
        for x in containers:
            self[id(x)] = x, (*self.get(id(x), (x, ()))[1], one)

    def check_apart(self, trace: Trace, container: Any, loc: Loc | None) -> None:
        """Before a change of one: that the loops ran."""
        for entered in self.get(id(container), (None, ()))[1]:
            kind = type(container).__name__
            why = (f"the loop ran no iteration, so a variable that it binds is still a {kind} "
                   "known by another name, and one of them is changed or compared by identity")
            cure = f"copy the {kind} before the loop: {kind}(x)"
            depth = len(entered.regions)
            if tuple(trace.record.regions[:depth]) != entered.regions:
                raise unsupported(f"changing a {kind} that a loop within a loop may have bound",
                                  loc=loc, cure=cure)
            trace.check(entered.holds, UnsupportedError(f"{why}: {cure}"))


class StandIns(dict[int, tuple[Any, tuple[Any, ...]]]):
    """Of a trace, by their ids: containers that stand for others, each of which they may be."""


def note_stand_in(trace: Trace, copied: Any, original: Any) -> None:
    """In the body of a loop, or after a branch, ``copied`` may be the container: operations
    refused on the one are refused on the other."""
    stand_ins, bound = trace.part(StandIns), trace.part(LoopBound)
    stand_ins[id(copied)] = copied, (*stand_ins.get(id(copied), (None, ()))[1], original)
    if id(original) in bound:
        bound[id(copied)] = copied, (*bound.get(id(copied), (None, ()))[1], *bound[id(original)][1])
    if id(original) in trace.local.chosen:
        trace.note_chosen(copied)


def is_shared(trace: Trace, *containers: Any) -> bool:
    """Whether another name may be for one of the containers that variables held before a loop."""
    bound, stand_ins = trace.part(LoopBound), trace.part(StandIns)
    originals = [one for x in containers for one in stand_ins.get(id(x), (x, ()))[1]]
    if originals and is_shared(trace, *originals):
        return True
    return any(id(x) in bound or id(x) in trace.local.chosen or is_outside(trace, x)
               for x in containers) or is_found(trace, containers)


def note_rebound(
    trace: Trace, rebound: list[Rebound], may_not_run: bool, entered: Value | None,
    chosen: list[Any],
) -> None:
    """The old values of variables that a loop has bound by now.

    ``chosen``: containers from before it of which a branch in it may have left one.
    """
    times = Counter(id(one.before) for one in rebound)
    for one in rebound:
        is_older = one.moved or is_outside(trace, one.final) or (
            id(one.final) in trace.local.chosen or id(one.final) in trace.part(LoopBound)
            or is_found(trace, [one.final]))
        older = [one.before, one.final, *chosen] if is_older else (
            [one.before] if may_not_run else [])
        if older and (times[id(one.before)] > 1 or is_shared(trace, *older)):
            trace.part(LoopBound).note(
                trace, (one.new, *older), None if is_older else entered)
