"""Walks over the content of containers, and the measures that compare it.

``Content``: a container with equal content at any depth.  ``ArrayContent``: an array whose elements
the trace has read.
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
from ..values.array import TracedArray
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
_SMALL = 512  # bytes: arrays up to this size are always compared by content


def inside(container: Any) -> list[tuple[Key, Any]] | None:
    """The (key or position, item) pairs of a container; None for other values."""
    if isinstance(container, VIEWS) and not isinstance(container, UserList):
        container = dict(container)
    if isinstance(container, dict):
        return None if "__builtins__" in container else list(container.items())
    if type(container) is partial:
        return list(enumerate(parts_of(container)))
    if isinstance(container, _SEQUENCES) and container.__class__ is type(container):
        return list(enumerate(container))
    return None


def parts_of(function: partial[Any]) -> list[Any]:
    """The parts of a partial, mutable dicts included."""
    return [function.func, function.args, function.keywords, function.__dict__]


def item_of(container: Any, key: Any) -> Any:
    """The item at a key that `inside` has returned."""
    return parts_of(container)[key] if type(container) is partial else container[key]


def values_inside(container: Any) -> Iterable[Any]:
    """The items of a container, of a set too; nothing for other values."""
    if isinstance(container, (set, frozenset)):
        return container
    return [item for _, item in inside(container) or ()]


def everything_in(
    root: Any, items: Callable[[Any], Iterable[Any]] = values_inside,
    visited: dict[int, Any] | None = None,
) -> Iterator[Any]:
    """``root`` and all that lies in it at any depth, in the order it lies there: each object once,
    numbers and text as often as they are there.  ``seen``: objects to pass over, new ones noted.
    """
    todo, visited = [root], {} if visited is None else visited
    while todo:
        item = todo.pop()
        if item.storage is None if type(item) is TracedArray else isinstance(item, ATOMS):
            yield item
        elif id(item) not in visited:
            visited[id(item)] = item
            yield item
            todo += reversed([*items(item)])


# --------------------------------------------------------------------------------------- measures


def measure(value: Any, apart: Container[int] = ()) -> Measure:
    """The measure for a value that a trace has read.  Containers with the ids ``apart`` have guards
    of their own, and are compared by identity."""
    if id(value) not in apart and inside(value) is not None:
        return Content(value, apart)
    return _of_one(value)


def same(one: Any, other: Any) -> bool:
    """Whether a trace that read ``one`` may answer for ``other``."""
    return measure(one).matches(other)


def _of_one(value: Any) -> Measure:
    if isinstance(value, np.ndarray):
        return ArrayContent(value) if value.nbytes <= _SMALL else Identity(value)
    is_data = isinstance(value, (*DATA, *BUFFERS, set, frozenset, slice, range))
    return Bits(value) if is_data else Identity(value)


_INNER: Any = object()  # stands for an item that has an entry of its own


class _Node:
    """One container: its numbers, texts, and short tuples of these are compared here, all at once.

    In a dictionary with a version tag objects are compared here too: while the tag is the same, so
    are they.
    """

    __slots__ = ("expected", "inner", "inner_keys", "keys", "kind", "version")

    def __init__(self, container: Any, items: list[tuple[Key, Any]], version: int) -> None:
        self.kind: Any = list if type(container) is partial else type(container)
        is_mapping = isinstance(container, (dict, MappingProxyType, ChainMap, UserDict))
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

    def rest(self, container: Any) -> list[Any] | None:
        """The items that have entries of their own; None where the container differs."""
        if not self.version or type(container) is not dict:
            return self._rest(container)
        version = version_now(container)
        if version == self.version:
            return [container[key] for key in self.inner_keys]
        rest = self._rest(container)
        if rest is not None:
            self.version = version or self.version
        return rest

    def _rest(self, container: Any) -> list[Any] | None:
        if type(container) is partial:
            container = parts_of(container)
        if type(container) is not self.kind or len(container) != len(self.expected):
            return None
        if self.keys is None:
            items = container
        else:
            keys = list(container)
            if not all(map(operator.is_, keys, self.keys)) and not _same_keys(keys, self.keys):
                return None
            items = container.values()
        rest = [a for a, b in zip(items, self.expected, strict=True) if a is not b]
        return rest if len(rest) == self.inner else self._compared(list(items))

    def _compared(self, items: list[Any]) -> list[Any] | None:
        """`_rest` where numbers or texts are new objects, which may have the same bits."""
        for position, (item, expected) in enumerate(zip(items, self.expected, strict=True)):
            if expected is not _INNER and item is not expected:
                if type(expected) is Identity:
                    if not expected.matches(item):
                        return None
                    continue
                if not measure(expected).matches(item):
                    return None
                self.expected[position] = item  # next time identity suffices
        return [a for a, b in zip(items, self.expected, strict=True) if b is _INNER]


def _same_keys(keys: list[Key], expected: list[Key]) -> bool:
    return list(map(type, keys)) == list(map(type, expected)) and keys == expected


class Content:
    """A container by its content, nested containers included.

    Arrays in it that have guards of their own (see `close`) are not compared again.
    """

    __slots__ = ("_arrays", "_entries", "_kind", "_size", "fixed")
    is_of_start = True

    def __init__(self, root: Any, apart: Container[int] = ()) -> None:
        self._kind = type(root)
        self._entries: list[Any] = []  # in the order in which `matches` comes to them
        self._arrays: list[tuple[int, np.ndarray, Any]] = []
        self._size = 0
        numbers: dict[int, int] = {}
        containers: list[Any] = []  # kept alive, so that no other object gets their ids
        todo: list[tuple[Any, Any]] = [(root, None)]
        while todo:
            value, path = todo.pop()
            if id(value) in numbers:
                self._entries.append(numbers[id(value)])
                continue
            version = version_of(value) if type(value) is dict else 0  # before its items
            items = None if id(value) in apart else inside(value)
            if items is None:
                if isinstance(value, np.ndarray):
                    self._arrays.append((len(self._entries), value, path))
                self._entries.append(_of_one(value))
                continue
            numbers[id(value)] = len(containers)
            containers.append(value)
            self._size += len(items)
            self._entries.append(node := _Node(value, items, version))
            todo += [(item, (path, key)) for (key, item), expected in reversed(list(zip(
                items, node.expected, strict=True))) if expected is _INNER]

        # Tuples of numbers and text are immutable: for the same tuple nothing is compared.
        fixed = all(type(e) is int or getattr(e, "kind", None) is tuple for e in self._entries)
        self.fixed: Any = root if fixed else None

    @property
    def size(self) -> int:
        """How many items are compared at each call."""
        return self._size

    def arrays(self) -> Iterator[tuple[np.ndarray, tuple[Key, ...]]]:
        """The arrays in it, with the keys that lead to each, until `close`."""
        return ((array, _unlinked(path)) for _, array, path in self._arrays)

    def close(self, guarded: Container[int]) -> None:
        """Arrays with these ids have guards of their own; the others are no longer kept alive."""
        for number, array, _ in self._arrays:
            if id(array) in guarded:
                self._entries[number] = ANY
        self._arrays.clear()

    def matches(self, value: Any) -> bool:
        if self.fixed is not None and value is self.fixed:
            return True
        todo, containers = [value], list[Any]()
        for entry in self._entries:
            item = todo.pop()
            if type(entry) is _Node:
                rest = entry.rest(item)
                if rest is None:
                    return False
                containers.append(item)
                rest.reverse()
                todo += rest
            elif type(entry) is int:
                if item is not containers[entry]:
                    return False
            elif not entry.matches(item):
                return False
        return True

    def text(self) -> str:
        return f"this {self._kind.__name__} ({self._size} items in all)"


class ArrayContent:
    """An array of any class and dtype by its elements, mask and attributes."""

    __slots__ = ("content", "dtype", "kind", "shape")
    is_of_start = True

    def __init__(self, value: np.ndarray) -> None:
        self.kind, self.dtype, self.shape = type(value), value.dtype, value.shape
        content = _held_in(value)
        self.content = content if type(content) is bytes else Content(content)

    def matches(self, value: Any) -> bool:
        if type(value) is not self.kind or value.dtype != self.dtype or value.shape != self.shape:
            return False
        content = _held_in(value)
        return self.content.matches(content) if isinstance(self.content, Content) else bool(
            content == self.content)

    def text(self) -> str:
        return f"this {self.kind.__name__} ({self.dtype}{list(self.shape)}), whose value is used"


def _held_in(x: np.ndarray) -> Any:
    """The bytes of an array, or a container of all that it holds."""
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
