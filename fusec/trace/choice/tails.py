"""What branches append to lists that outlive the call: whether they do is up to data.

What a list gets is a variable of branches, a tuple.  Where the sides of one differ in it, both
append a `Choice` of nothing and what they have; after the call the items of the other side are
dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .choice import UNBOUND, Choice


def present(items: list[Any]) -> list[Any]:
    """The items that are appended after all."""
    return [x.orelse if is_open(x) else x for x in items if not (is_open(x) and x.test)]


def is_open(item: Any) -> bool:
    """Whether data decides that it is appended."""
    return type(item) is Choice and item.then is UNBOUND


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
