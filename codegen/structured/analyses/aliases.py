"""Which memories of a program may have each other's addresses: those that are exchanged, or pointed
to.

A gradient keeps a hundred arrays of one size, each in a place of its own: to ask of each if it is
where any other one belongs was most of the loop's code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..memory import Memory
from ..statements import DefineFunction, Exchange, Point, PointInto, blocks_of


class Aliases:
    """`class_of` gives equal keys for memories that may be at the same address."""

    def __init__(self, statements: Iterable[Any]) -> None:
        self._above: dict[Any, Any] = {}
        self._moved: set[Any] = set()
        self._has_functions = False  # whose parameters are memories of any caller's
        self._note(statements)

    def _note(self, statements: Iterable[Any]) -> None:
        for x in statements:
            self._has_functions |= isinstance(x, DefineFunction)
            for one, other in _met(x):
                self._moved |= {_key(one), _key(other)}
                self._above[self.class_of(one)] = self.class_of(other)
            for block in blocks_of(x):
                self._note(block)

    def may_meet(self, one: Memory, other: Memory) -> bool:
        return self._has_functions or self.class_of(one) == self.class_of(other)

    def is_moved(self, memory: Memory) -> bool:
        """Whether its address may change, or become another's."""
        return _key(memory) in self._moved

    def class_of(self, memory: Memory) -> Any:
        key = _key(memory)
        while (above := self._above.get(key, key)) != key:
            key = above
        return key


def _key(memory: Memory) -> Any:
    return ("target", memory.position) if memory.origin == "target" else memory.number


def _met(statement: Any) -> Iterable[tuple[Memory, Memory]]:
    if isinstance(statement, Exchange):
        return statement.pairs
    if isinstance(statement, Point):
        return [(statement.alias, statement.at)]
    if isinstance(statement, PointInto):
        return [(statement.alias, statement.orelse), (statement.alias, statement.place.memory)]
    return ()
