"""Plans of the native launcher that differ in sizes alone: one table of words, made once.

`pack_plan` makes a table for each list of a plan, at an address of its own.  A template has all of
them, and the argument blocks of the kernels, in one table; a plan is a copy in which addresses
inside the table are moved, and words that sizes decide are filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .launch_spec import PlanSpec
from .packing import Packer, plan_record


class Inside(int):
    """The byte offset of a word of the table, for its address."""


class _Open(int):
    """A word that each plan fills in, numbered in the order of their values."""


class Opened:
    """Numbers such words."""

    def __init__(self) -> None:
        self.count = 0

    def one(self) -> Any:
        self.count += 1
        return _Open(self.count - 1)

    def some(self, count: int) -> tuple[Any, ...]:
        return tuple(self.one() for _ in range(count))


class TemplatePacker(Packer):
    """Puts every table into one."""

    def __init__(self) -> None:
        super().__init__()
        self.flat: list[int] = []

    def words(self, values: Sequence[int]) -> int:
        at = len(self.flat)
        self.flat.extend(values)
        return Inside(8 * at)


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
        places = {int(word): at for at, word in enumerate(packer.flat) if type(word) is _Open}
        self._open = np.array([places[number] for number in range(opened.count)], np.intp)

    def table(self, values: Sequence[int]) -> tuple[np.ndarray, int]:
        """A table with these values of its open words, and where it lies."""
        table = self._words.copy()
        address = int(table.ctypes.data)
        table[self._inside] += address
        table[self._open] = values
        return table, address


__all__ = ["Inside", "Opened", "PlanTemplate"]
