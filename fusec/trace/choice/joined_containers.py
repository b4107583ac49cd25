"""Lists and dicts of the program where its ways join: they stay the objects that they are.

An item of one that both sides of a branch have is a variable by itself; of one that data chooses
the program sees a copy, which is read and not changed.  In a loop a copy stands for each that a
variable holds, with parameters in the place of its numbers and arrays; after it the program has its
own object again, with the copy's items.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

import optree

from ..facts.trees import NAMESPACE
from ..guards.container_changes import items_in, may_be_held, put_content
from ..guards.places import UNBOUND, Item, Places
from ..values.trace import Trace
from .aliases import Rebound, is_shared, note_stand_in
from .choice import Choice
from .merge import flatten, same
from .records import JoinedObjects, ObjectRecord, Opening, records_in

_Place = tuple[Any, ...]  # a variable's name, and the keys to what lies in it


def holders_of(trace: Trace) -> dict[int, Any]:
    """Containers whose items are variables themselves, since a branch or loop assigned them."""
    return {id(p.scope): p.scope for p in trace.part(Places).of_kind(Item)}


class Contents:
    """The items of lists and dicts whose items are variables, at the end of a side of a branch:
    the side's assignments to them are taken back when the other one is traced."""

    def __init__(self, trace: Trace | None = None) -> None:
        holders = {} if trace is None else holders_of(trace)
        self._found = {key: copy.copy(scope) for key, scope in holders.items()}

    def of(self, x: Any) -> Any:
        """``x`` with copies in the place of these containers, which hold the items of then."""
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
    """Puts the program's own containers, and new objects of its classes, into the merged tree of
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
        if type(new) is ObjectRecord:
            return self._object(new, (a, b))
        if not type(a) is type(b) is type(new):
            return new
        joined = over_parts(self.relinked, a, b, new)
        if may_be_held(joined):
            joined = self.objects.one_for(joined, (a, b))
            self._note(joined, *(x for x in (a, b) if may_be_held(x)))
        return joined

    def _note(self, joined: Any, *sides: Any) -> None:
        """A new container stands for a side's, which other names may have as well."""
        for x in sides:
            if self.is_older(x):
                self.trace.note_chosen(joined, x)
            note_stand_in(self.trace, joined, x)

    def _held(self, a: Any, b: Any, new: Choice) -> Any:
        """The value of an optional one where it is there: of one side, or chosen of both."""
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
        if type(new) is ObjectRecord:
            return self._object(new, (None, value) if side else (value, None))
        if type(value) is not type(new):
            return new
        kept = over_parts(lambda x, y: self.kept(x, y, side), value, new)
        if may_be_held(kept) and may_be_held(value) and kept is not value:
            self._note(kept, value)
        return kept

    def _object(self, new: ObjectRecord, sides: tuple[Any, Any]) -> Any:
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
    """The last tree with ``f`` of the items at each place of all of them; in its own container."""
    *others, new = trees
    if type(new) is tuple:
        return tuple(map(f, *trees))
    if isinstance(new, tuple) and hasattr(new, "_make"):
        return new._make(map(f, *trees))
    if type(new) is Choice:
        return Choice(new.test, new.then, f(*(x.orelse for x in trees)))
    if type(new) is ObjectRecord:
        return ObjectRecord(
            new.kind, new.names, list(map(f, *(x.values for x in trees))), new.source)
    if may_be_held(new):
        for key, item in list(items_in(new)):
            new[key] = f(*(x[key] for x in others), item)
    return new


def with_objects(of: Callable[..., Any], *trees: Any) -> Any:
    """The last of trees that are alike, with ``of`` of the records of all wherever it has one."""
    if not records_in(trees[-1]):
        return trees[-1]
    whole = over_parts(partial(with_objects, of), *trees)
    return of(*trees[:-1], whole) if type(whole) is ObjectRecord else whole


def loop_leaves(holders: Container[int], x: Any) -> tuple[list[Any], Any]:
    """The leaves of a loop variable's value, and their structure.

    One of the ``holders`` is a leaf: no copy stands for it, or its items would be carried twice,
    and the older value win.
    """
    if not holders:
        return flatten(x)
    return optree.tree_flatten(x, is_leaf=lambda y: id(y) in holders, none_is_leaf=True,
                               namespace=NAMESPACE)


class KnownNames(Protocol):
    """Facts of earlier attempts about variables."""

    joined: set[str]
    parted: set[str]


class Copies:
    """The copies that stand for containers in an attempt to trace a loop."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._originals: dict[int, tuple[Any, Any]] = {}  # by their copies, which are kept alive
        self._copies: dict[int, Any] = {}
        self._content: dict[int, list[Any]] = {}  # of the copies, as an iteration finds it
        self._own: dict[_Place, int] = {}  # where each of those stands that are one's place's alone
        self._strays: set[int] = set()  # of those, what an iteration leaves at other places
        self.rebound: list[Rebound] = []  # by `restored`

    def of(self, name: str, original: Any, copied: Any, known: KnownNames) -> Any:
        """``copied``, the stand-in for a variable's value, with one copy for a container that
        several variables hold.

        Variables that did not are found to hold it (``joined``): it must not be changed; those that
        did are found not to (``parted``): each has a copy.
        """
        is_parted = name in known.parted
        tree = self._of(original, copied, name in known.joined or is_parted, is_parted)
        if is_parted:
            self._own.update(_containers((name,), tree, id))
        return tree

    def _of(self, original: Any, copied: Any, is_chosen: bool, is_parted: bool) -> Any:
        if type(copied) is not type(original) or original is copied:
            return copied
        if may_be_held(copied):
            if id(original) in self._copies and not is_parted:
                return self._copies[id(original)]
            self._copies[id(original)] = copied
            self._originals[id(copied)] = copied, original
            note_stand_in(self.trace, copied, original)
            if is_chosen:
                self.trace.note_chosen(copied)
        tree = over_parts(lambda x, y: self._of(x, y, is_chosen, is_parted), original, copied)
        if may_be_held(tree):
            self._content[id(tree)] = [item for _, item in items_in(tree)]
        return tree

    def note_strays(self, finals: dict[str, Any]) -> None:
        """Copies of one place that an iteration leaves at another: they are not the container of
        which they are copies, but in the first iteration."""
        own = {*self._own.values()}
        self._strays = {key for name, value in finals.items() if value is not UNBOUND
                        for place, key in _containers((name,), value, id)
                        if key in own and self._own.get(place) != key}

    def restored(self, before: Any, final: Any, new: Any) -> Any:
        """``new``, the loop's result where it found ``before`` and the attempt left ``final``,
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
        if original is not before or id(final) in self._strays:
            put_content(new, items)
            self.rebound.append(Rebound(new, before, original, id(final) in self._originals))
            return new
        if not all(same(item, old) for (_, item), (_, old) in zip(
                items, items_in(original), strict=True)):
            put_content(original, items)
        return original

    def changed_and_moved(self, entry: dict[str, Any], finals: dict[str, Any]) -> Any:
        """A container that the body may change under a name which it binds to another one, while
        names beside those of the loop know it; None if there is none."""
        before, after = self._places(entry), self._places(finals, self._original_if_copy)
        moved = {before[place] for place in before if after.get(place) != before[place]}
        copies = [self._copies[key] for key in moved if key in self._copies]
        if not any(map(self._is_changed, copies)):
            return None
        originals = (self._originals[id(copied)][1] for copied in copies)
        return next((x for x in originals if is_shared(self.trace, x)), None)

    def changed_for_others(self, name: str, entry: Any) -> bool:
        """Whether the body changes a container of the variable's that other names know."""
        found = (self._copies[key] for _, key in _containers((name,), entry, id)
                 if key in self._copies)
        return any(self._is_changed(copied) and is_shared(
            self.trace, self._originals[id(copied)][1]) for copied in found)

    def _is_changed(self, copied: Any) -> bool:
        items, found = self._content.get(id(copied), []), [x for _, x in items_in(copied)]
        return len(items) != len(found) or any(
            not same(a, b) for a, b in zip(items, found, strict=True))

    def chosen(self) -> list[Any]:
        """The containers of whose copies a branch may have left one for another."""
        return [original for copied, original in self._originals.values()
                if id(copied) in self.trace.local.chosen]

    def joined_by(self, entry: dict[str, Any], finals: dict[str, Any]) -> list[str]:
        """Variables that an iteration leaves with one container, and did not find with one."""
        return _separated(self._places(finals), self._places(entry))

    def parted_by(self, entry: dict[str, Any], finals: dict[str, Any]) -> list[str]:
        """Variables that an iteration may find with one container, and leave with several."""
        return _separated(self._places(entry), self._places(finals))

    def _places(
        self, values: dict[str, Any], key_of: Callable[[Any], int] | None = None
    ) -> dict[_Place, int]:
        return {place: container for name, value in values.items() if value is not UNBOUND
                for place, container in _containers((name,), value, key_of or self._original)}

    def _original_if_copy(self, container: Any) -> int:
        return self._original(container) if id(container) in self._originals else 0

    def _original(self, container: Any) -> int:
        return id(self._originals.get(id(container), (None, container))[1])


def _containers(
    place: _Place, value: Any, key_of: Callable[[Any], int]
) -> Iterator[tuple[_Place, int]]:
    """The containers in a tree, by their places."""
    if may_be_held(value):
        yield place, key_of(value)
    for key, item in _parts(value):
        yield from _containers((*place, key), item, key_of)


def _separated(places: dict[_Place, int], others: dict[_Place, int]) -> list[str]:
    """Variables with one container at these places, and several at the others."""
    groups: dict[int, list[_Place]] = {}
    for place, container in places.items():
        groups.setdefault(container, []).append(place)
    return [place[0] for group in groups.values() if len({
        others.get(place, place) for place in group}) > 1 for place in group]


def _parts(x: Any) -> Iterable[tuple[Any, Any]]:
    """The items of a tree, and their places."""
    if type(x) is Choice:
        return [("", x.orelse)]
    if type(x) is ObjectRecord:
        return x.items()
    return items_in(x) if type(x) is tuple or may_be_held(x) else ()
