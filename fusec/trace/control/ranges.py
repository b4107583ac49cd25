"""What a ``for`` loop goes over, when the graph is to hold the loop: counted sequences.

A sequence has a number of items, known or traced, and gives the item at a traced position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fusec.ir import Value

from ..array import TracedArray
from ..context import Trace
from ..python_numbers import interval

I64 = np.dtype(np.int64)


@dataclass(frozen=True)
class TracedRange:
    """``range(start, stop, step)`` of which a part is known only at run time."""

    trace: Trace
    start: Any
    stop: Any
    step: Any

    def __iter__(self) -> Iterator[Any]:
        return iter(range(*(p.__index__() for p in (self.start, self.stop, self.step))))

    def __len__(self) -> int:
        return len(range(*(p.__index__() for p in (self.start, self.stop, self.step))))


@dataclass(frozen=True)
class Joined:
    """``zip`` and ``enumerate`` of parts that can be counted: items are tuples."""

    parts: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(zip(*self.parts, strict=False))


@dataclass(frozen=True)
class Counted:
    """``count`` items (an int or a traced one) and the item at a position."""

    count: Any
    item: Callable[[Any], Any]

    def after(self, first: int) -> Counted:
        """The items from a position on."""
        return Counted(self.count - first, lambda k: self.item(k + first))


def counted(over: Any) -> Counted | None:
    """The sequence as counted items; None where Python's own iteration must do."""
    if type(over) is range:
        return Counted(len(over), _progression(over.start, over.step))
    if type(over) is TracedRange:
        return Counted(_trips(over), partial(_bounded, over, _progression(over.start, over.step)))
    if type(over) is TracedArray and over.ndim:
        return Counted(over.shape[0], lambda k: over[k])
    if type(over) is Joined:
        return _joined(over)
    return None


def _progression(start: Any, step: int) -> Callable[[Any], Any]:
    """``start + k * step``."""
    def item(k: Any) -> Any:
        moved = k if step == 1 else k * step
        return moved if type(start) is int and start == 0 else start + moved

    return item


def _bounded(over: TracedRange, item: Callable[[Any], Any], k: Any) -> Any:
    """An item, known to lie between the ends of the range."""
    value = item(k)
    ends = [_ends(over.trace, e) for e in (over.start, over.stop)]
    if type(value) is TracedArray and None not in ends:
        (start_low, start_high), (stop_low, stop_high) = ends  # type: ignore[misc]
        up = over.step > 0
        bounds = (start_low, stop_high - 1) if up else (stop_low + 1, start_high)
        over.trace.intervals[value.value] = bounds
    return value


def _ends(trace: Trace, end: Any) -> tuple[int, int] | None:
    if type(end) is not TracedArray:
        return (int(end), int(end))
    return interval(trace, end.value)


def most_trips(trace: Trace, count: Any) -> int:
    """The most iterations there can be."""
    bounds = _ends(trace, count)
    return (1 << 31) if bounds is None else max(bounds[1], 1)


def _joined(over: Joined) -> Counted | None:
    parts = [counted(p) for p in over.parts]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts) or not all(type(p.count) is int for p in known):
        return None
    return Counted(min(p.count for p in known), lambda k: tuple(p.item(k) for p in known))


def _trips(over: TracedRange) -> Any:
    """How often it runs, at least 0."""
    step = over.step
    if type(step) is not int or step == 0:
        raise over.trace.error(ValueError("range() arg 3 must be a known number, not zero"))
    distance = over.stop - over.start if step > 0 else over.start - over.stop
    return distance if abs(step) == 1 else (distance + (abs(step) - 1)) // abs(step)


def number(trace: Trace, value: Value) -> TracedArray:
    """A traced scalar."""
    return TracedArray(trace, None, (), value)
