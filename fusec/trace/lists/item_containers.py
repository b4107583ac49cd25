"""Lists and dicts in the items that a loop of the graph appends to lists, or reads there.

The items after the loop have new ones, so each must be of one item alone, and stay as it is:
otherwise Python runs the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fusec.errors import ConcreteValueError

from ..choice.aliases import is_reached
from ..guards.places import UNBOUND
from ..values.trace import Trace


class ItemContainers:
    """Those of one attempt; ``held``: what its body finds, ``entry``: the variables it binds."""

    def __init__(self, trace: Trace, held: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
        self.trace, self.entry = trace, entry
        self.around = [x for name, x in held.items() if name not in entry]
        self.seen: dict[int, tuple[Any, list[Any]]] = {}

    def note(self, item: Any, is_read: bool = False) -> None:
        """An item that is appended, or read: then all that is in it is new."""
        for one in _containers(item):
            if id(one) in self.seen or (not is_read and is_reached(one, self.around)):
                raise self._refused("has another name")
            self.seen[id(one)] = one, _contents(one)

    def check(self, finals: Mapping[str, Any], needed: Iterable[str]) -> None:
        """Raise where the end of the iteration shows one that is changed, or a variable's too."""
        for one, before in self.seen.values():
            now = _contents(one)
            if len(now) != len(before) or any(
                    a is not b for a, b in zip(now, before, strict=True)):
                raise self._refused("is changed")
            if id(one) in self.trace.local.chosen:
                raise self._refused("may be that of another name")
        kept = {*needed, *(name for name, x in self.entry.items() if x is not UNBOUND)}
        if self.seen and any(id(one) in self.seen for name in kept
                             for one in _containers(finals.get(name))):
            raise self._refused("is a variable's after the iteration")

    def _refused(self, what: str) -> ConcreteValueError:
        return ConcreteValueError(
            f"a list or dict that is an item of a list {what} in the loop that appends the items",
            loc=self.trace.loc, cure="append a copy: items.append(row.copy())")


def _containers(x: Any) -> Iterator[Any]:
    """The lists and dicts in a value, it too."""
    if type(x) in (list, dict):
        yield x
    if type(x) is dict:
        x = [*x.values()]
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _containers(item)


def _contents(x: Any) -> list[Any]:
    return [*x, *x.values()] if type(x) is dict else [*x]
