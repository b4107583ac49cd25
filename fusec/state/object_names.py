"""The Variables of a graph of objects, named by how they are reached: ``model.layers[0].W``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from fusec.errors import user_error

from .variable import Variable

T = TypeVar("T")
# What holds no Variables of the user's, or does not say in which order.
_CLOSED = (str, bytes, bytearray, int, float, complex, type(None), np.ndarray, np.generic, range,
           type, ModuleType, FunctionType, MethodType)
_KEYS = (str, int, bool, bytes, type(None))
_UNORDERED = (set, frozenset)
_RESERVED = "__metadata__"  # of the format that values are kept in


def named_variables(roots: Mapping[str, Any]) -> dict[str, Variable]:
    """See `named_objects`."""
    return named_objects(roots, Variable)


def named_objects(roots: Mapping[str, Any], kind: type[T]) -> dict[str, T]:
    """The objects of a class (Variables) that attributes, lists, tuples and dicts reach, each by
    its first name.

    The first is the one that takes the fewest steps, then the first in the order of names; it does
    not depend on the order in which attributes were assigned.

    Raises ``ValueError`` for Variables in sets and arrays of objects, under keys without a stable
    text, and for two of one name (an attribute ``d.y`` beside ``y`` of ``d``).
    """
    names: dict[str, T] = {}
    visited: dict[int, Any] = {}
    level = sorted(roots.items())
    while level:
        following: list[tuple[str, Any]] = []
        for name, value in level:
            _check_array(name, value)
            if isinstance(value, _CLOSED) or id(value) in visited:
                continue
            visited[id(value)] = value
            if isinstance(value, kind):
                _check_name(name, names)
                names[name] = value
            elif not isinstance(value, Variable):
                following += _parts(name, value)
        level = following
    return names


def _check_array(name: str, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype.hasobject and any(
            isinstance(item, Variable) for item in value.flat):
        raise _nameless(name, "an array of objects", "put them in a list or a dict")


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Its parts, with names, in a stable order."""
    if type(value).__module__.startswith("fusec."):
        if hasattr(value, "variables"):  # that `wrap_function` keeps
            yield from ((f"{name}.variables[{i}]", v) for i, v in enumerate(value.variables))
        return
    if isinstance(value, Mapping):
        yield from _items(name, value)
    elif isinstance(value, _UNORDERED):
        if any(isinstance(item, Variable) for item in value):
            raise _nameless(name, "a set", "put them in a list or a dict")
    elif isinstance(value, Sequence):
        yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
    attributes = dict(getattr(value, "__dict__", ()))
    attributes |= {slot: getattr(value, slot) for slot in _slots(value) if hasattr(value, slot)}
    yield from ((f"{name}.{key}", attributes[key]) for key in sorted(map(str, attributes))
                if key in attributes)


def _slots(value: Any) -> Iterator[str]:
    """The names of its slots, as attributes."""
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            is_private = slot.startswith("__") and not slot.endswith("__")
            if slot not in ("__dict__", "__weakref__"):
                yield f"_{kind.__name__.lstrip('_')}{slot}" if is_private else slot


def _items(name: str, value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key in sorted(value, key=repr):
        if isinstance(key, _KEYS):
            yield f"{name}[{key!r}]", value[key]
        elif isinstance(value[key], Variable):
            raise _nameless(name, f"the key {key!r} of a dict", "use texts or numbers as keys")


def _check_name(name: str, names: Mapping[str, Any]) -> None:
    is_text = not any("\ud800" <= c <= "\udfff" for c in name)  # which UTF-8 holds
    if name not in names and is_text and name != _RESERVED:
        return
    why = ("two Variables would have the name" if name in names else
           "a checkpoint cannot hold a Variable of the name")
    raise user_error(ValueError, f"{why} {name!a}", None,
                     "give it another attribute or key, one that is an identifier")


def _nameless(name: str, where: str, cure: str) -> Exception:
    return user_error(ValueError, f"a Variable in {where} has no stable name", None, cure,
                      values=[("in", name)])


__all__ = ["named_objects", "named_variables"]
