"""Arrays from outside the arguments, in attributes and outer variables, that may share memory.

Each is an input of its own; where one of two is written, the other must not show it.  That they are
apart is checked at each call: a call in which they are one array is traced again, as one input, and
views of one array as views of an input that is all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import TensorType

from ..facts.refusals import is_compiled
from ..guards.array_values import handle_of
from ..guards.container_changes import may_be_held
from ..guards.guard import Guard, layout_guard
from ..guards.places import Attribute, OuterPlace
from ..guards.relations import Relation
from ..values.array import TracedArray
from ..values.assigned_names import AssignedLater
from ..values.operations import operation
from ..values.own_arrays import root_of, viewing
from ..values.trace import Trace

WEAK: dict[type, np.dtype] = {float: np.dtype(np.float64), int: np.dtype(np.int64),
                              complex: np.dtype(np.complex128)}
_MOST_WORK: Any = 1000  # of deciding whether views of one array have elements in common


class Apart(Relation):
    """Arrays that must share no memory with those among them that are written."""

    __slots__ = ("_written",)

    def __init__(self, written: list[bool]) -> None:
        self._written = written

    def matches(self, value: list[Any]) -> bool:
        return next(_overlaps(value, self._written), None) is None

    def text(self) -> str:
        return "memory of its own"


def apart_guards(trace: Trace, written: set[int]) -> Iterator[Guard]:
    """For arrays of which some are written (by input position); raises where they overlap now."""
    first = len(trace.feeds.inputs) - len(trace.feeds.captured)
    held = [(i, c) for i, c in enumerate(trace.feeds.captured, first) if _is_array(c)]
    is_written, arrays = [i in written for i, _ in held], [_held(c) for _, c in held]
    for i, j in _overlaps(arrays, is_written):
        root = root_of(arrays[i])
        if root is root_of(arrays[j]) and id(root) not in trace.world.assigned_names.roots:
            raise AssignedLater(root=root)
        one, other = (trace.feeds.outside[held[k][0]] for k in (i, j))
        raise unsupported(f"writing to {one} or {other}, which share memory", loc=trace.entry_loc,
                          cure="take the view of the one inside the function")
    if any(is_written) and len(held) > 1 and any(callable(c) for _, c in held):
        names = ", ".join(dict.fromkeys(trace.feeds.outside[i] for i, _ in held))
        yield apart_guard(names, trace.feeds.captured, Apart(is_written))


def apart_guard(names: str, captured: Sequence[Any], apart: Apart) -> Guard:
    """That captured arrays have memory of their own.

    The launcher goes by where they begin and end, which mostly is enough.
    """
    held = [c for c in captured if _is_array(c)]
    return Guard(names, names, lambda: [_held(c) for c in held], apart, is_native=True)


def _overlaps(arrays: Sequence[Any], written: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Pairs that share memory, of which one at least is written; by where their memory begins."""
    bounds = sorted((*np.lib.array_utils.byte_bounds(x), i) for i, x in enumerate(arrays)
                    if isinstance(x, np.ndarray) and x.size)
    open_: list[tuple[int, int]] = []  # (end, number) of those that reach beyond the present begin
    for begin, end, i in bounds:
        open_ = [o for o in open_ if o[0] > begin]
        yield from ((i, j) for _, j in open_ if (written[i] or written[j])
                    and _shares(arrays[i], arrays[j]))
        open_.append((end, i))


class Same(Relation):
    """Two places that must still hold the same array: the guard reads whether they do."""

    __slots__ = ()

    def matches(self, value: bool) -> bool:
        return bool(value)

    def text(self) -> str:
        return "the same array as another name"


class PartOf(Relation):
    """An array that must still be the same part of the array which others are views of."""

    __slots__ = ("_mark",)

    is_of_start = False

    def __init__(self, value: tuple[Any, Any]) -> None:
        self._mark = _place_in(*value)

    def matches(self, value: tuple[Any, Any]) -> bool:
        return bool(_place_in(*value) == self._mark)

    def text(self) -> str:
        return "a view of the same array as others"


def same_guard(
    subject: str, place: str, read: Callable[[], Any], first: Callable[[], Any]
) -> Guard:
    """For two places that hold one array, or container."""
    return Guard(subject, place, OneArray(read, first), Same())


class OneArray:
    """Whether two places hold the same, read at each call."""

    __slots__ = ("first", "read")

    def __init__(self, read: Callable[[], Any], first: Callable[[], Any]) -> None:
        self.read, self.first = read, first

    def __call__(self) -> bool:
        return self.read() is self.first()


def _place_in(x: Any, root: Any) -> Any:
    if type(x) is not np.ndarray or root_of(x) is not root:
        return None
    start = x.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return start, x.shape, x.strides, x.dtype, root.shape, root.strides, root.dtype


@operation
def captured(
    trace: Trace, x: np.ndarray, reader: Callable[[], Any] | None = None, title: str = ""
) -> TracedArray:
    """An array from outside as an input; one of several views of an array as a view of that."""
    root, place = root_of(x), trace.world.reachable.place_of(x)
    if place is not None:
        reader, title = reader or place.read, title or place.subject
    if title:
        trace.feeds.titles.setdefault(id(x), title)
    if reader is not None:
        trace.feeds.readers.setdefault(id(x), reader)
    if id(root) not in trace.world.assigned_names.roots or id(root) in trace.local.arrays:
        return handle_of(trace, x, lambda: TracedArray(trace, trace.capture(x)))
    view = viewing(root, x)
    if view is None:
        raise unsupported(
            f"writing to {title or 'an array from outside'} and views of its memory",
            loc=trace.loc, cure="take the view inside the function")
    if reader is not None:
        first = trace.feeds.readers.setdefault(id(root), _root_reader(reader))
        trace.feeds.titles.setdefault(id(root), f"the array behind {title}")
        place_name = title.removeprefix("attribute ")
        given = reader

        def part() -> tuple[Any, Any]:
            return given(), first()

        trace.world.guards[id(root), title] = Guard(title, place_name, part, PartOf(part()))
    return handle_of(trace, x, lambda: view(TracedArray(trace, trace.capture(root))))


def stand_in(trace: Trace, place: OuterPlace, value: Any) -> Any:
    """The program's stand-in for the value of a place: an array or number is read at each call, a
    list or dict is held, others are constants."""
    world = trace.world
    if may_be_held(value) and not world.containers.is_held(value):
        world.guards[place.key] = world.containers.enter(place.subject, place.reader)
    if not is_input(trace, value):
        return value
    return as_input(trace, value, place.reader, place.subject, place)


def is_input(trace: Trace, value: Any) -> bool:
    """Whether it is an array or number that is read at each call."""
    if type(value) is np.ndarray:
        return is_compiled(value.dtype) and id(value) not in trace.local.arrays
    return trace.world.assigned_names.may_be_input(value)


def as_input(
    trace: Trace, value: Any, read: Callable[[], Any], subject: str, place: OuterPlace | None = None
) -> TracedArray:
    """Such a value; without a ``place`` of its own the guard of its holder compares its layout.
    """
    is_array = type(value) is np.ndarray
    first = trace.feeds.readers.setdefault(id(value), read) if is_array else read
    if first is not read:
        trace.world.guards[id(read), f"{subject} is"] = same_guard(
            subject, subject if place is None else place.title, read, first)
    if place is not None:
        trace.world.guards[place.key] = layout_guard(subject, read)
    if is_array:
        return captured(trace, value, read, subject)
    trace.world.assigned_names.has_ints |= type(value) is int
    name = f"attribute {place.name}" if type(place) is Attribute else subject
    return TracedArray(trace, None, (), trace.capture_number(scalar_type(value), name, read))


def scalar_type(value: Any) -> TensorType:
    """The type of a number as an input."""
    if isinstance(value, np.generic):
        return TensorType(value.dtype, (), "scalar")
    return TensorType(WEAK[type(value)], (), "weak")


def _root_reader(reader: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: root_of(reader())


def _held(captured: Any) -> Any:
    return captured() if callable(captured) else captured


def _is_array(captured: Any) -> bool:
    return isinstance(_held(captured), np.ndarray)


def _shares(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return bool(np.shares_memory(one, other, max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return True
