"""Guards, checked at each call, of a trace's constants: attributes, globals, closure variables.

A guard compares the value of a place with the traced one, by a measure: see `measures`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from fusec.ir.lazy_values import lazy

from ..facts.code_names import HEAP_TYPE
from ..values.array import TracedArray
from ..values.trace import current
from .contents import Content, measure
from .measures import BUFFERS, CONTAINERS, DATA, VIEWS, Bits, Identity, Kept, LayoutMeasure, Measure
from .places import UNBOUND, Attribute, Bind, MethodOf, OuterPlace
from .relations import Never, Relation


def itself(value: Any) -> Any:
    """The reader of a guard that has hold of the value: ``partial(itself, value)``."""
    return value


def is_data(value: Any) -> bool:
    """Whether rebinding a name from this value to another must be noticed: all but modules."""
    return not isinstance(value, ModuleType)


def is_in_object(obj: Any, name: str) -> bool:
    """Whether the attribute lies in the object itself, in a slot too."""
    if name in getattr(obj, "__dict__", ()):
        return True
    attribute = getattr(type(obj), name, None)
    return isinstance(attribute, MemberDescriptorType) and hasattr(obj, name)


def is_kept(obj: Any, name: str, value: Any) -> bool:
    """Whether the attribute is this object each time: it lies in ``obj`` or in a class of its, or
    ``__getattr__`` finds the same one again."""
    kinds = obj.__mro__ if isinstance(obj, type) else type(obj).__mro__
    attribute = next((vars(kind)[name] for kind in kinds if name in vars(kind)), UNBOUND)
    attribute = attribute.__func__ if type(attribute) is staticmethod else attribute
    return is_in_object(obj, name) or attribute is value or (
        attribute is UNBOUND and getattr(obj, name, UNBOUND) is value)


def is_own(value: Any) -> bool:
    """Whether an attribute gives the same object each time: not a method."""
    return not isinstance(value, (MethodType, BuiltinMethodType, MethodWrapperType, ModuleType))


class Guard:
    """A place that must still hold the value it had at the end of the trace, a container with the
    content that it had at the beginning.

    ``is_native``: the launcher compares it, in its own argument checks.  ``is_quiet``: it
    hardly ever changes, and reports need not tell of it.  ``is_announced``: a change forgets all
    recent plans, so that calls of these need not compare it.
    """

    __slots__ = ("is_announced", "is_native", "is_quiet", "measure", "place", "read", "subject")

    def __init__(
        self, subject: str, place: str, read: Callable[[], Any], measured: Measure | None = None,
        *, is_native: bool = False, is_quiet: bool = False, is_announced: bool = False,
    ) -> None:
        self.subject = subject
        self.is_announced = is_announced
        self.place = place
        self.read = read
        self.is_native = is_native
        self.is_quiet = is_quiet
        self.measure: Any = measure(read(), _held_now()) if measured is None else measured

    def refresh(self) -> bool:
        """Take the value held now for the expected one, and say whether it is another; a
        container's content is the one that the trace began with: a program that changes it is
        traced again."""
        if self.measure.is_of_start:
            return False
        value = self.read()
        if self.measure.matches(value):
            return False
        kind: Any = type(self.measure)
        is_kept = kind is LayoutMeasure or issubclass(kind, Relation)
        self.measure = kind(value) if is_kept else measure(value)
        return True

    @property
    def is_once(self) -> bool:
        """Whether no call after the one that was traced can have its trace."""
        return type(self.measure) is Never

    def holds(self) -> bool:
        try:
            return bool(self.measure.matches(self.read()))
        except LookupError:  # an item that the container has no more
            return False

    def is_of(self, value: Any) -> bool:
        """Whether it is the array, or container, that the place holds."""
        try:
            return self.read() is value
        except LookupError:
            return False

    def expression(self, bind: Bind) -> str:
        """`holds` as text; ``bind`` gives a name for an object."""
        if isinstance(self.measure, Relation):
            return self.measure.expression(self, bind)
        place = getattr(self.read, "expression", None)
        value = f"{bind(self.read)}()" if place is None else place(bind)
        kind, measured = type(self.measure), self.measure
        if kind is Identity and measured.layout is None:
            reference = measured.reference
            if type(reference) is Kept:
                return f"{value} is {bind(reference.value)}"
            now = bind(None)  # an object that is gone is not None
            return f"(({now} := {value}) is not None and {now} is {bind(reference)}())"
        matches = f"{bind(measured.matches)}({value})"
        if kind is Content and measured.fixed is not None:
            return f"({value} is {bind(measured.fixed)} or {matches})"
        if kind is Bits and not measured.is_of_start:
            return f"({value} is {bind(measured.value)} or {matches})"
        return matches

    @property
    def value(self) -> str:
        """The expected value, shortened."""
        return str(self.measure.text())

    def __str__(self) -> str:
        return f"{self.place} is {self.value}" if self.value else self.place


def once_guard(kind: str, loc: Any) -> Guard:
    """For a trace that changed a container which outlives it."""
    where = f" at {loc}" if loc is not None else ""
    return Guard(f"a {kind}", f"a {kind} that outlives the call and is changed{where}: "
                 "each call is traced, for tracing changes it", lambda: None, Never())


def layout_guard(subject: str, read: Callable[[], Any]) -> Guard:
    """A place that must go on to hold an array, or a number, of this type and layout."""
    return Guard(subject, subject.removeprefix("attribute "), read, LayoutMeasure(read()))


def is_object(value: Any) -> bool:
    """Whether a value is compared by which object it is."""
    return not isinstance(value, (*DATA, *CONTAINERS, *VIEWS, *BUFFERS, slice, range))


def _held_now() -> Container[int]:
    """Containers that have guards of their own."""
    trace = current()
    return trace.world.containers.guarded if trace is not None else ()


def place_guard(place: OuterPlace, measured: Measure | None = None) -> Guard:
    """A guard that a place holds its value of now."""
    return Guard(place.subject, place.title, place, measured)


def attribute_guard(obj: Any, name: str) -> Guard:
    """``obj.name``; the object is not kept alive by the guard."""
    return place_guard(Attribute(obj, name))


def method_guard(obj: Any, name: str) -> Guard:
    """``obj.name`` is a method, which is bound anew each time: its function must stay."""
    return place_guard(MethodOf(obj, name))


OF_TRACES: set[type] = {TracedArray}  # whose objects live as long as a trace


def is_guarded(obj: Any) -> bool:
    """Attributes of user objects and modules may change; those of libraries and arrays do not."""
    if type(obj) in OF_TRACES:
        return False
    if isinstance(obj, ModuleType):
        root = obj.__name__.partition(".")[0]
        return root not in ("numpy", "math", "scipy", "fusec", "cmath")
    if isinstance(obj, type) and not obj.__flags__ & HEAP_TYPE:
        return False  # Python's own, or written in C
    if isinstance(obj, (type, FunctionType)) and obj.__module__ == "numpy":
        return False
    return not isinstance(obj, (np.ndarray, np.generic, np.dtype))


@functools.lru_cache(256)
def _compiled(text: str) -> CodeType:
    """The guards of one trace have the same text for all sizes."""
    return compile(text, "<guards>", "exec")


def check_of(guards: Sequence[Guard]) -> Callable[[], bool]:
    """A function that says whether all of them hold, made of their own texts."""
    names: dict[str, Any] = {}

    def bind(value: Any) -> str:
        name = f"n{len(names)}"
        names[name] = value
        return name

    tests = " and ".join(f"({guard.expression(bind)})" for guard in guards)
    text = (f"def unchanged():\n    try:\n        return {tests}\n"
            "    except (LookupError, ValueError):\n        return False\n")
    exec(_compiled(text), names)
    check: Callable[[], bool] = names["unchanged"]
    return check


class Checks:
    """The checks of a trace's guards for its plans, made once for all of them."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = guards

    @lazy
    def every(self) -> Callable[[], bool]:
        """Whether all of them hold."""
        return check_of(self.guards) if self.guards else lambda: True

    @lazy
    def watched(self) -> Callable[[], bool] | None:
        """Whether those hold that a call of a recent plan has to ask for; None where none has."""
        watched = [g for g in self.guards if not (g.is_native or g.is_announced)]
        return check_of(watched) if watched else None

    @lazy
    def is_once(self) -> bool:
        """Whether no other call can use the trace: it changed containers that outlive it."""
        return any(g.is_once for g in self.guards)
