"""What a trace took for constant, checked at each call: attributes, globals, closure variables."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .array import TracedArray

DATA = (int, float, complex, bool, str, bytes, type(None), np.ndarray, np.generic)


class AttributeGuard:
    """``obj.name`` must still be this value, or the trace does not fit."""

    __slots__ = ("expected", "name", "obj")

    def __init__(self, obj: Any, name: str, expected: Any) -> None:
        self.obj, self.name, self.expected = obj, name, expected

    def holds(self) -> bool:
        found = getattr(self.obj, self.name, _MISSING)
        return found is self.expected or _same(found, self.expected)

    @property
    def subject(self) -> str:
        """What is guarded, in words."""
        owner = self.obj.__name__ if isinstance(self.obj, ModuleType) else type(self.obj).__name__
        return f"attribute {owner}.{self.name}"

    def __str__(self) -> str:
        return f"{type(self.obj).__name__}.{self.name} is {_short(self.expected)}"


class NameGuard:
    """A global or closure variable must still hold this value."""

    __slots__ = ("expected", "name", "read")

    def __init__(self, name: str, read: Callable[[], Any], expected: Any) -> None:
        self.name, self.read, self.expected = name, read, expected

    def holds(self) -> bool:
        found = self.read()
        return found is self.expected or _same(found, self.expected)

    def __str__(self) -> str:
        return f"{self.name} is {_short(self.expected)}"


_MISSING = object()


def _short(value: Any) -> str:
    if type(value) is np.ndarray:
        return f"this array ({value.dtype}{list(value.shape)}, contents read at each call)"
    return repr(value)[:60]


def _same(a: Any, b: Any) -> bool:
    """Equal immutable data of one type; arrays only by identity."""
    if type(a) is not type(b) or isinstance(a, np.ndarray) or not isinstance(a, DATA):
        return False
    if isinstance(a, (float, complex, np.generic)):
        return repr(a) == repr(b)
    return bool(a == b)


def is_guarded(obj: Any) -> bool:
    """Attributes of user objects and modules may change; those of libraries and arrays do not."""
    if isinstance(obj, ModuleType):
        root = obj.__name__.partition(".")[0]
        return root not in ("numpy", "math", "scipy", "fusec", "cmath")
    return type(obj) is not TracedArray and not isinstance(obj, (np.ndarray, np.generic, np.dtype))


def name_guards(functions: Any) -> list[NameGuard]:
    """Guards for the data that these functions can read from globals and closures."""
    guards: list[NameGuard] = []
    for fn in functions:
        scope = fn.__globals__
        for name in fn.__code__.co_names:
            if name in scope and isinstance(scope[name], DATA):
                guards.append(_global_guard(scope, name))
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
            guard = _cell_guard(name, cell)
            if guard is not None:
                guards.append(guard)
    return guards


def _global_guard(scope: dict[str, Any], name: str) -> NameGuard:
    return NameGuard(f"global {name}", lambda: scope.get(name, _MISSING), scope[name])


def _cell_guard(name: str, cell: Any) -> NameGuard | None:
    try:
        value = cell.cell_contents
    except ValueError:
        return None
    if not isinstance(value, DATA) or type(value) is TracedArray:
        return None
    return NameGuard(f"closure variable {name}", lambda: cell.cell_contents, value)
