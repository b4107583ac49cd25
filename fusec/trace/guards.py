"""What a trace took for constant, checked at each call: attributes, globals, closure variables.

A value is remembered by a *fingerprint*: numbers and text by type and bits, arrays and functions by
identity (an array's contents are read anew at each call), lists, tuples and dicts by their items.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from fusec.ops.host_calls import is_generator

from .array import TracedArray

DATA = (int, float, complex, bool, str, bytes, type(None), np.ndarray, np.generic)
CONTAINERS = (tuple, list, dict)
MAX_ITEMS = 1000  # larger containers are compared by identity alone
MAX_DEPTH = 4
_MISSING = object()


def fingerprint(value: Any, depth: int = 0) -> Any:
    """Equal exactly for values a trace may take for one another."""
    kind = type(value)
    if kind in CONTAINERS and depth < MAX_DEPTH and len(value) <= MAX_ITEMS:
        if kind is dict:
            return (kind, tuple((k, fingerprint(v, depth + 1)) for k, v in value.items()))
        return (kind, tuple(fingerprint(v, depth + 1) for v in value))
    if isinstance(value, (float, complex, np.generic)):
        return (kind, repr(value))
    if isinstance(value, DATA) and not isinstance(value, np.ndarray):
        return (kind, value)
    return (kind, id(value))


def _is_fixed(value: Any) -> bool:
    """Whether the same object is the same value: all but containers that can change inside."""
    if type(value) is tuple:
        return all(_is_fixed(v) for v in value)
    return type(value) not in CONTAINERS


def is_data(value: Any) -> bool:
    """Whether rebinding a name from this value to another must be noticed."""
    return isinstance(value, (*DATA, FunctionType)) or type(value) in CONTAINERS or (
        is_generator(value))


class Guard:
    """A place that must still hold the value it had at the end of the trace."""

    __slots__ = ("expected", "is_fixed", "mark", "place", "read", "subject")

    def __init__(self, subject: str, place: str, read: Callable[[], Any]) -> None:
        self.subject = subject
        self.place = place
        self.read = read
        self.refresh()

    def refresh(self) -> None:
        """Take the value held now for the expected one."""
        self.expected = self.read()
        self.mark = fingerprint(self.expected)
        self.is_fixed = _is_fixed(self.expected)

    def holds(self) -> bool:
        found = self.read()
        if found is self.expected and self.is_fixed:
            return True
        return bool(fingerprint(found) == self.mark)

    @property
    def value(self) -> str:
        """The expected value, shortened."""
        return _short(self.expected)

    def __str__(self) -> str:
        return f"{self.place} is {self.value}"


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


def is_guarded(obj: Any) -> bool:
    """Attributes of user objects and modules may change; those of libraries and arrays do not."""
    if isinstance(obj, ModuleType):
        root = obj.__name__.partition(".")[0]
        return root not in ("numpy", "math", "scipy", "fusec", "cmath")
    if isinstance(obj, (type, FunctionType)) and obj.__module__ in ("builtins", "numpy"):
        return False
    return type(obj) is not TracedArray and not isinstance(obj, (np.ndarray, np.generic, np.dtype))


def name_guards(functions: Any, inputs: set[tuple[int, str]]) -> list[Guard]:
    """Guards for the data that these functions can read from globals and closures, less those that
    are inputs of the graph (by scope and name; cells without)."""
    guards: dict[tuple[int, str], Guard] = {}
    for fn in functions:
        function = getattr(fn, "__func__", fn)
        if not isinstance(function, FunctionType) or _is_ours(function):
            continue
        for name in function.__code__.co_names:
            scope = function.__globals__
            if name in scope and is_data(scope[name]) and (id(scope), name) not in {
                    *guards, *inputs}:
                guards[id(scope), name] = _global_guard(scope, name)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (),
                              strict=False):
            if _holds_data(cell) and (id(cell), name) not in guards and (
                    (id(cell), "") not in inputs):
                guards[id(cell), name] = _cell_guard(name, cell)
    return list(guards.values())


def _is_ours(function: FunctionType) -> bool:
    module = function.__module__ or ""
    return module.startswith("fusec.") and not module.startswith("fusec.bench.programs")


def _global_guard(scope: dict[str, Any], name: str) -> Guard:
    return Guard(f"global {name}", f"global {name}", lambda: scope.get(name, _MISSING))


def _cell_guard(name: str, cell: Any) -> Guard:
    return Guard(f"closure variable {name}", f"closure variable {name}",
                 lambda: cell.cell_contents)


def _holds_data(cell: Any) -> bool:
    try:
        value = cell.cell_contents
    except ValueError:
        return False
    return is_data(value) and type(value) is not TracedArray
