"""What stands for a static argument in the key of a call: equal only where a trace that saw the one
value may answer for the other, whatever a class of the user's takes for equal."""

from __future__ import annotations

import enum
import sys
import weakref
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, SimpleNamespace
from typing import Any

import numpy as np

from .code_names import HEAP_TYPE

_EXACT = (str, bytes, bool, int, type(None), type(Ellipsis), type(NotImplemented))
_BY_REPR = (float, complex, slice, range)
_BY_IDENTITY = (type, FunctionType, BuiltinFunctionType, MethodType, MethodWrapperType)
_DEEPEST = 10
# What objects of subclasses are as plain ones, whatever the class makes of ``str(x)``.
_PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__), (bytes, lambda x: bytes.__getitem__(x, slice(None))), (int, int.__int__),
    (float, float.__float__), (complex, complex.__complex__))


class SameObject:
    """Equal for one object alone, which it does not keep alive where that can be avoided."""

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
    """Equal for objects of one class that held the same values when they were given."""

    __slots__ = ("content", "value")

    def __init__(self, value: Any, content: Any) -> None:
        self.value, self.content = value, content  # guards of traces refer to the object

    def __hash__(self) -> int:
        return hash(self.content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and bool(self.content == other.content)

    def __repr__(self) -> str:
        return repr(self.value)


class _Opaque(Exception):
    """It holds what is no value."""


def key_of(value: Any) -> Any:
    """Of a hashable value, or an object whose attributes guards look at."""
    kind = type(value)
    if kind in _EXACT or isinstance(value, _BY_IDENTITY) or kind.__eq__ is object.__eq__:
        return value
    if isinstance(value, enum.Enum):
        return SameObject(value)
    try:
        return Alike(value, _content(value, _DEEPEST))
    except _Opaque:
        return SameObject(value)


def _content(value: Any, depth: int) -> tuple[Any, ...]:
    """Hashable, and equal for values of one class that cannot be told apart."""
    kind = type(value)
    if kind in _EXACT or isinstance(value, (*_BY_IDENTITY, enum.Enum)):
        return kind, value
    if kind in _BY_REPR or isinstance(value, np.generic):
        return kind, repr(value)
    if depth == 0:
        raise _Opaque
    found: list[Any] = [
        plain(value) for base, plain in _PLAIN if isinstance(value, base)]
    if isinstance(value, tuple):
        found.append(tuple(_content(item, depth - 1) for item in tuple.__iter__(value)))
    if isinstance(value, frozenset):
        found.append(frozenset(_content(item, depth - 1) for item in frozenset.__iter__(value)))
    if _is_of_library(kind):
        if kind.__hash__ is None or kind.__eq__ is object.__eq__:
            raise _Opaque
        return (kind, repr(value)) if hasattr(value, "__dict__") else (kind, value, repr(value))
    if not found and not all(map(_is_pythons, kind.__mro__[1:])):
        raise _Opaque  # what a base in C holds cannot be seen
    found += [(name, _content(held, depth - 1)) for name, held in attributes_in(value)]
    return kind, *(repr(x) if isinstance(x, float | complex) else x for x in found)


def _is_of_library(kind: type) -> bool:
    """Whether it is a class of Python's library, or one of an extension in C."""
    root = str(kind.__module__).partition(".")[0]
    return root in sys.stdlib_module_names or not kind.__flags__ & HEAP_TYPE


def _is_pythons(base: type) -> bool:
    return base is object or base.__module__ in ("abc", "typing") or not _is_of_library(base)


def attributes_in(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object of a Python class, those in slots too."""
    own = getattr(value, "__dict__", None)
    if type(own) is dict:
        yield from own.items()
    for name, slot in slots_of(type(value)):
        try:
            yield name, slot.__get__(value)
        except AttributeError:  # nothing was assigned yet
            continue


def has_attributes(value: Any) -> bool:
    """Whether it is an object with attributes of its own."""
    kind = type(value)
    return kind is SimpleNamespace or bool(kind.__flags__ & HEAP_TYPE and (
        hasattr(value, "__weakref__") or next(slots_of(kind), None) is not None))


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


__all__ = ["SameObject", "attributes_in", "has_attributes", "key_of", "slots_of"]
