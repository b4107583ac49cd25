"""Guards on attributes that the program reads: values, methods, and that there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..guards.container_changes import CONTAINERS
from ..guards.guard import (
    attribute_guard,
    is_guarded,
    is_in_object,
    method_guard,
    place_guard,
)
from ..guards.measures import LayoutMeasure
from ..guards.places import NamesOf
from ..values.trace import Trace


def note_value(trace: Trace, obj: Any, name: str, value: Any) -> None:
    """It must be the same at each call, wherever it lies."""
    holder = _holder(trace, obj, name)
    key = (id(holder), name)
    if holder is obj and isinstance(value, (*CONTAINERS, Iterator)):
        trace.world.reachable.reach(value)
    if holder is not None and key not in trace.world.guards and is_guarded(holder):
        trace.world.guards[key] = guard = attribute_guard(holder, name)
        trace.world.reachable.note(guard, key)


def note_constant(trace: Trace, obj: Any, name: str) -> None:
    """Code that is not compiled reads it: a number that is an input of the program must be the
    same at each call, too."""
    standing = trace.world.guards.get((id(obj), name))
    key = (id(obj), name if standing is None else f"{name} as a constant")
    if standing is None or (
            type(standing.measure) is LayoutMeasure and key not in trace.world.guards):
        trace.world.guards[key] = guard = attribute_guard(obj, name)
        trace.world.reachable.note(guard, key)


def _holder(trace: Trace, obj: Any, name: str) -> Any:
    """The holder of an attribute that outlives the trace: of an object made in it the class
    alone, None for attributes of its own."""
    if id(obj) not in trace.local.objects:
        return obj
    if is_in_object(obj, name):
        return None
    return next((c for c in type(obj).__mro__ if name in vars(c)), None)


def note_method(trace: Trace, obj: Any, name: str) -> None:
    """It must be the same function at each call: of the object, or of the class of one that
    the trace made."""
    key = (id(obj), name)
    if id(obj) in trace.local.objects:
        note_of_class(trace, type(obj), name)
    elif key not in trace.world.guards and is_guarded(obj):
        trace.world.guards[key] = method_guard(obj, name)


def note_of_class(trace: Trace, kind: type, name: str) -> None:
    """The class's attribute must be the same."""
    key = (id(kind), name)
    if trace.active and key not in trace.world.guards and is_guarded(kind):
        trace.world.guards[key] = attribute_guard(kind, name)


def note_missing(trace: Trace, obj: Any, name: str) -> None:
    """The program may go on without the attribute: it must still be missing at each call."""
    key = (id(obj), name)
    if id(obj) not in trace.local.objects and is_guarded(obj):
        trace.world.guards.setdefault(key, attribute_guard(obj, name))


def note_names(trace: Trace, obj: Any) -> None:
    """It must have attributes of these names at each call, and no other ones."""
    key = (id(obj), "names in __dict__")
    if id(obj) not in trace.local.objects and is_guarded(obj) and (
            key not in trace.world.guards):
        trace.world.guards[key] = place_guard(NamesOf(obj))
