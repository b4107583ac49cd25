"""Lists and dicts of the program where its ways join: they stay the objects that they are.

What lies in one that both sides of a branch have is a variable by itself; of one that data chooses
the program sees a copy, which is read and not changed.  In a loop a copy stands for each that a
variable holds, with parameters in the place of its numbers and arrays; after it the program has its
own object again, with what is in the copy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Any

import optree

from ..facts.trees import NAMESPACE
from ..guards.container_changes import items_in, may_be_held, put_content
from ..guards.places import UNBOUND, Item, Places
from ..guards.side_effects import is_outside
from ..values.trace import Trace
from .choice import Choice
from .merge import flatten, same
from .records import JoinedObjects, Opening, Record, records_in

_Place = tuple[Any, ...]  # a variable's name, and the keys to what lies in it


def holders_of(trace: Trace) -> dict[int, Any]:
    """Containers whose items are variables themselves, since a branch or loop assigned them."""
    return {id(p.scope): p.scope for p in trace.part(Places).of_kind(Item)}


class Contents:
    """What is in the lists and dicts whose items are variables, at the end of a side of a branch:
    what the side assigned to them is taken back when the other one is traced."""

    def __init__(self, trace: Trace | None = None) -> None:
        holders = {} if trace is None else holders_of(trace)
        self._found = {key: copy.copy(scope) for key, scope in holders.items()}

    def of(self, x: Any) -> Any:
        """``x`` with copies in the place of these containers, which hold what was in them then."""
        if not self._found:
            return x
        return optree.tree_map(self._copied, x, is_leaf=may_be_held, none_is_leaf=True,
                               namespace=NAMESPACE)

    def _copied(self, x: Any) -> Any:
        if not may_be_held(x):
            return x
        content = self._found.get(id(x), x)
        items = [(key, self.of(item)) for key, item in items_in(content)]
        if content is x and all(new is x[key] for key, new in items):
            return x
        copied = copy.copy(content)
        put_content(copied, items)
        return copied


class Joining:
    """Puts the program's own containers, and new objects of its classes, into what was merged of
    two sides."""

    def __init__(
        self, openings: tuple[Opening, Opening], is_older: Callable[[Any], bool]
    ) -> None:
        self.openings, self.is_older = openings, is_older
        self.trace = openings[0].trace
        self.objects = JoinedObjects(openings)

    def relinked(self, a: Any, b: Any, new: Any) -> Any:
        """``new``, the merger of ``a`` and ``b``, with the containers that are in both at their
        place."""
        if a is b and may_be_held(a):
            return a
        if type(new) is Choice:
            return Choice(new.test, new.then, self._held(a, b, new))
        if type(new) is Record:
            return self._object(new, (a, b))
        if not type(a) is type(b) is type(new):
            return new
        older = [x for x in (a, b) if may_be_held(x) and self.is_older(x)]
        joined = over_parts(self.relinked, a, b, new)
        if older:
            self.trace.note_chosen(joined, *older)
        return joined

    def _held(self, a: Any, b: Any, new: Choice) -> Any:
        """What an optional value is where it is there: of one side, or chosen of both."""
        parts = [x.orelse if type(x) is Choice else x for x in (a, b)]
        there = [side for side, x in enumerate(parts) if x is not None and x is not UNBOUND]
        if len(there) == 2:
            return self.relinked(parts[0], parts[1], new.orelse)
        return self.kept(parts[there[0]], new.orelse, there[0]) if there else new.orelse

    def kept(self, value: Any, new: Any, side: int) -> Any:
        """``new``, a copy of ``value`` of one side, with the containers that were there before
        themselves."""
        if may_be_held(value) and self.is_older(value):
            return value
        if type(new) is Record:
            return self._object(new, (None, value) if side else (value, None))
        if type(value) is not type(new):
            return new
        return over_parts(lambda x, y: self.kept(x, y, side), value, new)

    def _object(self, new: Record, sides: tuple[Any, Any]) -> Any:
        """The object for one of each side, or of one of them."""
        there = [side for side, x in enumerate(sides) if x is not None]
        taken = [self.openings[side].record(sides[side]).in_order(new.names) for side in there]
        inner = self
        if any(self.openings[side].is_older(sides[side]) for side in there):
            inner = copy.copy(self)
            inner.is_older = lambda x: True  # what lies in an object may be as old as the object
        if len(there) == 2:
            whole = over_parts(inner.relinked, *taken, new)
        else:
            whole = over_parts(lambda x, y: inner.kept(x, y, there[0]), *taken, new)
        return self.objects.of(whole, sides)


def over_parts(f: Callable[..., Any], *trees: Any) -> Any:
    """The last tree with ``f`` of what lies at each place of all of them; in its own container."""
    *others, new = trees
    if type(new) is tuple:
        return tuple(map(f, *trees))
    if isinstance(new, tuple) and hasattr(new, "_make"):
        return new._make(map(f, *trees))
    if type(new) is Choice:
        return Choice(new.test, new.then, f(*(x.orelse for x in trees)))
    if type(new) is Record:
        return Record(new.kind, new.names, list(map(f, *(x.values for x in trees))), new.source)
    if may_be_held(new):
        for key, item in list(items_in(new)):
            new[key] = f(*(x[key] for x in others), item)
    return new


def with_objects(of: Callable[..., Any], *trees: Any) -> Any:
    """The last of trees that are alike, with ``of`` of the records of all wherever it has one."""
    if not records_in(trees[-1]):
        return trees[-1]
    whole = over_parts(partial(with_objects, of), *trees)
    return of(*trees[:-1], whole) if type(whole) is Record else whole


def loop_leaves(holders: Container[int], x: Any) -> tuple[list[Any], Any]:
    """The leaves of what a variable of a loop holds, and their structure.

    One of the ``holders`` is a leaf: no copy stands for it, or its items would be carried twice,
    and the older value win.
    """
    if not holders:
        return flatten(x)
    return optree.tree_flatten(x, is_leaf=lambda y: id(y) in holders, none_is_leaf=True,
                               namespace=NAMESPACE)


class Copies:
    """The copies that stand for containers in an attempt to trace a loop."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._originals: dict[int, tuple[Any, Any]] = {}  # by their copies, which are kept alive
        self._copies: dict[int, Any] = {}

    def of(self, original: Any, copied: Any, is_chosen: bool) -> Any:
        """``copied``, of a tree, with one copy for a container that several variables hold.

        ``is_chosen``: variables that did not are found to hold it, so that it must not be changed.
        """
        if type(copied) is not type(original) or original is copied:
            return copied
        if may_be_held(copied):
            if id(original) in self._copies:
                return self._copies[id(original)]
            self._copies[id(original)] = copied
            self._originals[id(copied)] = copied, original
            if is_chosen:
                self.trace.note_chosen(copied)
        return over_parts(lambda x, y: self.of(x, y, is_chosen), original, copied)

    def restored(self, before: Any, final: Any, new: Any) -> Any:
        """``new``, what the loop leaves where it found ``before`` and the attempt left ``final``,
        with the program's own containers."""
        if not type(before) is type(final) is type(new):
            return new
        if not may_be_held(new):
            return over_parts(self.restored, before, final, new)
        if not len(before) == len(final) == len(new):
            return new
        if final is before:
            return final
        items = [(key, self.restored(before[key], final[key], item))
                 for key, item in items_in(new)]
        original = self._originals.get(id(final), (None, final))[1]
        if original is not before:
            put_content(new, items)
            self._note_older(new, original)
            return new
        if not all(same(item, old) for (_, item), (_, old) in zip(
                items, items_in(original), strict=True)):
            put_content(original, items)
        return original

    def _note_older(self, new: Any, final: Any) -> None:
        """Where the loop ran, the program has another container from outside, or one that a branch
        chose.  Lists of its own that change places are mostly known by these names alone."""
        if id(final) in self.trace.local.chosen or is_outside(self.trace, final):
            self.trace.note_chosen(new, final)

    def joined_by(self, entry: dict[str, Any], finals: dict[str, Any]) -> list[str]:
        """Variables that an iteration leaves with one container, and did not find with one."""
        before, after = self._places(entry), self._places(finals)
        groups: dict[int, list[_Place]] = {}
        for place, container in after.items():
            groups.setdefault(container, []).append(place)
        return [place[0] for places in groups.values() if len({
            before.get(place, place) for place in places}) > 1 for place in places]

    def _places(self, values: dict[str, Any]) -> dict[_Place, int]:
        return {place: container for name, value in values.items() if value is not UNBOUND
                for place, container in self._containers((name,), value)}

    def _containers(self, place: _Place, value: Any) -> Iterator[tuple[_Place, int]]:
        if may_be_held(value):
            yield place, id(self._originals.get(id(value), (None, value))[1])
        for key, item in _parts(value):
            yield from self._containers((*place, key), item)


def _parts(x: Any) -> Iterable[tuple[Any, Any]]:
    """What lies in a tree, and where."""
    if type(x) is Choice:
        return [("", x.orelse)]
    if type(x) is Record:
        return x.items()
    return items_in(x) if type(x) is tuple or may_be_held(x) else ()
