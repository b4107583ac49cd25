"""`__hash__` and `__eq__` of the user's classes, which C calls for sets, dicts and searches.

They read attributes of their objects, so a trace holds as long as these stay as they are.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.arange(3.0)
VALUES = ((1, 3, 5), (7, 5, 7), (2, 2, 2), (9, 8, 1), (4, 5, 6))


class Own:
    def __init__(self, v: int) -> None:
        self.v = v

    def __hash__(self) -> int:
        return hash(self.v)

    def __eq__(self, other: object) -> bool:
        return self.v == other.v  # type: ignore[attr-defined]

    def __lt__(self, other: Any) -> bool:
        return self.v < other.v


class Slotted(Own):
    __slots__ = ("v",)


@dataclasses.dataclass(unsafe_hash=True, order=True)
class Generated:
    v: int


class Inside:
    """Its number lies in a list."""

    def __init__(self, v: int) -> None:
        self.held = [v]

    v = property(lambda self: self.held[0], lambda self, v: self.held.__setitem__(0, v))

    def __hash__(self) -> int:
        return hash(self.held[0])

    def __eq__(self, other: object) -> bool:
        return self.held == other.held  # type: ignore[attr-defined]

    def __lt__(self, other: Any) -> bool:
        return self.held < other.held


def updated(items: list[Any]) -> int:
    kept: set[Any] = set()
    kept.update(items)
    return len(kept)


def removed(items: list[Any]) -> int:
    copied = list(items)
    copied.remove(items[1])
    return copied[0].v + 10 * copied[1].v


PROGRAMS: dict[str, Callable[[list[Any]], Any]] = {
    "Counter": lambda items: len(collections.Counter(items)),
    "fromkeys": lambda items: len(dict.fromkeys(items)),
    "display": lambda items: len({*items}),
    "comprehension": lambda items: len({q for q in items}),  # noqa: C416
    "dict": lambda items: len({q: 1 for q in items}),  # noqa: C420
    "OrderedDict": lambda items: len(collections.OrderedDict.fromkeys(items)),
    "update": updated,
    "lookup": lambda items: {q: i for i, q in enumerate(items)}[items[0]],
    "tuple key": lambda items: len({(q, 1) for q in items}),
    "union": lambda items: len({items[0]} | {items[1]}),
    "isdisjoint": lambda items: {items[0]}.isdisjoint([items[1]]),
    "count": lambda items: items.count(items[0]),
    "index": lambda items: items.index(items[1]),
    "remove": removed,
    "deque": lambda items: collections.deque(items).index(items[1]),
    "countOf": lambda items: operator.countOf(items, items[0]),
    "groupby": lambda items: len(list(itertools.groupby(items))),
    "bisect": lambda items: bisect.bisect_left(items, items[1]),
    "least tuple": lambda items: min([(q, 1) for q in items])[0].v,
}


@pytest.mark.parametrize("kind", [Own, Slotted, Generated, Inside])
@pytest.mark.parametrize("name", PROGRAMS)
def test_keys_follow_the_attributes_that_they_are_made_of(name: str, kind: type) -> None:
    program, items = PROGRAMS[name], [kind(0) for _ in range(3)]
    fast = fusec.jit(lambda x: x * program(items))
    for values in VALUES:
        for item, value in zip(items, values, strict=True):
            item.v = value
        for _ in range(2):
            np.testing.assert_array_equal(fast(X), X * program(items))


def test_a_hash_of_what_the_program_assigns_is_refused() -> None:
    item = Own(1)

    def program(x: np.ndarray) -> np.ndarray:
        item.v = item.v + 1
        return x * len({item, Own(2)})

    with pytest.raises(fusec.UnsupportedError, match="the attribute 'v', which the program assig"):
        fusec.jit(program)(X)
