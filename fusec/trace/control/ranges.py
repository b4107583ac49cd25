"""Iterables of ``for`` loops that the graph is to hold: counted sequences.

A sequence has a number of items, known or traced, and gives the item at a traced position.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.errors import unsupported
from fusec.ir.sizes.symbolic_numbers import Symbolic, is_int
from fusec.ir.sizes.symbolic_sizes import length_of_range

from ..lists.appended_items import restacked
from ..lists.whole_lists import length_of
from ..operands import sizes
from ..operands.operands import as_traced, cast
from ..operands.perhaps_pythons import check_iterable
from ..operands.python_numbers import Intervals, interval, weak
from ..values.array import TracedArray, from_value, number
from ..values.rows import SHORT, SomeRow, part_of, pending_of, whole
from ..values.selected_arrays import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace
from .sequences import NO_STEP, NumberTable, PythonIterator, TracedRange, progression, table

I64 = np.dtype(np.int64)
VIEWS: tuple[type, ...] = (type({}.values()), type({}.items()))


@dataclass(frozen=True)
class CountedItems:
    """``count`` items (an int or a traced one) and the item at a position."""

    count: Any
    item: Callable[[Any], Any]

    def __fusec_refers__(self) -> tuple[Any, ...]:
        """What may run functions of the program, which change things."""
        return (self.item,)

    def after(self, first: int) -> CountedItems:
        """The items from a position on."""
        return CountedItems(self.count - first, lambda k: self.item(k + first))


def counted(trace: Trace, over: Any) -> CountedItems | None:
    """The sequence as counted items; None where Python's own iteration must do."""
    items = sequence(trace, over)
    if items is not None and isinstance(over, PythonIterator):
        over.take()
    return items


def sequence(trace: Trace, over: Any) -> CountedItems | None:
    """As `counted`, and nothing is taken of it."""
    if isinstance(over, PythonIterator):
        parts = [sequence(trace, p) for p in over.parts[:over.sequences]] if over.is_fresh else []
        return over.counted(trace, *parts) if parts and None not in parts else None
    if type(over) is range:
        return CountedItems(len(over), numbers_from(over.start, over.step))
    if type(over) is TracedRange and all(map(is_int, (over.start, over.stop, over.step))):
        return CountedItems(length_of_range(over.start, over.stop, over.step),
                            numbers_from(over.start, over.step))
    if type(over) is TracedRange:
        if type(over.step) is TracedArray:
            over = replace(over, step=_checked_step(trace, over.step))
        return CountedItems(
            _trips(over), partial(_bounded, over, numbers_from(over.start, over.step)))
    if type(over) is TracedArray and over.ndim:
        return CountedItems(sizes.number(trace, over.shape[0]), lambda k: over[k])
    return listed(trace, over) or all_one(trace, over)


class GoneOver(list[tuple[Any, list[Any]]]):
    """Of a trace: lists that loops made, that other loops of the graph go over, and arrays and
    numbers in them."""


def listed(trace: Trace, over: Any) -> CountedItems | None:
    """A list, tuple or view of a dict: of numbers, or of items that a loop made, or of tuples of
    these; Python goes over it where the graph cannot."""
    if type(over) in VIEWS:
        over = tuple(over)
    numbers = table(trace, over)
    return parts(trace, over) if numbers is None else table_items(numbers)


def parts(trace: Trace, over: Any) -> CountedItems | None:
    """A long list or tuple of parts of one array, or of few that can be joined; or of tuples that
    consist of such."""
    if type(over) not in (list, tuple) or len(over) <= SHORT:
        return None
    if type(over[-1]) is tuple:
        return _in_columns(trace, over)
    if type(over[-1]) is not TracedArray:
        return None
    stack = stacked(trace, over)
    if stack is None:
        return None
    count, type_, shown = length_of(trace, over), over[0].type, list[Storage]()

    def item(k: Any) -> Any:
        if type(k) is not TracedArray:
            return over[k]
        trace.part(GoneOver).append((over, over))
        value = stack[k].value
        if type_.kind == "array":
            shown.extend(() if shown else _shown(over))
            return TracedArray(trace, Copied(trace, value, shown))
        return number(trace, weak(trace, value, type_.dtype) if type_.is_weak else value)

    return CountedItems(count, item)


def _shown(rows: Any) -> list[Storage]:
    """The memory that rows are in.  That of rows which are read as a whole is not written through
    them; but they may be views."""
    if not pending_of(rows):
        ends = [root for x in (rows[0], rows[-1]) for root in roots(x.storage)]
        return [*ends, SomeRow(rows[0].trace, rows)]
    storage = rows[0].storage
    return [other for other, _ in storage.others] if isinstance(storage, Copied) else []


def stacked(trace: Trace, over: Any) -> TracedArray | None:
    """The array of which these are the rows; one that joins others has numbers only."""
    first = over[0]
    if type(first) is not TracedArray or first.type != over[-1].type:
        return None
    place = whole(trace, over)
    if place is not None:
        return from_value(trace, part_of(trace, place, "array"))
    is_joined = not first.is_array and all(
        type(x) is TracedArray and x.type == first.type for x in over)
    return restacked(trace, over) if is_joined else None


def _in_columns(trace: Trace, over: Any) -> CountedItems | None:
    """Tuples of one length, by their columns."""
    if not all(type(item) is tuple and len(item) == len(over[-1]) for item in over) or not over[-1]:
        return None
    columns = [_column(trace, column) for column in zip(*over, strict=True)]
    count = length_of(trace, over)

    def item(k: Any) -> Any:
        if type(k) is not TracedArray:
            return over[k]
        trace.part(GoneOver).append((over, []))
        return tuple(column.item(k) for column in columns if column is not None)

    return None if None in columns else CountedItems(count, item)


def _column(trace: Trace, items: tuple[Any, ...]) -> CountedItems | None:
    return listed(trace, items) or all_one(trace, items)


def all_one(trace: Trace, over: Any) -> CountedItems | None:
    """A list or tuple of one object, ``[F] * n``."""
    if type(over) not in (list, tuple) or len(over) < 2 or any(x is not over[0] for x in over):
        return None
    count, one = len(over), over[0]

    def item(k: Any) -> Any:
        is_traced = type(k) is TracedArray
        if len(over) != count or (is_traced and any(x is not one for x in over)):
            raise unsupported("a loop over a list that changes meanwhile", loc=trace.loc,
                              cure="loop over a copy of it")
        return one if is_traced else over[k]

    return CountedItems(count, item)


def taken_apart(item: Any, count: int) -> tuple[Any, ...]:
    """An item as so many parts; raises as Python does."""
    check_iterable(item, "cannot unpack non-iterable {} object")
    parts = tuple(item)
    if len(parts) != count:
        words, got = ("too many", "") if len(parts) > count else (
            "not enough", f", got {len(parts)}")
        raise ValueError(f"{words} values to unpack (expected {count}{got})")
    return parts


def table_items(over: NumberTable) -> CountedItems:
    """The numbers of a table; at a traced position one that is looked up or computed."""
    if type(over.items) is np.ndarray:  # read anew in each iteration: the loop may write to it
        return CountedItems(len(over), lambda k: (
            as_traced(over.trace, over.items) if type(k) is TracedArray else over.items)[k])
    count, columns = len(over), [table_items(column) for column in over.columns]

    def item(k: Any) -> Any:
        if len(over) != count:
            raise unsupported("a loop over a list that changes its length meanwhile",
                              loc=over.trace.loc, cure="loop over a copy of it")
        if type(k) is not TracedArray:
            return over.items[k]
        return tuple(c.item(k) for c in columns) if columns else _looked_up(
            over, k, progression(over.items))

    return CountedItems(count, item)


def number_at(over: NumberTable, k: TracedArray) -> Any:
    """``items[k]`` of a list or tuple of numbers, or of tuples of them."""
    if over.columns:
        return tuple(number_at(c, k) for c in over.columns)
    return _looked_up(over, k, None)


def _looked_up(over: NumberTable, k: TracedArray, steps: range | None) -> TracedArray:
    """The number of a list at a traced position; ``steps``: the numbers as a range."""
    trace, numbers = over.trace, np.asarray(over.items)
    item = as_traced(trace, numbers)[k].value if steps is None else (
        numbers_from(steps.start, steps.step)(k).value)
    if isinstance(over.items[0], np.generic):
        return number(trace, cast(trace, item, numbers.dtype, "scalar"))
    value = weak(trace, item, numbers.dtype)
    if numbers.dtype == I64:
        trace.part(Intervals)[value] = (int(numbers.min()), int(numbers.max()))
    return number(trace, value)


def numbers_from(start: Any, step: Any) -> Callable[[Any], Any]:
    """``start + k * step``."""
    def item(k: Any) -> Any:
        moved = k if type(step) is not TracedArray and step == 1 else k * step
        return moved if type(start) is int and start == 0 else start + moved

    return item


def _bounded(over: TracedRange, item: Callable[[Any], Any], k: Any) -> Any:
    """An item, known to lie between the ends of the range."""
    value = item(k)
    ends = [_ends(over.trace, e) for e in (over.start, over.stop)]
    if type(value) is TracedArray and None not in ends:
        (start_low, start_high), (stop_low, stop_high) = ends  # type: ignore[misc]
        up, down = (start_low, stop_high - 1), (stop_low + 1, start_high)
        sign = _sign(over.trace, over.step)
        over.trace.part(Intervals)[value.value] = (up if sign > 0 else down) if sign else (
            min(up[0], down[0]), max(up[1], down[1]))
    return value


def _checked_step(trace: Trace, given: TracedArray) -> TracedArray:
    """A step that data decides, checked not to be 0; nodes after it may be computed before that."""
    step = weak(trace, given.value, I64)
    low, high = interval(trace, step) or (-1, 1)
    if low <= 0 <= high:
        zero, one = trace.builder.const(0), trace.builder.const(1)
        is_one = trace.emit("NotEqual", step, zero)
        trace.check(is_one, ValueError(NO_STEP))
        step = weak(trace, trace.emit("Where", is_one, step, one), I64)
    return TracedArray(trace, None, (), step)


def _sign(trace: Trace, step: Any) -> int:
    """1 or -1; 0 where only the run knows whether a range goes up or down."""
    if type(step) is not TracedArray:
        return 1 if step > 0 else -1
    low, high = interval(trace, step.value) or (-1, 1)
    return 1 if low >= 0 else -1 if high <= 0 else 0


def _ends(trace: Trace, end: Any) -> tuple[Any, Any] | None:
    if type(end) is not TracedArray:
        return (end, end) if type(end) is Symbolic else (int(end), int(end))
    return interval(trace, end.value)


def most_trips(trace: Trace, count: Any) -> int:
    """The most iterations there can be."""
    bounds = _ends(trace, count)
    return (1 << 31) if bounds is None else max(bounds[1], 1)


def _trips(over: TracedRange) -> Any:
    """How often it runs, at least 0."""
    first, last, step = over.start, over.stop, over.step
    if type(step) is not TracedArray:
        first, last, step = (first, last, step) if step > 0 else (last, first, -step)
        if step == 1:
            return last - first
    distance = last - first
    return distance // step + (distance % step != 0)  # adding step - 1 may need a 65th bit
