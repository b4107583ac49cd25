"""Changes that a trace makes to the program's containers, taken back where the trace is given up.

A trace may begin anew, with names known that it took for constants or with ints that must be
known; what the first attempt changed would then be changed twice.
"""

from __future__ import annotations

import array
import copy
from collections import deque
from typing import Any

from fusec.ir import Loc

CONTAINERS = (list, dict, set, bytearray, deque, array.array)


class ContainerChanges:
    """What containers held before the trace changed them first; ``with`` it, an exception takes
    the changes back."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Any, Any]] = {}
        self._locs: dict[int, Loc | None] = {}  # of the latest changes
        self.warned: set[int] = set()  # containers in which values of the graph may stay

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is not None:
            self.take_back()

    def note(self, container: Any, loc: Loc | None = None) -> None:
        """It is about to be changed."""
        self._locs[id(container)] = loc
        if id(container) not in self._before and isinstance(container, CONTAINERS):
            self._before[id(container)] = container, copy.copy(container)

    def changed(self) -> list[tuple[Any, Loc | None]]:
        """The containers, with where each was changed last, less those warned of."""
        return [(c, self._locs.get(key)) for key, (c, _) in self._before.items()
                if key not in self.warned]

    def forget(self) -> None:
        """The changes stand."""
        self._before.clear()

    def take_back(self) -> None:
        """Every container holds again what it held."""
        for container, before in self._before.values():
            if isinstance(container, (list, bytearray, array.array)):
                container[:] = before
                continue
            container.clear()
            if isinstance(container, deque):
                container.extend(before)
            else:
                container.update(before)
        self.forget()


__all__ = ["CONTAINERS", "ContainerChanges"]
