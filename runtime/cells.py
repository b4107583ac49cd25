"""Scalars of a plan: words of one array, seen as numbers of their dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .call_spec import words_of


class Cells:
    """The words, and a view of those of each scalar, made when it is first used."""

    def __init__(self, count: int) -> None:
        self.words = np.zeros(max(count, 1), np.int64)
        self._views: dict[tuple[int, np.dtype], np.ndarray] = {}

    def write(self, number: int, dtype: np.dtype, value: Any) -> None:
        """Put a scalar's bits into its words; what it leaves of them is zero."""
        if dtype.itemsize < 8:
            self.words[number] = 0
        self.view(number, dtype)[0] = value

    def read(self, number: int, dtype: np.dtype) -> np.generic:
        """The NumPy scalar."""
        found: np.generic = self.view(number, dtype)[0]
        return found

    def view(self, number: int, dtype: np.dtype) -> np.ndarray:
        """An array of one element: the scalar."""
        found = self._views.get((number, dtype))
        if found is None:
            words = self.words[number: number + words_of(dtype)].view(np.uint8)
            found = self._views[number, dtype] = words[: dtype.itemsize].view(dtype)
        return found
