"""What one call at a time writes to: scalars of a plan, as words of one array seen as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from fusec.codegen.schedule import words_of

T = TypeVar("T")


def idle_or_new(idle: list[T], make: Callable[[], T]) -> T:
    """One that no other call uses; who takes it gives it back.  To ask first would be a race."""
    try:
        return idle.pop()
    except IndexError:
        return make()


class Cells:
    """The words, and a view of those of each scalar, made when it is first used."""

    def __init__(self, count: int) -> None:
        self.words = np.zeros(max(count, 1), np.int64)
        self._views: dict[tuple[int, np.dtype], np.ndarray] = {}

    def view(self, number: int, dtype: np.dtype) -> np.ndarray:
        """An array of one element: the scalar."""
        number_view = self._views.get((number, dtype))
        if number_view is None:
            words = self.words[number: number + words_of(dtype)].view(np.uint8)
            number_view = self._views[number, dtype] = words[: dtype.itemsize].view(dtype)
        return number_view
