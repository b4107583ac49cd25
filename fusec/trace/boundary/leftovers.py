"""Containers of the program that are not as they were: traced values must not stay in them."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, KeysView, ValuesView
from functools import partial
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from fusec.errors import FusecError, unsupported
from fusec.ir import Loc
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..choice.choice import Choice
from ..control.sequences import PythonIterator, TracedRange
from ..facts.trees import flattened_in_order
from ..guards.container_changes import ContainerChanges, may_be_held
from ..guards.contents import everything_in, values_inside
from ..guards.guard import Guard, once_guard
from ..guards.measures import VIEWS
from ..guards.side_effects import is_outside
from ..places.kept_values import Given
from ..values.array import TracedArray
from ..values.assigned_names import AssignedLater
from ..values.trace import Trace


def check_containers(trace: Trace, given: Any, now: Any) -> None:
    """Lists and dicts of the arguments are taken apart before a call: their own are not changed."""
    leaves, structure = flattened_in_order(now)
    same = structure == given[1] and all(a is b for a, b in zip(leaves, given[0], strict=True))
    if same:
        return
    inside = set(map(id, everything_in(now)))
    kind, loc = "list or dict", trace.entry_loc
    for container, changed_at in trace.part(ContainerChanges).changed():
        if id(container) in inside:
            kind, loc = type(container).__name__, changed_at
    raise unsupported(
        f"changing {'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind} that is an argument", loc=loc,
        cure="make a copy, change that and return it: items = items.copy()",
        notes=("a default value is an argument, too",))


def check_kept(trace: Trace) -> list[Guard]:
    """Refuse values of the graph in containers that outlive the call: they would stay there.

    Gives a guard for each other one that the trace changed, which each call must.
    """
    once: list[Guard] = []
    changed = [
        (c, loc) for c, loc in trace.part(ContainerChanges).changed() if is_outside(trace, c)]
    late = [c for c, _ in changed if may_be_held(c)]
    _check_given(trace, late)
    if late:
        raise AssignedLater(containers=list(map(trace.world.containers.titled, late)),
                            appended=trace.world.containers.only_appended(late))
    trace.world.containers.check_only_appended()
    for container, loc in changed:
        once.append(once_guard(type(container).__name__, loc))
        if keeps_values(trace, container):
            raise _kept(container, loc)
    for owner, loc in trace.part(Given).values():
        if keeps_values(trace, owner):
            raise _kept(owner, loc)
    return once


def _check_given(trace: Trace, late: list[Any]) -> None:
    """State that library code changes beside its containers is not changed by each call."""
    for owner, loc in trace.part(Given).values():
        if not isinstance(owner, VIEWS):
            inner = set(map(id, everything_in(vars(owner))))
            if any(id(container) in inner for container in late):
                raise _kept(owner, loc)


def _kept(holder: Any, loc: Loc | None) -> FusecError:
    return unsupported(
        f"keeping a value of the graph in a {type(holder).__name__} that outlives the call",
        loc=loc, cure="keep it in an attribute or a global variable, in a list or dict, or return "
        "it")


def keeps_values(trace: Trace, x: Any) -> bool:
    """Whether values of the graph stay in it; those in containers that are held do not."""
    return any(type(item) in (TracedArray, Choice, Symbolic) or isinstance(
        item, (PythonIterator, TracedRange, KeysView, ValuesView, ItemsView))
        for item in everything_in(x, partial(_kept_in, trace)))


def _kept_in(trace: Trace, x: Any) -> Iterable[Any]:
    """Values that an object keeps: items, attributes, of a function those of the graph alone."""
    if type(x) is np.ndarray and x.dtype.hasobject:
        return [x.tolist()]
    if trace.world.containers.is_held(x) or isinstance(x, (type, ModuleType, np.ndarray)) or (
            str(type(x).__module__).partition(".")[0] in ("fusec", "numpy")):
        return ()
    if type(x) is slice:
        return x.start, x.stop, x.step
    if isinstance(x, partial):
        return x.func, *x.args, *x.keywords.values()
    if isinstance(x, FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if c != CellType()]
        given = [*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        return [c for c in given if type(c) in (TracedArray, Symbolic)]
    own = x if type(x) is dict else getattr(x, "__dict__", None)  # the one of a module, too
    slots = [getattr(x, n, None) for c in type(x).__mro__ for n in getattr(c, "__slots__", ())]
    return [*values_inside(x), *(own.values() if type(own) is dict else ()), *slots]
