"""Arrays from outside the arguments, in attributes and outer variables, that may share memory.

Each is an input of its own; where one of two is written, the other must not show it.  That they are
apart is checked at each call: a call in which they are one array is traced again, as one input, and
views of one array as views of an input that is all of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.errors import unsupported

from .array import TracedArray
from .assigned_names import AssignedLater
from .guards import Guard
from .own_arrays import root_of, viewing

if TYPE_CHECKING:
    from .context import Trace

_MOST_WORK: Any = 1000  # of deciding whether views of one array have elements in common


class ApartGuard(Guard):
    """Two places whose arrays must share no memory."""

    def holds(self) -> bool:
        return not _overlap(*self.read())

    @property
    def value(self) -> str:
        return "memory of its own"


def apart_guards(trace: Trace, written: set[int]) -> Iterator[Guard]:
    """For arrays of which one is written (by input position); raises where they overlap now."""
    first = len(trace.inputs) - len(trace.captured)
    held = [(i, c) for i, c in enumerate(trace.captured, first) if _is_array(c)]
    for (i, one), (j, other) in itertools.combinations(held, 2):
        if i not in written and j not in written:
            continue
        if _overlap(_held(one), _held(other)):
            root = root_of(_held(one))
            if root is root_of(_held(other)) and id(root) not in trace.assigned_names.roots:
                raise AssignedLater(root=root)
            raise unsupported(
                f"writing to {trace.outside[i]} or {trace.outside[j]}, which share memory",
                loc=trace.entry_loc, cure="take the view of the one inside the function")
        if callable(one) or callable(other):
            names = f"{trace.outside[i]} and {trace.outside[j]}"
            yield ApartGuard(names, names, _both(one, other))


class ViewGuard(Guard):
    """An array that must still be the same part of the array which others are views of."""

    def refresh(self) -> None:
        self.expected, self.is_fixed = None, False
        self.mark = _place_in(*self.read())

    def holds(self) -> bool:
        return bool(_place_in(*self.read()) == self.mark)

    @property
    def value(self) -> str:
        return "a view of the same array as others"


def _place_in(x: Any, root: Any) -> Any:
    if type(x) is not np.ndarray or root_of(x) is not root:
        return None
    start = x.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return start, x.shape, x.strides, x.dtype, root.shape, root.strides, root.dtype


def captured(
    trace: Trace, x: np.ndarray, reader: Callable[[], Any] | None = None, title: str = ""
) -> TracedArray:
    """An array from outside as an input; one of several views of an array as a view of that."""
    root = root_of(x)
    if title:
        trace.titles.setdefault(id(x), title)
    if id(root) not in trace.assigned_names.roots or id(root) in trace.local_arrays:
        return TracedArray(trace, trace.capture(x))
    found = viewing(root, x)
    if found is None:
        raise unsupported(
            f"writing to {title or 'an array from outside'} and views of its memory",
            loc=trace.loc, cure="take the view inside the function")
    if reader is not None:
        first = trace.readers.setdefault(id(root), lambda: root_of(reader()))
        trace.guards[id(root), title] = ViewGuard(title, title, lambda: (reader(), first()))
    return found(TracedArray(trace, trace.capture(root)))


def _both(one: Any, other: Any) -> Callable[[], tuple[Any, Any]]:
    return lambda: (_held(one), _held(other))


def _held(captured: Any) -> Any:
    return captured() if callable(captured) else captured


def _is_array(captured: Any) -> bool:
    return isinstance(_held(captured), np.ndarray)


def _overlap(one: Any, other: Any) -> bool:
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)) or (
            not np.may_share_memory(one, other)):
        return False
    try:
        return bool(np.shares_memory(one, other, max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return True


__all__ = ["apart_guards", "captured"]
