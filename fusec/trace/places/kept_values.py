"""Values of the graph that other code than the program's own may keep: containers whose methods lie
elsewhere (``self.log = self.history.append``), objects of libraries (``UserDict``, ``Queue``).
"""

from __future__ import annotations

from functools import partial
from types import BuiltinMethodType, MethodType, MethodWrapperType, ModuleType
from typing import Any

from fusec.ir import Loc

from ..guards.container_changes import CONTAINERS, ContainerChanges
from ..guards.contents import everything_in
from ..values.handlers import any_traced
from ..values.trace import Trace

_METHODS = (BuiltinMethodType, MethodType, MethodWrapperType)


class Given(dict[int, tuple[Any, Loc | None]]):
    """Of a trace: values that code other than the program's may keep, and where they went."""


def bound_to(fn: Any) -> Any:
    """The object whose method ``fn`` is, perhaps with arguments; None for other callables."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn.__self__ if isinstance(fn, _METHODS) else None


def note_bound(trace: Trace, value: Any, holder: Any) -> None:
    """A method of a container, found in an attribute of an object from outside."""
    owner = bound_to(value)
    if isinstance(owner, CONTAINERS) and owner is not holder and trace.active and (
            id(holder) not in trace.local.objects):
        trace.world.reachable.reach(owner)


def note_given(trace: Trace, owner: Any, values: Any, loc: Loc | None) -> None:
    """A method of ``owner`` that is no code of the program's gets values of the graph."""
    if not trace.active or owner is None or id(owner) in trace.local.objects or (
            isinstance(owner, (type, ModuleType))) or not any_traced(values, {}):
        return
    for container in everything_in(getattr(owner, "__dict__", None)):
        if isinstance(container, CONTAINERS) and container is not owner.__dict__:
            trace.part(Given)[id(owner)] = owner, loc
            if not trace.world.containers.is_held(container):
                trace.part(ContainerChanges).note(container, loc)  # so that it can be taken back
