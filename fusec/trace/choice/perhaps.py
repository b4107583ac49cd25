"""What branches append to lists that outlive the call: whether they do is up to data.

What a list gets is a variable of branches, a tuple.  Where the sides of one differ in it, both
append what they have `Perhaps`, and after the call those items are dropped whose side did not run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import optree

from ..facts.trees import NAMESPACE
from ..values.array import number
from ..values.container_changes import items_in, may_be_held
from .merge import flatten, is_traced, same, unflatten
from .optional import zeros_like

if TYPE_CHECKING:
    from .sides import Pairs, Side


class Perhaps:
    """An item that is appended unless ``absent``."""

    __slots__ = ("absent", "item")

    def __init__(self, absent: Any, item: Any) -> None:
        self.absent, self.item = absent, item


def _parts(x: Any) -> Any:
    return (x.absent, x.item), None


def _joined(_: Any, parts: Any) -> Any:
    return Perhaps(*parts)


_TREE: Any = Perhaps
optree.register_pytree_node(_TREE, _parts, _joined, namespace=NAMESPACE)


def present(items: list[Any]) -> list[Any]:
    """The items that are appended after all."""
    return [x.item if type(x) is Perhaps else x for x in items
            if type(x) is not Perhaps or not x.absent]


@dataclass(eq=False)
class Tail:
    """What is appended to a list, as a variable of the program: see `OuterNames`."""

    scope: Any
    start: int  # its length before the call
    subject: str
    name: str = "appended"

    @property
    def key(self) -> tuple[int, Any]:
        return id(self.scope), self.name

    @property
    def value(self) -> tuple[Any, ...]:
        return tuple(self.scope)[self.start:]

    @value.setter
    def value(self, value: tuple[Any, ...]) -> None:
        while len(self.scope) > self.start:
            self.scope.pop()
        self.scope.extend(value)


def merged_tails(
    test: Any, tails: tuple[tuple[Any, ...], tuple[Any, ...]], sides: Sequence[Side],
    pairs: Pairs,
) -> tuple[Any, ...]:
    """What is appended after a branch, by what its sides appended."""
    count = 0
    while all(len(tail) > count for tail in tails) and same(tails[0][count], tails[1][count]):
        count += 1
    trace = pairs.trace
    absent = number(trace, trace.emit("LogicalNot", test)), number(trace, test)
    found = list(tails[0][:count])
    for k in (0, 1):
        def leaf(here: Any, elsewhere: Any, k: int = k) -> Any:
            return pairs.leaf(elsewhere, here) if k else pairs.leaf(here, elsewhere)

        for item in tails[k][count:]:
            missing: Any = absent[k]
            if type(item) is Perhaps:
                missing, item = leaf(item.absent, True), item.item
            found.append(Perhaps(missing, _exported(item, sides[k], leaf)))
    return tuple(found)


def _exported(item: Any, side: Side, leaf: Callable[[Any, Any], Any]) -> Any:
    """The item with what its side computed among the outputs; containers that were there before
    stay what they are."""
    hooks: Any = side.region.trace.hooks
    if type(item) is tuple:
        return tuple(_exported(x, side, leaf) for x in item)
    if may_be_held(item):
        if hooks.effects.was_there(item):
            return item
        made = copy.copy(item)
        for key, part in items_in(item):
            made[key] = _exported(part, side, leaf)
        return made
    leaves, structure = flatten(item)
    return unflatten(structure, [
        leaf(x, zeros_like(side.region.trace, x)) if is_traced(x) and not side.region.is_outer(
            x.origin) else x for x in leaves])


__all__ = ["Perhaps", "Tail", "merged_tails", "present"]
