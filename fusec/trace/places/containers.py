"""Lists and dicts that outlive the call and that the program changes: read at each call, changed
after it.

Their arrays and numbers are inputs of the graph, as those of attributes are, and their items are
variables of branches and loops, as outer names are.  While the function is traced the traced values
stand in the containers themselves, where all of Python sees them; afterwards their old items are
put back.  Items assigned are assigned after each call; where the items there are have changed (a
key more, an item appended) the container gets its new content as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from functools import partial
from typing import Any

from fusec.errors import unsupported

from ..choice.tails import is_open
from ..guards.container_changes import (
    ContainerChanges,
    held_in,
    items_in,
    may_be_held,
    put_content,
)
from ..guards.contents import everything_in
from ..guards.guard import Guard, itself, once_guard
from ..guards.places import Attribute, Cell, Global, Item, OuterPlace, Places
from ..guards.side_effects import is_outside
from ..values.assigned_names import AssignedLater
from ..values.trace import Trace
from .append_only_lists import Uses
from .container_contents import MOST_ITEMS, Held, ItemLayouts, NewContent, Reader, Tail
from .outside_memory import as_input, is_input, same_guard

_CONTAINERS = (list, tuple, dict, deque)


class Containers:
    """The containers of one trace that the program changes."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.places = trace, trace.part(Places)
        self.held: dict[int, Held] = {}
        self.before: dict[int, dict[Any, Any]] = {}  # of these, while the function is traced
        self.uses = Uses()

    @property
    def guarded(self) -> Set[int]:
        """The ids of those that have guards of their own."""
        return self.held.keys() | self.trace.world.assigned_names.containers.keys()

    def is_held(self, container: Any) -> bool:
        return id(container) in self.held

    def content_before(self, container: Any) -> Any:
        """The items of a container before the trace, in which it may be held or changed."""
        held = self.held.get(id(container))
        if held is not None:
            return [v for _, v in held.before] if not isinstance(container, dict) else dict(
                held.before)
        return self.trace.part(ContainerChanges).content_before(container)

    def may_become(self, container: Any) -> bool:
        """Whether it is not held yet, and outlives the call."""
        return self.trace.active and may_be_held(container) and not self.is_held(container) and (
            is_outside(self.trace, container))

    def titled(self, container: Any) -> tuple[Any, str]:
        """The container and its name in messages."""
        title = self.trace.name_outside(container)
        return container, title or f"a {type(container).__name__} from outside the function"

    def takes_item(self, container: Any, key: Any) -> bool:
        """Whether it is held and an item lies under the key.  One that the call has put there is
        a variable of branches and loops from when the first of them assigns it."""
        held = self.held.get(id(container))
        if held is None or not _lies_in(container, key):
            return False
        if not self.trace.in_region:
            return True
        key = key + len(container) if isinstance(container, list) and key < 0 else key
        place = Item(container, key, f"{held.title}[{key!r}]", held.read)
        if place not in self.places:
            if held.is_large:
                return False
            self.places.add(place)
        self.places.assigned_at[place.title] = self.trace.loc
        return True

    def takes(self, container: Any, key: Any) -> bool:
        """Make the items of a list or dict that the function made variables of branches and loops,
        if there is one under the key."""
        if not (may_be_held(container) and len(container) <= MOST_ITEMS
                and _lies_in(container, key)):
            return False
        for name, _ in items_in(container):
            place = Item(container, name, f"item {name!r} of a {type(container).__name__}",
                         partial(itself, container))
            if place not in self.places:
                self.places.add(place)
            self.places.assigned_at[place.title] = self.trace.loc
        hooks: Any = self.trace.hooks
        self.places.born.setdefault(id(container), (hooks.effects.birth(container), container))
        return True

    def takes_appended(self, fn: Any) -> bool:
        """Whether ``fn`` appends to a list that is nothing but appended to, in a branch: its
        tail is a variable then.  The trace begins anew where it was not known to be one."""
        container, trace = getattr(fn, "__self__", None), self.trace
        if type(container) is not list or fn.__name__ not in ("append", "extend") or (
                not trace.in_region or trace.record.loops):
            return False
        if self.may_become(container):
            only = self.only_appended([container])
            if only:
                raise AssignedLater(containers=[self.titled(container)], appended=only)
        held = self.held.get(id(container))
        if held is None or not held.only_appends:
            return False
        if Tail(held) not in self.places:
            self.places.add(Tail(held))
        self.places.assigned_at[Tail(held).title] = trace.loc
        return True

    @contextmanager
    def during_trace(self) -> Iterator[None]:
        """Holds the containers that the program is known to change."""
        guards = self.trace.world.guards
        try:
            for container, title in self.trace.world.assigned_names.containers.values():
                read = partial(itself, container)
                if id(container) in self.trace.world.assigned_names.appended:
                    content = list(items_in(container))
                    self.held[id(container)] = Held(
                        container, title, read, content, content, only_appends=True)
                elif not self.is_held(container):
                    guards[id(container), title] = self.enter(title, read)
            yield
        finally:
            for held in self.held.values():
                put_content(held.container, held.before)
            self.before.clear()

    def enter(self, title: str, read: Reader) -> Guard:
        """Put traced values into the container; gives the guard on the types of its items."""
        with_ints = not self.trace.world.assigned_names.ints_are_constants
        guard = Guard(title, title, read, ItemLayouts(read(), with_ints))
        self._enter(read(), title, read)
        return guard

    def _enter(self, container: Any, title: str, read: Reader) -> None:
        earlier = self.held.get(id(container))
        if earlier is not None:
            self.trace.world.guards[id(container), f"{title} is"] = same_guard(
                title, title, read, earlier.read)
            return
        held = Held(container, title, read, list(items_in(container)))
        self.held[id(container)] = held
        self.before[id(container)] = dict(held.before)
        for key, item in held.before:
            place = Item(container, key, f"{title}[{key!r}]", read)
            value = self._traced(item, place.subject, self._reader(read, key), not held.is_large)
            held.initial.append((key, value))
            container[key] = value
            if not held.is_large:
                self.places.add_outside(place, item)

    def _reader(self, read: Reader, key: Any) -> Reader:
        return _item_reader(read, key, self.before)

    def _traced(self, value: Any, title: str, read: Reader, reads: bool) -> Any:
        """The stand-in for an item."""
        trace = self.trace
        if type(value) is tuple:
            return tuple(self._traced(item, f"{title}[{i}]", self._reader(read, i), reads)
                         for i, item in enumerate(value))
        if may_be_held(value):
            self._enter(value, title, read)
            return value
        if not reads or not is_input(trace, value):
            return value
        return as_input(trace, value, read, title)

    # -- the end of the trace ---------------------------------------------------------------------

    def effects(self) -> list[tuple[Any, Any]]:
        """The effects to make after each call: items are assigned, then contents, those within
        others first, then attributes and outer names."""
        replaced = {key for key, held in self.held.items() if held.is_replaced}
        changed = [place for place in self.places.changed() if id(place.scope) not in replaced]
        effects: list[tuple[Any, Any]] = _of_kind(changed, Item)
        for key, held in reversed(self.held.items()):
            if key in replaced and held.only_appends:
                effects.append((tail := Tail(held), list(tail())))
            elif key in replaced:
                layout, new = held.layout()
                effects.append((NewContent(held.read, layout, held.title), new))
        return [*effects, *_of_kind(changed, Attribute), *_of_kind(changed, Cell, Global)]

    def once(self) -> list[Guard]:
        """A guard for each container that will have other keys at the next call."""
        return [once_guard(f"{type(held.container).__name__} ({held.title})", None)
                for held in self.held.values() if held.is_replaced and not held.only_appends and (
                    held.is_large or held.has_other_keys)]

    def only_appended(self, changed: list[Any]) -> list[int]:
        """The ids of those of some changed containers that are nothing but appended to."""
        functions = (*self.trace.entry, *getattr(self.trace.hooks, "functions", ()))
        ids = []
        for container in changed:
            before = self.content_before(container)
            if not isinstance(before, dict) and self.uses.only_appends(
                    container, list(before), functions):
                ids.append(id(container))
        return ids

    def check_only_appended(self) -> None:
        """Begin anew where a list that was taken for one of these is read after all."""
        taken = [h.container for h in self.held.values() if h.only_appends]
        if len(self.only_appended(taken)) < len(taken):
            self.trace.world.assigned_names.appended.clear()
            raise AssignedLater

    def check_new_items(self) -> None:
        """Refuse items that cannot be put into a container after the call: other containers from
        outside, which the program would go on to share."""
        for held in self.held.values():
            old = {id(item) for _, item in held.initial}
            for key, item in items_in(held.container):
                inner = None if id(item) in old else self.from_outside(item)
                if inner is not None:
                    raise unsupported(
                        f"putting a {type(inner).__name__} that outlives the call into "
                        f"{held.title}", loc=self.trace.entry_loc, notes=(f"at {key!r}",),
                        cure="put a copy there")

    def check_unchosen(self, values: Any) -> None:
        """Refuse to assign the copy that stands for a container which data chooses."""
        for value in everything_in(values, held_in):
            if self.trace.local.chosen.get(id(value), (value, False))[1]:
                raise unsupported(
                    f"assigning a {type(value).__name__} of which data chooses one to what "
                    "outlives the call", loc=self.trace.entry_loc, cure="assign a copy of it")

    def from_outside(self, item: Any) -> Any:
        """A container in the item, or it itself, that was there before the call."""
        return next((x for x in everything_in(item, _appended) if isinstance(x, _CONTAINERS) and (
            type(x) is not tuple and (self.is_held(x) or is_outside(self.trace, x)))), None)


def _of_kind(places: list[OuterPlace], *kinds: type[OuterPlace]) -> list[tuple[OuterPlace, Any]]:
    return [(place, place.now()) for place in places if isinstance(place, kinds)]


def _appended(x: Any) -> Iterable[Any]:
    """The items of an argument that is perhaps appended."""
    if is_open(x):
        return [x.orelse]
    return () if not isinstance(x, _CONTAINERS) else x.values() if isinstance(x, dict) else x


def _lies_in(container: Any, key: Any) -> bool:
    if isinstance(container, dict):
        return key in container
    return type(key) is int and -len(container) <= key < len(container)


def _item_reader(read: Reader, key: Any, before: dict[int, Any]) -> Reader:
    """Reads an item; of a container in which traced values stand, the one from before."""
    def item() -> Any:
        container: Any = read()
        content: Any = before.get(id(container), container)
        return content[key]

    return item
