"""What lies in containers, and the measure of that.

``Content``: a container, or an array that Python took the value of (`ArrayContent`), with the same
in it, at any depth.
"""

from __future__ import annotations

import operator
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ..facts.dict_versions import version_now, version_of
from .measures import (
    ANY,
    ATOMS,
    BUFFERS,
    DATA,
    VIEWS,
    Bits,
    Identity,
    Measure,
    is_plain_object,
    is_row,
)

_DICTS: tuple[dict[Any, Any], ...] = ({}, OrderedDict())
DICT_VIEWS: tuple[type, ...] = tuple(
    type(view) for d in _DICTS for view in (d.keys(), d.values(), d.items()))
_SEQUENCES: Any = (tuple, list, deque, UserList, *DICT_VIEWS)
Key = Any
_SMALL = 512  # bytes of an array that is compared by content although nothing is known to read it


def inside(found: Any) -> list[tuple[Key, Any]] | None:
    """Keys or positions, and what lies there; None for what is no container of items."""
    if isinstance(found, VIEWS) and not isinstance(found, UserList):
        found = dict(found)
    if isinstance(found, dict):
        return None if "__builtins__" in found else list(found.items())
    if type(found) is partial:
        return list(enumerate(parts_of(found)))
    if isinstance(found, _SEQUENCES) and found.__class__ is type(found):
        return list(enumerate(found))
    return None


def parts_of(found: partial[Any]) -> list[Any]:
    """The function, its arguments, and those by name, which may be changed."""
    return [found.func, found.args, found.keywords, found.__dict__]


def item_of(found: Any, key: Any) -> Any:
    """What lies under a key that `inside` gave."""
    return parts_of(found)[key] if type(found) is partial else found[key]


def values_inside(found: Any) -> Iterable[Any]:
    """The items of a container, of a set too; nothing for other values."""
    if isinstance(found, (set, frozenset)):
        return found
    return [item for _, item in inside(found) or ()]


def everything_in(
    root: Any, items: Callable[[Any], Iterable[Any]] = values_inside,
    seen: dict[int, Any] | None = None,
) -> Iterator[Any]:
    """``root`` and all that lies in it at any depth, in the order it lies there: each object once,
    numbers and text as often as they are there.  ``seen``: objects to pass over, new ones noted.
    """
    todo, seen = [root], {} if seen is None else seen
    while todo:
        found = todo.pop()
        if isinstance(found, ATOMS):
            yield found
        elif id(found) not in seen:
            seen[id(found)] = found
            yield found
            todo += reversed([*items(found)])


# --------------------------------------------------------------------------------------- measures


def measure(value: Any, apart: Container[int] = ()) -> Measure:
    """How a trace that read this value is bound to it.  Containers with the ids ``apart`` have
    guards of their own, and are compared by identity."""
    if id(value) not in apart and inside(value) is not None:
        return Content(value, apart)
    return _of_one(value)


def same(one: Any, other: Any) -> bool:
    """Whether a trace may take the one for the other."""
    return measure(one).matches(other)


def _of_one(value: Any) -> Measure:
    if isinstance(value, np.ndarray):
        return ArrayContent(value) if value.nbytes <= _SMALL else Identity(value)
    is_data = isinstance(value, (*DATA, *BUFFERS, set, frozenset, slice, range))
    return Bits(value) if is_data else Identity(value)


_INNER: Any = object()  # stands for what a node's own comparison leaves to others


class _Node:
    """A container and what lies in it itself: numbers and text are compared here, all at once.

    Objects are compared here too where the container is a dictionary whose version is known: where
    that is the same, they are.  Tuples of numbers and text are like these.
    """

    __slots__ = ("expected", "inner", "inner_keys", "keys", "kind", "version")

    def __init__(self, found: Any, items: list[tuple[Key, Any]], version: int) -> None:
        self.kind: Any = list if type(found) is partial else type(found)
        is_mapping = isinstance(found, (dict, MappingProxyType, ChainMap, UserDict))
        self.keys = [key for key, _ in items] if is_mapping else None
        self.version = version
        self.expected = [self._expected(item) for _, item in items]
        self.inner_keys = [key for (key, _), e in zip(items, self.expected, strict=True)
                           if e is _INNER]
        self.inner = len(self.inner_keys)

    def _expected(self, item: Any) -> Any:
        if isinstance(item, ATOMS) or is_row(item):
            return item
        if self.version and is_plain_object(item):
            return Identity(item)
        return _INNER

    def rest(self, found: Any) -> list[Any] | None:
        """What is left to compare; None where the container differs."""
        if not self.version or type(found) is not dict:
            return self._rest(found)
        version = version_now(found)
        if version == self.version:
            return [found[key] for key in self.inner_keys]
        rest = self._rest(found)
        if rest is not None:
            self.version = version or self.version
        return rest

    def _rest(self, found: Any) -> list[Any] | None:
        if type(found) is partial:
            found = parts_of(found)
        if type(found) is not self.kind or len(found) != len(self.expected):
            return None
        if self.keys is None:
            items = found
        else:
            keys = list(found)
            if not all(map(operator.is_, keys, self.keys)) and not _same_keys(keys, self.keys):
                return None
            items = found.values()
        rest = [a for a, b in zip(items, self.expected, strict=True) if a is not b]
        return rest if len(rest) == self.inner else self._compared(list(items))

    def _compared(self, items: list[Any]) -> list[Any] | None:
        """The same where numbers or text are other objects, perhaps of the same bits."""
        for position, (item, expected) in enumerate(zip(items, self.expected, strict=True)):
            if expected is not _INNER and item is not expected:
                if type(expected) is Identity:
                    if not expected.matches(item):
                        return None
                    continue
                if not measure(expected).matches(item):
                    return None
                self.expected[position] = item  # the next comparison is quicker
        return [a for a, b in zip(items, self.expected, strict=True) if b is _INNER]


def _same_keys(keys: list[Key], expected: list[Key]) -> bool:
    return list(map(type, keys)) == list(map(type, expected)) and keys == expected


class Content:
    """A container by what is in it, in containers in it, and so on.

    Arrays in it with guards of their own (`close`) are not compared again.
    """

    __slots__ = ("_arrays", "_entries", "_kind", "_size", "fixed")
    is_of_start = True

    def __init__(self, root: Any, apart: Container[int] = ()) -> None:
        self._kind = type(root)
        self._entries: list[Any] = []  # in the order in which `matches` comes to them
        self._arrays: list[tuple[int, np.ndarray, Any]] = []
        self._size = 0
        seen: dict[int, int] = {}
        kept: list[Any] = []  # so that ids stay theirs
        todo: list[tuple[Any, Any]] = [(root, None)]
        while todo:
            found, path = todo.pop()
            if id(found) in seen:
                self._entries.append(seen[id(found)])
                continue
            version = version_of(found) if type(found) is dict else 0  # before what it is one of
            items = None if id(found) in apart else inside(found)
            if items is None:
                if isinstance(found, np.ndarray):
                    self._arrays.append((len(self._entries), found, path))
                self._entries.append(_of_one(found))
                continue
            seen[id(found)] = len(kept)
            kept.append(found)
            self._size += len(items)
            self._entries.append(node := _Node(found, items, version))
            todo += [(item, (path, key)) for (key, item), expected in reversed(list(zip(
                items, node.expected, strict=True))) if expected is _INNER]

        # Tuples of numbers and text alone: the same tuple has the same in it.
        fixed = all(type(e) is int or getattr(e, "kind", None) is tuple for e in self._entries)
        self.fixed: Any = root if fixed else None

    @property
    def size(self) -> int:
        """How many items are compared at each call."""
        return self._size

    def arrays(self) -> Iterator[tuple[np.ndarray, tuple[Key, ...]]]:
        """The arrays in it, with the keys that lead to each, until `close`."""
        return ((held, _unlinked(path)) for _, held, path in self._arrays)

    def close(self, guarded: Container[int]) -> None:
        """Arrays with these ids have guards of their own; the others are no longer kept alive."""
        for number, held, _ in self._arrays:
            if id(held) in guarded:
                self._entries[number] = ANY
        self._arrays.clear()

    def matches(self, found: Any) -> bool:
        if self.fixed is not None and found is self.fixed:
            return True
        todo, seen = [found], list[Any]()
        for entry in self._entries:
            one = todo.pop()
            if type(entry) is _Node:
                rest = entry.rest(one)
                if rest is None:
                    return False
                seen.append(one)
                rest.reverse()
                todo += rest
            elif type(entry) is int:
                if one is not seen[entry]:
                    return False
            elif not entry.matches(one):
                return False
        return True

    def text(self) -> str:
        return f"this {self._kind.__name__} ({self._size} items in all)"


class ArrayContent:
    """An array of any class and dtype by all that it holds."""

    __slots__ = ("content", "dtype", "kind", "shape")
    is_of_start = True

    def __init__(self, value: np.ndarray) -> None:
        self.kind, self.dtype, self.shape = type(value), value.dtype, value.shape
        content = _held_in(value)
        self.content = content if type(content) is bytes else Content(content)

    def matches(self, found: Any) -> bool:
        if type(found) is not self.kind or found.dtype != self.dtype or (
                found.shape != self.shape):
            return False
        content = _held_in(found)
        return self.content.matches(content) if isinstance(self.content, Content) else bool(
            content == self.content)

    def text(self) -> str:
        return f"this {self.kind.__name__} ({self.dtype}{list(self.shape)}), whose value is used"


def _held_in(x: np.ndarray) -> Any:
    """The bytes of an array, or a container of what it holds."""
    if type(x) is np.ndarray and not x.dtype.hasobject and x.dtype.kind != "T":
        return x.tobytes()
    if isinstance(x, np.ma.MaskedArray):
        plain: Any = np.ma.getdata(x, subok=False)
        return [_held_in(plain), np.ma.getmaskarray(x).tobytes(), repr(vars(x).get("_fill_value"))]
    plain = np.asarray(x)
    items = plain.ravel().tolist() if plain.dtype.hasobject or plain.dtype.kind == "T" else (
        plain.tobytes())
    return [items, dict(getattr(x, "__dict__", ()))]


def _unlinked(path: Any) -> tuple[Key, ...]:
    keys: list[Key] = []
    while path is not None:
        path, key = path
        keys.append(key)
    return tuple(reversed(keys))
