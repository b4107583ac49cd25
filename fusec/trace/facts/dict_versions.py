"""CPython's version of a dictionary: a number that no other state of any dictionary has.

While it is the same nothing was inserted, replaced or removed, so what was compared once need not
be compared again.  It is no part of Python's interface: whether a Python's dictionaries keep it is
tried when it is first needed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from ctypes import c_uint64
from typing import Any

_PLACE = 24  # behind the object's head and the number of items
_Words = c_uint64 * 3  # the version, the table of keys, and that of values which objects share
_ROUNDS = 40  # stores by one line, after which the interpreter has specialised it


def version_of(found: dict[Any, Any]) -> int:
    """The version; 0 where there is none.

    Attributes whose values lie in the object may change without a new one (Python 3.13).
    """
    return version_now(found) if has_versions() else 0


def version_now(found: dict[Any, Any]) -> int:
    """The same where `has_versions` is known to hold."""
    version, _, values = _Words.from_address(id(found) + _PLACE)
    return 0 if values else version


@functools.cache
def has_versions() -> bool:
    """Whether every change of a dictionary, by whatever way, is seen."""
    if sys.implementation.name != "cpython" or dict.__basicsize__ < _PLACE + 24:
        return False
    return all(_are_new(kind()) for kind in (_items, _attributes, _shared_attributes, _globals))


def _are_new(numbers: Iterator[int]) -> bool:
    """0 says nothing; all others differ."""
    seen = [number for number in numbers if number]
    return len(set(seen)) == len(seen)


def _items() -> Iterator[int]:
    one: dict[Any, Any] = {"a": 0.5}
    if not version_now(one) or version_now(one) != version_now(one):
        yield from (1, 1)
    changes: list[Callable[[], Any]] = [
        lambda: one.update(b=object()), lambda: one.__setitem__("b", object()),
        lambda: one.pop("b"), lambda: one.setdefault("c", object()), lambda: one.__delitem__("c"),
        lambda: one.update({"c": object()}), one.popitem, lambda: one.__ior__({"d": object()}),
        one.clear]
    yield from (version_now({"a": 0.5}), version_now(dict(one)), version_now(one))
    for change in changes:
        change()
        yield version_now(one)


class _Object:
    value: Any


def _shared_attributes() -> Iterator[int]:
    made = _Object()
    made.value = None
    yield from _stores(made)


def _attributes() -> Iterator[int]:
    made = _Object()
    made.value = None
    held: dict[Any, Any] = vars(made)
    held[1] = None  # no attribute: these are a dictionary like others now
    yield version_now(held)
    yield from _stores(made)


def _stores(made: _Object) -> Iterator[int]:
    held = vars(made)
    for _ in range(_ROUNDS):
        made.value = object()
        yield version_now(held)
    del made.value
    yield version_now(held)


def _globals() -> Iterator[int]:
    scope: dict[str, Any] = {"__name__": __name__}  # whose code this is, where calls are heard
    exec("def assign():\n    global value\n    value = object()\n", scope)
    for _ in range(_ROUNDS):
        scope["assign"]()
        yield version_now(scope)


__all__ = ["version_now", "version_of"]
