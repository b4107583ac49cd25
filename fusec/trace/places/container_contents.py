"""Contents of lists and dicts that the program changes: their items as variables, assignments to
them after each call, and the types and layouts that a later call must find in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir.sizes.symbolic_sizes import plain

from ..choice.tails import present
from ..facts.refusals import is_compiled
from ..guards.container_changes import items_in, may_be_held, put_content
from ..guards.contents import inside
from ..guards.measures import BUFFERS, DATA, bits_of, layout_of
from ..guards.places import UNBOUND, OuterPlace

MOST_ITEMS = 64  # of which each is an input; the items of larger containers are constants
Reader = Callable[[], Any]


@dataclass(frozen=True)
class NewContent:
    """The new content of a container: new values, and old ones by the keys they had."""

    read: Reader
    layout: tuple[tuple[Any, bool, Any], ...]  # key, whether it is an old item, its key or number
    subject: str

    def __str__(self) -> str:
        return f"changes the items of {self.subject}"

    def apply(self, values: list[Any]) -> None:
        container = self.read()
        old = dict(items_in(container))
        put_content(container, [(key, old[source] if is_old else values[source])
                                for key, is_old, source in self.layout])


@dataclass(eq=False)
class Held:
    """A container, its items before the trace, and the traced values that stand for these."""

    container: Any
    title: str
    read: Reader
    before: list[tuple[Any, Any]]
    initial: list[tuple[Any, Any]] = field(default_factory=list)
    only_appends: bool = False  # see `append_only_lists`

    @property
    def is_large(self) -> bool:
        return len(self.before) > MOST_ITEMS

    @property
    def is_replaced(self) -> bool:
        """Whether its content is assigned as a whole; else its items are, one by one."""
        now = list(items_in(self.container))
        if self.is_large or self.only_appends:
            return len(now) != len(self.initial) or not all(
                a == c and b is d for (a, b), (c, d) in zip(now, self.initial, strict=True))
        return self.has_other_keys or self._has_moved(now)

    @property
    def has_other_keys(self) -> bool:
        """Whether the next call finds other keys than this one."""
        return [k for k, _ in items_in(self.container)] != [k for k, _ in self.before]

    def _has_moved(self, now: list[tuple[Any, Any]]) -> bool:
        """Whether containers that lie in it have changed places: they stay the same objects."""
        return any(a is not b and may_be_held(a) and any(a is old for _, old in self.initial)
                   for (_, a), (_, b) in zip(now, self.initial, strict=True))

    def layout(self) -> tuple[tuple[tuple[Any, bool, Any], ...], list[Any]]:
        """See `NewContent`; an item that is one of the old ones is not computed anew."""
        old = {id(item): key for key, item in reversed(self.initial)}
        first = dict(self.initial)
        layout: list[tuple[Any, bool, Any]] = []
        new: list[Any] = []
        for key, item in items_in(self.container):
            is_old = id(item) in old
            source = key if first.get(key, UNBOUND) is item else old.get(id(item))
            layout.append((plain(key), is_old, source if is_old else len(new)))
            new += [] if is_old else [item]
        return tuple(layout), new


class Tail(OuterPlace):
    """The items appended to a list, all of them as one variable: a tuple."""

    __slots__ = ("_list", "_start", "find")

    def __init__(self, held: Held) -> None:
        super().__init__(held.container, "appended", f"what is appended to {held.title}")
        self.find, self._list, self._start = held.read, held.title, len(held.before)

    def __call__(self) -> tuple[Any, ...]:
        return tuple(self.scope)[self._start:]

    def put(self, value: tuple[Any, ...]) -> None:
        while len(self.scope) > self._start:
            self.scope.pop()
        self.scope.extend(value)

    def apply(self, value: tuple[Any, ...]) -> None:
        self.find().extend(present(value))

    def __str__(self) -> str:
        return f"appends to {self._list}"


class ItemLayouts:
    """A container that must still have the same keys, with items of the same types and layouts."""

    is_of_start = True

    def __init__(self, container: Any, with_ints: bool) -> None:
        self._with_ints = with_ints
        self._layouts = content_layout(container, with_ints)

    def matches(self, value: Any) -> bool:
        return bool(content_layout(value, self._with_ints) == self._layouts)

    def text(self) -> str:
        return "a container of these keys and types of items (read at each call)"


def content_layout(container: Any, with_ints: bool, seen: dict[int, int] | None = None) -> Any:
    """Equal for contents that one trace can answer for; ``with_ints``: whether ints are inputs."""
    seen = {} if seen is None else seen
    if type(container) is tuple:
        return tuple(content_layout(item, with_ints, seen) for item in container)
    if not may_be_held(container):
        return _item_layout(container, with_ints)
    if id(container) in seen:
        return seen[id(container)]
    seen[id(container)] = len(seen)
    items = list(items_in(container))
    is_input = len(items) <= MOST_ITEMS
    return type(container), [
        (key, content_layout(item, with_ints, seen) if is_input or may_be_held(item)
         else _item_bits(item)) for key, item in items]


def _item_layout(value: Any, with_ints: bool) -> Any:
    kind = type(value)
    if kind in (float, complex, np.ndarray) or (kind is int and with_ints) or (
            isinstance(value, np.generic) and is_compiled(value.dtype)):
        return layout_of(value)
    return _item_bits(value)


def _item_bits(value: Any) -> Any:
    """The condition on an item that is no input."""
    if isinstance(value, tuple) or (inside(value) is not None and not may_be_held(value)):
        return type(value), [(key, _item_bits(item)) for key, item in inside(value) or ()]
    if isinstance(value, (*DATA, *BUFFERS, set, frozenset, slice, range)) and not isinstance(
            value, np.ndarray):
        return type(value), bits_of(value)
    return type(value), id(value)
