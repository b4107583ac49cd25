"""What branches append to lists that outlive the call: whether they do is up to data.

What a list gets is a variable of branches, a tuple.  Where the sides of one differ in it, both
append what they have `Perhaps`, and after the call those items are dropped whose side did not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import optree

from ..facts.trees import NAMESPACE


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


__all__ = ["Perhaps", "Tail", "present"]
