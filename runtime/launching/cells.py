"""The scalars of a plan, which one call at a time uses: words of an array, viewed as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from fusec.codegen.plan.call_plan import words_of

T = TypeVar("T")


def idle_or_new(idle: list[T], make: Callable[[], T]) -> T:
    """An idle item, else a new one; the caller appends it to ``idle`` again when it is done.

    No test whether ``idle`` is empty: another thread might pop between the test and the pop.
    """
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
            number_view = self._views[number, dtype] = number_at(self.words, number, dtype)
        return number_view


def number_at(words: np.ndarray, at: int, dtype: np.dtype) -> np.ndarray:
    """The word there, or two of them, as an array of one number."""
    own = words[at: at + words_of(dtype)]
    return own.view(dtype) if dtype.itemsize >= 8 else (
        own.view(np.uint8)[: dtype.itemsize].view(dtype))
