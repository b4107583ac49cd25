"""The key of a static argument in the key of a call: equal only where a trace of the one value
may serve for the other.  The ``==`` of a user's class may ignore attributes that the trace read."""

from __future__ import annotations

import enum
import sys
import weakref
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, SimpleNamespace
from typing import Any

import numpy as np

from fusec.state.variable import Variable

from .code_names import HEAP_TYPE

_EXACT = (str, bytes, bool, int, type(None), type(Ellipsis), type(NotImplemented))
_BY_REPR = (float, complex, slice, range)
_BY_IDENTITY = (type, FunctionType, BuiltinFunctionType, MethodType, MethodWrapperType)
_PLAIN_VALUES = (tuple, str, bytes, int, float, complex, frozenset, slice, range)
_DEEPEST = 10
# The plain value of an object of a subclass: ``str(x)`` itself would call the subclass's method.
_PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__), (bytes, lambda x: bytes.__getitem__(x, slice(None))), (int, int.__int__),
    (float, float.__float__), (complex, complex.__complex__))


class SameObject:
    """Equal for one object only; held by a weak reference where its type has one."""

    __slots__ = ("number", "reference")

    def __init__(self, value: Any) -> None:
        self.number = id(value)
        try:
            self.reference: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.reference = lambda: value

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.number == other.number and (
            self.reference() is not None and self.reference() is other.reference())

    def __repr__(self) -> str:
        return repr(self.reference())


class Alike:
    """Equal for objects of one class that had the same content at their calls."""

    __slots__ = ("content", "value")

    def __init__(self, value: Any, content: Any) -> None:
        self.value, self.content = value, content  # kept alive: guards refer to the object

    def __hash__(self) -> int:
        return hash(self.content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and bool(self.content == other.content)

    def __repr__(self) -> str:
        return repr(self.value)


class _Opaque(Exception):
    """The content of an object cannot be read, or not compared."""


def key_of(value: Any) -> Any:
    """The key of a static argument: the value itself where its ``==`` is safe."""
    kind = type(value)
    if kind in _EXACT or isinstance(value, _BY_IDENTITY) or kind.__eq__ is object.__eq__:
        return value
    if isinstance(value, (enum.Enum, Variable)) or not _is_immutable(value):
        return SameObject(value)
    try:
        return Alike(value, _content(value, _DEEPEST))
    except _Opaque:
        return SameObject(value)


def _is_immutable(value: Any) -> bool:
    """Whether no program writes to it: one that is equal may stand for it."""
    kind = type(value)
    frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
    return bool(frozen) or isinstance(value, _PLAIN_VALUES) or _is_library_class(kind)


def _content(value: Any, depth: int) -> tuple[Any, ...]:
    """A hashable copy of a value's contents: class and bits of it, its items and attributes."""
    kind = type(value)
    if kind in _EXACT or isinstance(value, (*_BY_IDENTITY, enum.Enum)):
        return kind, value
    if kind in _BY_REPR or isinstance(value, np.generic):
        return kind, repr(value)
    if depth == 0:
        raise _Opaque
    parts: list[Any] = [plain(value) for base, plain in _PLAIN if isinstance(value, base)]
    if isinstance(value, tuple):
        parts.append(tuple(_content(item, depth - 1) for item in tuple.__iter__(value)))
    if isinstance(value, frozenset):
        parts.append(frozenset(_content(item, depth - 1) for item in frozenset.__iter__(value)))
    if _is_library_class(kind):
        if kind.__hash__ is None or kind.__eq__ is object.__eq__:
            raise _Opaque
        return (kind, repr(value)) if hasattr(value, "__dict__") else (kind, value, repr(value))
    if not parts and not all(map(_is_transparent, kind.__mro__[1:])):
        raise _Opaque  # a base class written in C may hold what no attribute shows
    parts += [(name, _content(attribute, depth - 1)) for name, attribute in attributes_in(value)]
    return kind, *(repr(x) if isinstance(x, float | complex) else x for x in parts)


def _is_library_class(kind: type) -> bool:
    """Whether a class belongs to the standard library, or is written in C."""
    root = str(kind.__module__).partition(".")[0]
    return root in sys.stdlib_module_names or not kind.__flags__ & HEAP_TYPE


def _is_transparent(base: type) -> bool:
    return base is object or base.__module__ in ("abc", "typing") or not _is_library_class(base)


def is_transparent(value: Any) -> bool:
    """Whether it is an object of a class of the user's, in Python throughout: all that it holds are
    its attributes."""
    kind = type(value)
    return bool(kind.__flags__ & HEAP_TYPE) and not isinstance(
        value, (type, enum.Enum, BaseException)) and not _is_library_class(kind) and all(
            map(_is_transparent, kind.__mro__[1:])) and has_attributes(value)


def attributes_in(value: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of an object's attributes, those in slots too."""
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is dict:
        yield from attributes.items()
    for name, slot in slots_of(type(value)):
        try:
            yield name, slot.__get__(value)
        except AttributeError:  # nothing was assigned yet
            continue


def has_attributes(value: Any) -> bool:
    """Whether an object of this class can have attributes."""
    kind = type(value)
    return kind is SimpleNamespace or bool(kind.__flags__ & HEAP_TYPE and (
        hasattr(kind, "__weakref__") or next(slots_of(kind), None) is not None))


def slots_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Names and descriptors of the slots of a Python class and its bases."""
    for base in kind.__mro__:
        names = vars(base).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"
            slot = vars(base).get(name)
            if name not in ("__dict__", "__weakref__") and hasattr(slot, "__set__"):
                yield name, slot
