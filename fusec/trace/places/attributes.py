"""Attributes of the user's objects: read anew at each call, written after it.

An array that an attribute holds is an input of the graph, whichever array it is at the call, as
long as dtype, shape and strides stay.  A number is one too if the program also assigns that
attribute; else it is a constant, guarded like any other.  Assignments happen after the call, with
its results.  In branches and loops an attribute that is assigned is a variable like any other.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterable
from types import CodeType, FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from fusec.errors import FusecError, unsupported
from fusec.ir import Loc
from fusec.state.variable import Variable

from ..facts.code_names import HEAP_TYPE
from ..guards.container_changes import held_in, may_be_held
from ..guards.contents import everything_in
from ..guards.guard import Guard, is_in_object
from ..guards.measures import LayoutMeasure
from ..guards.places import UNBOUND, Attribute, Key, Places
from ..values.array import TracedArray
from ..values.assigned_names import AssignedLater
from ..values.trace import Trace
from .outside_memory import is_input, stand_in


class Attributes:
    """The reads and assignments of attributes in a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.places = trace, trace.part(Places)
        self._read: dict[Key, Any] = {}
        self._held: list[Any] = []  # so that ids stay theirs during the trace

    def value(self, obj: Any, name: str, held: Any, functions: Iterable[FunctionType]) -> Any:
        """The traced value of ``obj.name``; ``held`` is its value now."""
        key = (id(obj), name)
        if key in self._read:
            return self._read[key]
        if not _is_plain(obj, name) or not (is_input(self.trace, held) or may_be_held(held)):
            return held
        if type(held) is not np.ndarray:
            if name not in self.trace.world.assigned_names.attributes and not any(
                    name in stored_names(f.__code__) for f in functions):
                return held
            self._check_unread(key)
            if self.trace.world.containers.is_held(held):
                return held
        self._held.append(obj)
        value = self._read[key] = stand_in(self.trace, Attribute(obj, name), held)
        return value

    def _check_unread(self, key: Key) -> None:
        """An attribute read as a constant cannot become an input: the trace begins anew."""
        guard = self.trace.world.guards.get(key)
        if type(guard) is Guard and type(guard.measure) is not LayoutMeasure and (
                key[1] not in self.trace.world.assigned_names.attributes):
            raise AssignedLater(attribute=key[1])

    def write(self, obj: Any, name: str, value: Any) -> None:
        """Note ``obj.name = value``; raises where that cannot be done after the call."""
        if id(obj) in self.trace.local.objects:
            self._note(obj, name, value)
            return
        if not _may_assign(obj, name):
            raise _unassignable(obj, name, self.trace.loc)
        if self._is_there(obj, name, value):
            return
        if not is_result(value) or self.trace.world.containers.from_outside(value) is not None:
            raise unsupported(
                f"assigning a {type(value).__name__} to the attribute {name!r}",
                loc=self.trace.loc, cure="assign arrays, numbers, text or tuples of them")
        before = getattr(obj, name) if _is_plain(obj, name) else None
        if self.trace.world.assigned_names.may_be_input(before) or may_be_held(before):
            self._check_unread((id(obj), name))
        self._note(obj, name, value)

    def _is_there(self, obj: Any, name: str, value: Any) -> bool:
        """Whether it is a container, or Variable, that the attribute holds: ``self.items += [x]``
        has changed it, and assigns it to where it was."""
        return (may_be_held(value) or isinstance(value, Variable)) and (
            self.places.attribute(obj, name) is None and getattr(obj, name, None) is value)

    def _note(self, obj: Any, name: str, value: Any) -> None:
        place = self.places.attribute(obj, name)
        if place is None:
            place = Attribute(obj, name)
            place.put(self._before(obj, name))
            self._held.append(obj)
            if id(obj) in self.trace.local.objects:
                self.places.add(place)
                self.places.born.setdefault(id(obj), (self.trace.local.births[id(obj)], obj))
            else:
                self.places.add_outside(place, UNBOUND)
        place.put(value)
        self.places.assigned_at[place.title] = self.trace.loc

    def _before(self, obj: Any, name: str) -> Any:
        """The attribute's value where a branch or loop begins that assigns it."""
        trace = self.trace
        if not trace.in_region:
            return self._read.get((id(obj), name), UNBOUND)
        assert trace.hooks is not None
        if not hasattr(obj, name):
            return UNBOUND
        return trace.hooks.getattr(trace.hooks.where, obj, name)


def _is_plain(obj: Any, name: str) -> bool:
    """Whether the attribute is data in the object itself."""
    if isinstance(obj, (ModuleType, type, FunctionType)):
        return False
    return is_in_object(obj, name)


_USUAL = (object.__setattr__, SimpleNamespace.__setattr__)


def _may_assign(obj: Any, name: str) -> bool:
    kind = type(obj)
    held = getattr(kind, name, None)
    if isinstance(obj, (ModuleType, type)) or kind.__setattr__ not in _USUAL:
        return False
    is_in_slot = isinstance(held, MemberDescriptorType) and bool(kind.__flags__ & HEAP_TYPE)
    return is_in_slot or (hasattr(obj, "__dict__") and not hasattr(held, "__set__"))


def _unassignable(obj: Any, name: str, loc: Loc | None) -> FusecError:
    cure = "return the value and assign it after the call"
    if isinstance(obj, (ModuleType, type)):
        kind = "class" if isinstance(obj, type) else "module"
        return unsupported(
            f"assigning to the attribute {name!r} of the {kind} {obj.__name__}", loc=loc,
            cure=f"{cure}, or keep it in an object: self.{name} = ...",
            notes=("what inherits or imports it would see the change only after the call",))
    return unsupported(
        f"assigning to the attribute {name!r} of a {type(obj).__name__}", loc=loc, cure=cure,
        notes=("properties and __setattr__ would run while tracing only",))


_RESULTS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.ndarray,
            Variable)


def is_result(value: Any) -> bool:
    """Whether a value can be assigned after the call."""
    return all(type(x) in (tuple, TracedArray) or may_be_held(x) or isinstance(x, _RESULTS)
               for x in everything_in(value, held_in))


@functools.lru_cache(1000)
def stored_names(code: CodeType) -> frozenset[str]:
    """Attributes that a function's code, or code inside it, assigns."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR"}
    inner = (stored_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return frozenset(own).union(*inner)
