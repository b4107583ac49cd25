"""Results that NumPy makes arrays of: of the function of each row in ``np.apply_along_axis``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

_INSIDE = ".<locals>."
_PART = "_fusec_"  # begins the names of the parts that a converted function's statements are


class RowResults:
    """Of a trace: which function of rows is being called.

    Its ways may return an array and a tuple of numbers: NumPy makes arrays of both.
    """

    def __init__(self) -> None:
        self._called: list[str] = []

    @contextmanager
    def of(self, function: Callable[..., Any]) -> Iterator[None]:
        self._called.append(getattr(function, "__qualname__", ""))
        try:
            yield
        finally:
            self._called.pop()

    def has(self, part: CodeType) -> bool:
        """Whether a side of a branch that returns does so from that function itself."""
        start = f"{self._called[-1]}{_INSIDE}" if self._called else ""
        return bool(start) and part.co_qualname.startswith(start) and all(
            name.startswith(_PART) for name in part.co_qualname[len(start):].split(_INSIDE))
