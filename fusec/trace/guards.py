"""What a trace took for constant, checked at each call: attributes, globals, closure variables.

A value is remembered by a *fingerprint*: numbers and text by type and bits, arrays and functions by
identity (an array's contents are read anew at each call), lists, tuples and dicts by their items.
"""

from __future__ import annotations

import array
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Container, Iterator
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from .array import TracedArray
from .assigned_names import SMALL
from .code_names import HEAP_TYPE, names_in
from .context import current
from .convert.source import HOOKS_NAME

DATA = (int, float, complex, bool, str, bytes, type(None), np.ndarray, np.generic)
CONTAINERS = (tuple, list, dict, set, frozenset, deque)
VIEWS = (ChainMap, MappingProxyType, UserDict, UserList)  # of containers
BUFFERS = (bytearray, array.array)
MAX_ITEMS = 1000  # larger containers are compared by identity alone
MAX_DEPTH = 4
_MISSING = object()


def fingerprint(value: Any, depth: int = 0, apart: Container[int] = ()) -> Any:
    """Equal exactly for values a trace may take for one another; containers with the ids ``apart``
    have guards of their own, and are compared by identity."""
    kind = type(value)
    if id(value) in apart:
        return (kind, id(value))
    if isinstance(value, VIEWS):
        value = value.data if isinstance(value, UserList) else dict(value)
        return (kind, fingerprint(value, depth, apart))
    if isinstance(value, BUFFERS) and len(value) <= MAX_ITEMS:
        return (kind, bytes(value))
    if isinstance(value, CONTAINERS) and depth < MAX_DEPTH and len(value) <= MAX_ITEMS:
        if isinstance(value, dict):
            return (kind, tuple((k, fingerprint(v, depth + 1, apart))
                                for k, v in value.items()))
        if isinstance(value, (set, frozenset)):
            return (kind, frozenset(value))
        return (kind, tuple(fingerprint(v, depth + 1, apart) for v in value))
    if kind in (slice, range):
        return (kind, repr(value))
    if isinstance(value, (float, complex, np.generic)):
        return (kind, repr(value))
    if isinstance(value, DATA) and not isinstance(value, np.ndarray):
        return (kind, value)
    return (kind, id(value))


def _is_fixed(value: Any) -> bool:
    """Whether the same object is the same value: all but containers that can change inside."""
    if isinstance(value, tuple):
        return all(_is_fixed(v) for v in value)
    return not isinstance(value, (*CONTAINERS, *VIEWS, *BUFFERS))


def is_data(value: Any) -> bool:
    """Whether rebinding a name from this value to another must be noticed: all but modules."""
    return not isinstance(value, ModuleType)


def is_own(value: Any) -> bool:
    """Whether what an attribute gives is the same object each time: not a method."""
    return not isinstance(value, (MethodType, BuiltinMethodType, MethodWrapperType, ModuleType))


class Guard:
    """A place that must still hold the value it had at the end of the trace, a container with the
    content that it had at the beginning."""

    __slots__ = ("apart", "expected", "is_fixed", "mark", "place", "read", "subject")
    is_native = False

    def __init__(
        self, subject: str, place: str, read: Callable[[], Any],
        apart: Container[int] | None = None,
    ) -> None:
        self.apart = _held_now() if apart is None else apart  # containers with their own guards
        self.subject = subject
        self.place = place
        self.read = read
        self.mark: Any = None
        self.refresh()

    def refresh(self) -> None:
        """Take the value held now for the expected one; a container's content is the one that the
        trace began with: a program that changes it is traced again."""
        found = self.read()
        self.is_fixed = _is_fixed(found)
        if self.mark is None or self.is_fixed:
            self.mark = fingerprint(found, apart=self.apart)
        self.expected = found
        if is_object(found):  # which the guard does not keep alive
            self.expected = _reference(found)

    def start_from(self, entry: Any) -> None:
        """Expect of a container what was in it then."""
        if not self.is_fixed:
            self.mark = entry

    def holds(self) -> bool:
        found, expected = self.read(), self.expected
        if type(expected) is weakref.ref:
            return expected() is found
        if found is expected and self.is_fixed:
            return True
        return bool(fingerprint(found, apart=self.apart) == self.mark)

    @property
    def value(self) -> str:
        """The expected value, shortened."""
        found = self.expected() if type(self.expected) is weakref.ref else self.expected
        if id(found) in self.apart:
            return f"this {type(found).__name__} (what is in it is read at each call)"
        return _short(found)

    def __str__(self) -> str:
        return f"{self.place} is {self.value}"


class LayoutGuard(Guard):
    """A place that must still hold an array, or a number, of the same type and layout.

    ``is_native``: the launcher compares it, with what it is given to run on.
    """

    is_native = False

    def __init__(self, subject: str, place: str, read: Callable[[], Any]) -> None:
        super().__init__(subject, place, read, ())

    def refresh(self) -> None:
        self.expected = None
        self.mark = layout_of(self.read())
        self.is_fixed = False

    def holds(self) -> bool:
        try:
            return bool(layout_of(self.read()) == self.mark)
        except LookupError:  # an item that the container has no more
            return False

    @property
    def value(self) -> str:
        return f"{_layout_text(self.mark)} (read at each call)"


def layout_of(found: Any) -> tuple[Any, ...]:
    """Compared at each call: no text is made."""
    if type(found) is np.ndarray:
        return (found.dtype, found.shape, found.strides, found.flags.writeable)
    if type(found) is int and not -SMALL < found < SMALL:
        return (found,)
    return (type(found),)


def _layout_text(layout: tuple[Any, ...]) -> str:
    first = layout[0]
    if len(layout) > 1:
        return f"{first}{list(layout[1])}"
    return first.__name__ if isinstance(first, type) else str(first)


class OnceGuard(Guard):
    """Never holds: the trace changed a container that outlives it, which only tracing does."""

    __slots__ = ()

    def __init__(self, kind: str, loc: Any) -> None:
        where = f" at {loc}" if loc is not None else ""
        super().__init__(f"a {kind}", f"a {kind} that outlives the call and is changed{where}: "
                         "each call is traced, for tracing changes it", lambda: None)

    def holds(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.place


def is_object(value: Any) -> bool:
    """Whether a value is compared by which object it is."""
    return not isinstance(value, (*DATA, *CONTAINERS, *VIEWS, *BUFFERS, slice, range))


def _reference(value: Any) -> Any:
    try:
        return weakref.ref(value)
    except TypeError:
        return value


def _held_now() -> Container[int]:
    trace = current()
    return frozenset(trace.assigned_names.containers) if trace is not None else ()


def entry_marks(
    fn: FunctionType, marks: dict[tuple[int, str], Any], apart: Container[int]
) -> None:
    """Note what is in the containers that a function can read, before it is first called."""
    for scope, name, value in _names_of(fn):
        if isinstance(value, CONTAINERS) and (id(scope), name) not in marks:
            marks[id(scope), name] = fingerprint(value, apart=apart)


def _names_of(fn: FunctionType) -> Iterator[tuple[Any, str, Any]]:
    """Globals and closure variables that a function, or code inside it such as a comprehension,
    names, and its defaults, with what holds them."""
    if fn.__defaults__ is not None:
        yield fn, "__defaults__", fn.__defaults__
    if fn.__kwdefaults__ is not None:
        yield fn, "__kwdefaults__", fn.__kwdefaults__
    for name in names_in(fn.__code__):
        if name in fn.__globals__:
            yield fn.__globals__, name, fn.__globals__[name]
    for name, cell in _outer_cells(fn):
        if cell != _EMPTY:
            yield cell, name, cell.cell_contents


def _outer_cells(fn: FunctionType) -> Iterator[tuple[str, CellType]]:
    """Closure variables; those of a function that the program made in the trace are its own."""
    names = fn.__code__.co_freevars
    if HOOKS_NAME not in names:
        yield from zip(names, fn.__closure__ or (), strict=False)


_EMPTY = CellType()


def _short(value: Any) -> str:
    if type(value) is np.ndarray:
        return f"this array ({value.dtype}{list(value.shape)}, contents read at each call)"
    return repr(value)[:60]


def attribute_guard(obj: Any, name: str) -> Guard:
    """``obj.name``; the object is not kept alive by the guard."""
    owner = obj.__name__ if isinstance(obj, ModuleType) else type(obj).__name__
    try:
        reference: Callable[[], Any] = weakref.ref(obj)
    except TypeError:
        def reference() -> Any:
            return obj
    return Guard(
        f"attribute {owner}.{name}", f"{owner}.{name}",
        lambda: getattr(reference(), name, _MISSING),
    )


def method_guard(obj: Any, name: str) -> Guard:
    """``obj.name`` is a method, which is bound anew each time: its function must stay."""
    guard = attribute_guard(obj, name)
    bound, guard.read = guard.read, lambda: getattr(bound(), "__func__", _MISSING)
    guard.refresh()
    return guard


def is_guarded(obj: Any) -> bool:
    """Attributes of user objects and modules may change; those of libraries and arrays do not."""
    if isinstance(obj, ModuleType):
        root = obj.__name__.partition(".")[0]
        return root not in ("numpy", "math", "scipy", "fusec", "cmath")
    if isinstance(obj, type) and not obj.__flags__ & HEAP_TYPE:
        return False  # Python's own, or written in C
    if isinstance(obj, (type, FunctionType)) and obj.__module__ == "numpy":
        return False
    return type(obj) is not TracedArray and not isinstance(obj, (np.ndarray, np.generic, np.dtype))


def name_guards(
    functions: Any, inputs: set[tuple[int, str]], marks: dict[tuple[int, str], Any],
    apart: Container[int],
) -> list[Guard]:
    """Guards for the data that these functions can read from globals and closures, less those that
    are inputs of the graph (by scope and name; cells without).  ``marks``: see `entry_marks`;
    ``apart``: see `fingerprint`."""
    guards: dict[tuple[int, str], Guard] = {}
    for fn in functions:
        function = getattr(fn, "__func__", fn)
        if not isinstance(function, FunctionType) or _is_ours(function):
            continue
        for scope, name, value in _names_of(function):
            is_cell = isinstance(scope, CellType)
            is_input = (id(scope), "" if is_cell else name) in inputs
            if is_input or (id(scope), name) in guards or not is_data(value) or (
                    is_cell and type(value) is TracedArray):
                continue
            make = (_cell_guard if is_cell else _global_guard if isinstance(scope, dict)
                    else _default_guard)
            guards[id(scope), name] = make(name, scope, apart)
    for key, mark in marks.items():
        if key in guards:
            guards[key].start_from(mark)
    return list(guards.values())


def _is_ours(function: FunctionType) -> bool:
    module = function.__module__ or ""
    return module.startswith("fusec.") and not module.startswith("fusec.bench.programs")


def _global_guard(name: str, scope: dict[str, Any], apart: Container[int]) -> Guard:
    return Guard(f"global {name}", f"global {name}", lambda: scope.get(name, _MISSING), apart)


def _default_guard(name: str, fn: Any, apart: Container[int]) -> Guard:
    place = f"the defaults of {fn.__name__}"
    return Guard(place, place, lambda: getattr(fn, name), apart)


def _cell_guard(name: str, cell: Any, apart: Container[int]) -> Guard:
    return Guard(f"closure variable {name}", f"closure variable {name}",
                 lambda: cell.cell_contents, apart)
