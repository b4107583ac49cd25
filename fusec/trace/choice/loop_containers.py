"""Lists and dicts that variables of a loop hold.

In the loop a copy stands for each, with parameters in the place of its numbers and arrays.  After
it the program has its own object again, with what is in the copy.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import optree

from ..facts.trees import NAMESPACE
from ..guards.container_changes import items_in, may_be_held, put_content
from ..guards.side_effects import is_outside
from ..values.trace import Trace
from .merge import flatten, same
from .optional import UNBOUND, Optional
from .perhaps import Tail

_Place = tuple[Any, ...]  # a variable's name, and the keys to what lies in it


def holders_of(trace: Trace) -> dict[int, Any]:
    """Containers whose items are variables themselves, since a branch or loop assigned them."""
    return {id(p.scope): p.scope for p in trace.world.outer_names.places.values()
            if may_be_held(p.scope) and type(p) is not Tail}


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

    def of(self, original: Any, copy: Any, is_chosen: bool) -> Any:
        """``copy`` of a tree, with one copy for a container that several variables hold.

        ``is_chosen``: variables that did not are found to hold it, so that it must not be changed.
        """
        if type(copy) is tuple and type(original) is tuple:
            return tuple(self.of(a, b, is_chosen) for a, b in zip(original, copy, strict=True))
        if type(copy) is Optional and type(original) is Optional:
            return Optional(
                copy.absent, self.of(original.held, copy.held, is_chosen), copy.name)
        if not may_be_held(copy) or original is copy:
            return copy
        if id(original) in self._copies:
            return self._copies[id(original)]
        self._copies[id(original)] = copy
        self._originals[id(copy)] = copy, original
        if is_chosen:
            self.trace.note_chosen(copy)
        for key, item in list(items_in(copy)):
            copy[key] = self.of(original[key], item, is_chosen)
        return copy

    def restored(self, before: Any, final: Any, new: Any) -> Any:
        """``new``, what the loop leaves where it found ``before`` and the attempt left ``final``,
        with the program's own containers."""
        if not type(before) is type(final) is type(new):
            return new
        if type(new) is tuple:
            return tuple(map(self.restored, before, final, new))
        if type(new) is Optional:
            return Optional(
                new.absent, self.restored(before.held, final.held, new.held), new.name)
        if not may_be_held(new) or not len(before) == len(final) == len(new):
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
        for place, found in after.items():
            groups.setdefault(found, []).append(place)
        return [place[0] for places in groups.values() if len({
            before.get(place, place) for place in places}) > 1 for place in places]

    def _places(self, values: dict[str, Any]) -> dict[_Place, int]:
        return {place: found for name, value in values.items() if value is not UNBOUND
                for place, found in self._containers((name,), value)}

    def _containers(self, place: _Place, value: Any) -> Iterator[tuple[_Place, int]]:
        if may_be_held(value):
            yield place, id(self._originals.get(id(value), (None, value))[1])
        elif type(value) is Optional:
            yield from self._containers((*place, ""), value.held)
            return
        elif type(value) is not tuple:
            return
        for key, item in enumerate(value) if type(value) is tuple else items_in(value):
            yield from self._containers((*place, key), item)


__all__ = ["Copies", "holders_of", "loop_leaves"]
