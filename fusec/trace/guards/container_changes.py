"""Changes that a trace makes to the program's containers, taken back where the trace is given up.

A trace may begin anew, with names known that it took for constants or with ints that must be
known; changes of the first attempt would then be made twice.
"""

from __future__ import annotations

import array
import copy
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from fusec.ir import Loc

KINDS = (list, deque, dict, OrderedDict, defaultdict, Counter)
CONTAINERS = (list, dict, set, bytearray, deque, array.array)


def may_be_held(container: Any) -> bool:
    """Whether it is a container that can be changed after the call: no namespace of a module."""
    return type(container) in KINDS and not (
        isinstance(container, dict) and "__builtins__" in container)


def items_in(container: Any) -> Iterator[tuple[Any, Any]]:
    """Keys or positions, and the items there."""
    return iter(container.items() if isinstance(container, dict) else enumerate(container))


def held_in(x: Any) -> Iterable[Any]:
    """The items of a tuple, or of a container that may be held."""
    return x if type(x) is tuple else [v for _, v in items_in(x)] if may_be_held(x) else ()


def put_content(container: Any, items: list[tuple[Any, Any]]) -> None:
    """Make these its keys and items, in this order."""
    if isinstance(container, list):
        container[:] = [item for _, item in items]
        return
    if not isinstance(container, dict) or (
            list(container) != [key for key, _ in items[:len(container)]]):
        container.clear()
    if not isinstance(container, dict):
        container.extend(item for _, item in items)
        return
    for key, item in items:
        container[key] = item


class ContainerChanges:
    """The contents of containers before the trace changed them first; ``with`` it, an exception
    takes the changes back."""

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[int, tuple[Any, Any]] = {}
        self._locs: dict[int, Loc | None] = {}  # of the latest changes

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is not None:
            self.take_back()

    def note(self, container: Any, loc: Loc | None = None) -> None:
        """It is about to be changed."""
        self.count += 1
        self._locs[id(container)] = loc
        if id(container) not in self._before and isinstance(container, CONTAINERS):
            self._before[id(container)] = container, copy.copy(container)

    def changed(self) -> list[tuple[Any, Loc | None]]:
        """The containers, with where each was changed last."""
        return [(c, self._locs.get(key)) for key, (c, _) in self._before.items()]

    def content_before(self, container: Any) -> Any:
        """The items of a container, those before it was changed if it was."""
        return self._before.get(id(container), (None, container))[1]

    def forget(self) -> None:
        """The changes stand."""
        self._before.clear()

    def take_back(self) -> None:
        """Every container holds its old items again."""
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
