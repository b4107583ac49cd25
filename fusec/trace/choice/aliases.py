"""What else may show the memory that a variable leaves a loop with.

With no iteration, or one that does not bind it, a variable is after the loop what it was before, or
what another one was.  Its value is the loop's result; whether it shares memory with an older array
matters only when one of the two is written, and if another name can still see it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any
from weakref import WeakSet

from ..guards.places import Attribute, Cell, Places
from ..values.array import TracedArray
from ..values.selected_arrays import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace, current

_DEPTH = 3  # of containers and objects that are looked into
_EMPTY = CellType()


class Frames:
    """The functions of the program that run: each keeps what gives its cells until it ends."""

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
    return any(_shows(fn, root, _DEPTH + 1, bound) for fn in trace.part(Frames).running) or any(
        _shows(value, root, 0, ()) for value in _assigned(trace))


def _assigned(trace: Trace) -> Iterator[Any]:
    """What attributes hold that the program assigns: all that have the object may see it."""
    places = trace.part(Places)
    for place in places.of_kind(Attribute):
        yield from (place.now(), places.initial[place.title])


def _shows(value: Any, root: Storage, depth: int, bound: Collection[int]) -> bool:
    if type(value) is TracedArray:
        return value.storage is not None and root in roots(value.storage)
    return depth > 0 and any(
        _shows(item, root, depth - 1, bound) for item in _inside(value, bound))


def _inside(value: Any, bound: Collection[int]) -> Iterable[Any]:
    """What containers, functions and objects hold."""
    if isinstance(value, (list, tuple, set)):
        return value
    if isinstance(value, FunctionType):
        return [Cell(cell, "")() for cell in value.__closure__ or () if id(cell) not in bound]
    held: Any = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    is_data = isinstance(held, dict) and not isinstance(value, (ModuleType, type))
    return list(held.values()) if is_data else ()


def held_by(body: Callable[..., Any]) -> dict[str, Any]:
    """What the variables from around the body hold."""
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


def reached_of(targets: Collection[int], roots: Iterable[Any]) -> bool:
    """The same of one of several, by their ids."""
    todo, visited = list(roots), set()
    while todo:
        value = todo.pop()
        if id(value) in targets:
            return True
        if gc.is_tracked(value) and id(value) not in visited:
            visited.add(id(value))
            todo += _references(value)
    return False


def _references(value: Any) -> Iterable[Any]:
    """As the garbage collector knows them; none of what belongs to the process (modules, globals)
    or to the tracer."""
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
