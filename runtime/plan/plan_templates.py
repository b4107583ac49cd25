"""Plans of the native launcher that differ in sizes alone: one table of words, made once.

`pack_plan` makes a table for each list of a plan, at an address of its own.  A template has all of
them, and the argument blocks of the kernels, in one table; a plan is a copy in which addresses
inside the table are moved, and words that sizes decide are filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..launching.launch_spec import PlanSpec
from ..launching.packing import Packer, plan_record


class Inside(int):
    """The byte offset of a word of the table, for its address."""


_FIRST = -(1 << 40)  # no size, no stride and no address


class Open(int):
    """A word that each plan fills in, numbered down in the order of their values."""


class OpenInt(Open):
    """Such a word for a Python int that an argument must be."""


class Opened:
    """Numbers such words.  ``fills``: functions of a plan that give some of them, in order."""

    def __init__(self) -> None:
        self.count = 0
        self.fills: list[Callable[[Any], Iterable[int]]] = []

    def one(self, fill: Callable[[Any], int] | None = None) -> Any:
        return self.some(1, None if fill is None else lambda plan: (fill(plan),))[0]

    def some(
        self, count: int, fill: Callable[[Any], Iterable[int]] | None = None
    ) -> tuple[Any, ...]:
        first, self.count = _FIRST - self.count, self.count + count
        if fill is not None:
            self.fills.append(fill)
        return tuple(Open(first - number) for number in range(count))


class TemplatePacker(Packer):
    """Puts every table into one."""

    def __init__(self) -> None:
        super().__init__()
        self.flat: list[int] = []

    def words(self, values: Sequence[int]) -> int:
        at = len(self.flat)
        self.flat.extend(values)
        return Inside(8 * at)

    def object(self, value: object) -> int:
        """The address of an object; of one that each plan has by itself an open word."""
        return value if type(value) is Open else super().object(value)


class PlanTemplate:
    """``starts``: the words where the blocks begin; ``plan``: where the plan's own do."""

    def __init__(
        self, blocks: Iterable[np.ndarray], make: Callable[[list[int], Opened], PlanSpec]
    ) -> None:
        packer, opened = TemplatePacker(), Opened()
        self.starts = [packer.words(block.tolist()) // 8 for block in blocks]
        self.spec = make(self.starts, opened)
        self.plan = packer.words(plan_record(packer, self.spec)) // 8
        self._kept = packer.kept
        self._words = np.array(packer.flat, np.int64)
        self._inside = np.array(
            [at for at, word in enumerate(packer.flat) if type(word) is Inside], np.intp)
        self._open = np.array(
            [at for at, word in enumerate(packer.flat) if isinstance(word, Open)], np.intp)
        self._numbers = np.array([_FIRST - packer.flat[at] for at in self._open], np.intp)
        self._fills = opened.fills

    def table(self, values: Sequence[int]) -> tuple[np.ndarray, int]:
        """A table with these values of its open words, and where it lies."""
        table = self._words.copy()
        address = int(table.ctypes.data)
        table[self._inside] += address
        table[self._open] = np.array(values, np.int64)[self._numbers]
        return table, address

    def table_of(self, plan: Any) -> tuple[np.ndarray, int]:
        """The table of a plan that all open words follow from."""
        return self.table([word for fill in self._fills for word in fill(plan)])



__all__ = ["Inside", "OpenInt", "Opened", "PlanTemplate"]
