"""Attributes of the user's objects: read anew at each call, written after it.

An array that an attribute holds is an input of the graph, whichever array it is at the call, as
long as dtype, shape and strides stay.  A number is one too if the program also assigns that
attribute; else it is a constant, guarded like any other.  Assignments happen after the call, with
its results.  In branches and loops an attribute that is assigned is a variable like any other.
"""

from __future__ import annotations

import dis
import functools
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from fusec.errors import FusecError, unsupported
from fusec.ir import Loc, TensorType

from ..choice.choice import UNBOUND
from ..facts.code_names import HEAP_TYPE
from ..facts.refusals import is_compiled
from ..guards.container_changes import held_in, may_be_held
from ..guards.contents import everything_in
from ..guards.guard import Guard, is_in_object, layout_guard
from ..guards.measures import Layout
from ..values.array import TracedArray
from ..values.assigned_names import AssignedLater
from ..values.trace import Trace
from .apart import captured, same_guard

Key = tuple[int, str]
WEAK: dict[type, np.dtype] = {float: np.dtype(np.float64), int: np.dtype(np.int64),
                               complex: np.dtype(np.complex128)}


@dataclass(frozen=True)
class Assignment:
    """``obj.name = value`` to be done after each call; the object is not kept alive."""

    owner: Callable[[], Any]
    name: str
    subject: str  # what reports call it

    def __str__(self) -> str:
        return f"assigns {self.subject}"

    def apply(self, value: Any) -> None:
        owner = self.owner()
        if owner is not None:
            setattr(owner, self.name, value)


@dataclass
class Attributes:
    """What a trace read from and assigned to attributes."""

    trace: Trace
    read: dict[Key, Any] = field(default_factory=dict)
    names: dict[Key, str] = field(default_factory=dict)  # of those assigned, for control flow
    owners: dict[str, tuple[Any, str]] = field(default_factory=dict)
    current: dict[str, Any] = field(default_factory=dict)  # by these names
    initial: dict[str, Any] = field(default_factory=dict)
    held: list[Any] = field(default_factory=list)  # so that ids stay theirs during the trace

    def value(self, obj: Any, name: str, found: Any, functions: Iterable[FunctionType]) -> Any:
        """What reading ``obj.name`` gives in the trace; ``found`` is what it holds now."""
        key = (id(obj), name)
        if key in self.read:
            return self.read[key]
        if not _is_plain(obj, name):
            return found
        if type(found) is np.ndarray and is_compiled(found.dtype):
            return self._array(obj, name, found)
        names = self.trace.world.assigned_names
        if (names.may_be_input(found) or may_be_held(found)) and (name in names.attributes or any(
                name in stored_names(f.__code__) for f in functions)):
            self._check_unread(key)
            return (self._container if may_be_held(found) else self._number)(obj, name, found)
        return found

    def _container(self, obj: Any, name: str, found: Any) -> Any:
        """A list or dict, of which there is another at each call."""
        containers = self.trace.world.containers
        if not containers.is_held(found):
            self.held.append(obj)
            self.trace.world.guards[id(obj), name] = containers.enter(
                f"attribute {type(obj).__name__}.{name}", _reader(obj, name))
            self.read[id(obj), name] = found
        return found

    def _check_unread(self, key: Key) -> None:
        """What was read as a constant cannot become an input: the trace begins anew."""
        guard = self.trace.world.guards.get(key)
        if guard is not None and type(guard.measure) is not Layout and type(guard) is Guard and (
                key[1] not in self.trace.world.assigned_names.attributes):
            raise AssignedLater(attribute=key[1])

    def _array(self, obj: Any, name: str, found: np.ndarray) -> Any:
        trace = self.trace
        if id(found) in trace.local.arrays:
            return found
        reader = _reader(obj, name)
        self.held.append(obj)
        first = trace.feeds.readers.setdefault(id(found), reader)
        if first is not reader:
            trace.world.guards[id(obj), f"{name} is"] = same_guard(
                f"attribute {type(obj).__name__}.{name}", f"{type(obj).__name__}.{name}",
                lambda: reader() is first())
        trace.world.guards[id(obj), name] = layout_guard(
            f"attribute {type(obj).__name__}.{name}", reader)
        made = self.read[id(obj), name] = captured(
            trace, found, reader, f"attribute {type(obj).__name__}.{name}")
        return made

    def _number(self, obj: Any, name: str, found: Any) -> Any:
        trace, reader = self.trace, _reader(obj, name)
        trace.world.assigned_names.has_ints |= type(found) is int
        self.held.append(obj)
        value = trace.capture_number(scalar_type(found), f"attribute {name}", reader)
        trace.world.guards[id(obj), name] = layout_guard(
            f"attribute {type(obj).__name__}.{name}", reader)
        made = self.read[id(obj), name] = TracedArray(trace, None, (), value)
        return made

    def write(self, obj: Any, name: str, value: Any) -> None:
        """Note ``obj.name = value``; raises for what cannot be assigned after the call."""
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
        """Whether it is a container that the attribute holds: ``self.items += [x]`` has changed
        it, and assigns it to where it was."""
        return may_be_held(value) and (id(obj), name) not in self.names and (
            getattr(obj, name, None) is value)

    def _note(self, obj: Any, name: str, value: Any) -> None:
        key = (id(obj), name)
        if key not in self.names:
            before = self._before(obj, name)
            self.held.append(obj)
            title = self.names[key] = self._title(obj, name)
            self.owners[title], self.initial[title] = (obj, name), before
        self.current[self.names[key]] = value

    def _title(self, obj: Any, name: str) -> str:
        title, number = f"{type(obj).__name__}.{name}", 2
        while title in self.owners:
            title, number = f"{type(obj).__name__}.{name} ({number})", number + 1
        return title

    def _before(self, obj: Any, name: str) -> Any:
        """What the attribute holds where a branch or loop begins that assigns it."""
        trace = self.trace
        if not trace.in_region:
            return self.read.get((id(obj), name), UNBOUND)
        assert trace.hooks is not None
        if not hasattr(obj, name):
            return UNBOUND
        return trace.hooks.getattr(trace.hooks.where, obj, name)

    def assigned(self, obj: Any, name: str) -> Any:
        """What was assigned to the attribute last."""
        value = self.current[self.names[id(obj), name]]
        if value is UNBOUND:
            raise AttributeError(f"{type(obj).__name__!r} object has no attribute {name!r}")
        return value

    def restore(self, values: dict[str, Any]) -> None:
        """Take assignments back that came after ``values`` were the current ones."""
        self.current = {name: values.get(name, before) for name, before in self.initial.items()}

    def effects(self) -> list[tuple[Assignment, Any]]:
        """What is to be assigned after the call."""
        found = []
        for title, value in self.current.items():
            obj, name = self.owners[title]
            if value is not UNBOUND and value is not self.initial[title] and (
                    id(obj) not in self.trace.local.objects):
                found.append((Assignment(_reference(obj), name, title), value))
        return found


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


def scalar_type(found: Any) -> TensorType:
    """The type of a number as an input."""
    if isinstance(found, np.generic):
        return TensorType(found.dtype, (), "scalar")
    return TensorType(WEAK[type(found)], (), "weak")


_RESULTS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.ndarray)


def is_result(value: Any) -> bool:
    """Whether a value can be assigned after the call."""
    return all(type(x) in (tuple, TracedArray) or may_be_held(x) or isinstance(x, _RESULTS)
               for x in everything_in(value, held_in))


def _reference(obj: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(obj)
    except TypeError:
        return lambda: obj


def _reader(obj: Any, name: str) -> Callable[[], Any]:
    owner = _reference(obj)
    return lambda: getattr(owner(), name, None)


@functools.lru_cache(1000)
def stored_names(code: CodeType) -> frozenset[str]:
    """Attributes that a function's code, or code inside it, assigns."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR"}
    inner = (stored_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return frozenset(own).union(*inner)
