"""Parts of one array that stand for themselves: items of a loop of the graph, one an iteration.

There may be a million of them, of which a program mostly needs the array again.  So the node of a
part is made when its value is first asked for, and where all of them are found in order the array
itself is taken.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from fusec.core.records import dataclass
from fusec.ir import TensorType, Value
from fusec.ir.sizes.dims import is_static
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..facts.layout import contiguous
from .array import TracedArray
from .selected_arrays import Copied
from .storage import Storage
from .trace import Trace

Place = tuple[Value, tuple[int, ...]]  # an array, and where in it


class Rows(dict[Value, Place]):
    """Of a trace: parts that have nodes, and where they are from."""


class Pending(dict[int, Any]):
    """Lengths, by the axis, of lists that have as many items as the traced call has: another number
    of them for other sizes, unless an item is looked at by itself."""

    def settle(self) -> None:
        """The trace serves calls that have as many items."""
        while self:
            operator.index(self.popitem()[1])

    def add(self, axis: int, count: Any) -> None:
        """The length of lists that are read as a whole is."""
        if type(count) is Symbolic:
            self[axis] = count

    def length_of(self, axis: int, count: Any) -> Any:
        """The number of items for the traced call, of which nothing is asked if it is pending."""
        return self[axis].hint if axis in self else count


class Parts:
    """The parts of an array in a row, of one kind; ``others``: memory that they show and through
    which they are not to be written."""

    __slots__ = ("others", "pending", "prefix", "stack", "strides", "trace", "type")

    def __init__(
        self, trace: Trace, stack: Value, prefix: tuple[int, ...], kind: str,
        others: Sequence[Storage] = (),
    ) -> None:
        self.trace, self.stack, self.prefix, self.others = trace, stack, prefix, others
        of_kind: Any = kind
        self.type = TensorType(stack.dtype, stack.shape[1 + len(prefix):], of_kind)
        self.strides = contiguous(self.type.shape, self.type.dtype.itemsize)
        self.pending = Pending()

    def items(self, count: int, first: int = 0) -> list[TracedArray]:
        """So many of them, from one on."""
        count = self.pending.length_of(len(self.prefix), count)
        trace, places = self.trace, range(first, first + count)
        if self.type.kind != "array":
            return [TracedArray(trace, None, (), (self, k)) for k in places]
        return [TracedArray(trace, self._storage(k)) for k in places]

    def _storage(self, k: int) -> Storage:
        row: Any = (self, k)
        return CopiedRow(self.trace, row, self.others, self.strides) if self.others else (
            RowStorage(row, self.strides))

    def value_of(self, k: int) -> Value:
        """The value of one, with a node of its own from now on."""
        self.pending.settle()
        place = self.stack, (*self.prefix, k)
        value = part_of(self.trace, place, self.type.kind)
        self.trace.part(Rows)[value] = place
        return value


def part_of(trace: Trace, place: Place, kind: str) -> Value:
    """The part at a place of an array."""
    stack, path = place
    if not path:
        return stack
    rest, depth = stack.shape[len(path):], len(path)
    part = trace.emit("Slice", stack, starts=(*path, *(0 for _ in rest)),
                      steps=(1,) * len(stack.shape), sizes=(*(1,) * depth, *rest))
    options = {} if kind == "array" else {"kind": kind}
    value: Value = trace.emit("Squeeze", part, axes=tuple(range(depth)), **options)
    return value


def nested(
    trace: Trace, stack: Value, lengths: Sequence[int], kind: str,
    others: Sequence[Storage] = (), pending: Pending | None = None, prefix: tuple[int, ...] = (),
) -> list[Any]:
    """The parts of an array in lists of these lengths, one in the other."""
    pending = Pending() if pending is None else pending
    length, inner = lengths[len(prefix)], len(prefix) + 1
    if inner < len(lengths):
        return [nested(trace, stack, lengths, kind, others, pending, (*prefix, j))
                for j in range(pending.length_of(inner - 1, length))]
    parts = Parts(trace, stack, prefix, kind, others)
    parts.pending = pending
    return [*parts.items(length)]


def elements(x: Any) -> list[TracedArray] | None:
    """Those of a long vector, as it is now; None of others."""
    if type(x) is not TracedArray or x.ndim != 1 or not is_static(x.shape) or (
            x.shape[0] <= SHORT):
        return None
    return nested(x.trace, x.value, (int(x.shape[0]),), "scalar")


class _Late:
    """Memory that holds a part; see `Row`.  Classes that derive from it have the slot ``_now``."""

    __slots__ = ()

    @property
    def value(self) -> Value:
        now: Any = getattr(self, "_now")  # noqa: B009  # a slot of those that derive from it
        if type(now) is tuple:
            now = now[0].value_of(now[1])
            self._now = now  # type: ignore[misc]
        return now  # type: ignore[no-any-return,unused-ignore]

    @value.setter
    def value(self, value: Any) -> None:
        self._now = value

    @property
    def type(self) -> TensorType:
        now: Any = self._now
        return now[0].type if type(now) is tuple else now.type  # type: ignore[no-any-return,unused-ignore]


class RowStorage(_Late, Storage):
    """Memory of its own."""

    __slots__ = ("_now",)


class CopiedRow(_Late, Copied):
    """Memory that is read, while that of others is unchanged."""


class SomeRow(Storage):
    """Memory that is one of many rows, as the run decides: has another value once one is written.
    """

    def __init__(self, trace: Trace, rows: Sequence[TracedArray]) -> None:
        self.trace, self.rows = trace, [x.storage for x in rows if x.storage is not None]
        place = whole(trace, rows)
        assert place is not None
        self.place = place
        self.first = self.now = rows[0].value
        self.seen: Any = None  # the last write that was looked at
        super().__init__(self.first)
        self.born = self.rows[0].born

    @property
    def value(self) -> Value:
        journal = self.trace.record.journal
        last = journal[-1] if journal else None
        if last is not self.seen:
            self.seen = last
            self.now = next((s.value for k, s in enumerate(self.rows) if self._is_written(k, s)),
                            self.first)
        return self.now

    @value.setter
    def value(self, value: Value) -> None:
        """It is what its rows are."""

    def _is_written(self, k: int, row: Storage) -> bool:
        if type(getattr(row, "_now", None)) is tuple:
            return False
        stack, prefix = self.place
        return self.trace.part(Rows).get(row.value) != (stack, (*prefix, k))


def late(x: TracedArray) -> Any:
    """The parts that a value is one of, and which, as long as it has no node: one that is looked
    at by itself."""
    own = _late(x)
    if own is not None:
        own[0].pending.settle()
    return own


def _late(x: TracedArray) -> Any:
    """The same of one that is looked at with all others."""
    own = x._scalar if x.storage is None else None if x.steps else getattr(x.storage, "_now", None)
    return own if type(own) is tuple else None


def is_stale(x: Any) -> bool:
    """Whether it shows an array that was written since."""
    storage = x.storage if type(x) is TracedArray else None
    return isinstance(storage, CopiedRow) and any(
        other.value is not value for other, value in storage.others)


def whole(trace: Trace, items: Any) -> Place | None:
    """The array that the items, which may be lists in turn, are all parts of, in order."""
    place = _place(trace, items[0]) if items else None
    if place is None or not place[1]:
        return None
    stack, prefix = place[0], place[1][:-1]
    length = pending_of(items).length_of(len(prefix), stack.shape[len(prefix)])
    if len(items) != length or is_stale(items[0]):
        return None
    parts = None
    for k, item in enumerate(items):
        row = _late(item) if type(item) is TracedArray else None
        if row is None or row[0] is not parts or row[1] != k:
            parts = parts if row is None else row[0]
            if _place(trace, item) != (stack, (*prefix, k)):
                return None
    return stack, prefix


def _place(trace: Trace, item: Any) -> Place | None:
    if type(item) is not TracedArray:
        return whole(trace, item) if type(item) in (list, tuple) else None
    return trace.part(Rows).get(item.value) if _late(item) is None else place_of(item)


def pending_of(items: Any) -> Pending:
    """The pending part of a list, by its last item."""
    while type(items) in (list, tuple) and items:
        items = items[-1]
    row = _late(items) if type(items) is TracedArray else None
    return Pending() if row is None else row[0].pending


def all_pending(items: Any) -> list[Pending]:
    """The pending parts of its items: a list may be filled by several loops, and by none."""
    if type(items) in (list, tuple):
        return [pending for item in items for pending in all_pending(item)]
    row = _late(items) if type(items) is TracedArray else None
    return [] if row is None or not row[0].pending else [row[0].pending]


def place_of(item: TracedArray) -> Place:
    """Of a part that has no node yet."""
    parts, k = _late(item)
    return parts.stack, (*parts.prefix, k)


SHORT = 16  # items that are joined one by one
MOST_RUNS = 8


@dataclass
class Run:
    """Parts of one array at equal steps."""

    parts: Parts
    first: int
    step: int
    count: int = 2

    @property
    def positions(self) -> slice:
        """Where in the array they are."""
        end = self.first + self.step * self.count
        return slice(self.first, None if end < 0 else end, self.step)

    def goes_on(self, row: Any) -> bool:
        """Whether this is the next one."""
        return row is not None and row[0] is self.parts and (
            row[1] == self.first + self.step * self.count)


def runs(items: Sequence[Any]) -> list[Run | list[Any]] | None:
    """A long list as few runs of parts that have no nodes yet, and the items between them."""
    found: list[Run | list[Any]] = []
    run: Run | None = None
    for item in items:
        row = late(item) if type(item) is TracedArray else None
        if run is not None and run.goes_on(row):
            run.count += 1
            continue
        run = None if is_stale(item) else _begun(found, row)
        if run is not None:
            found.append(run)
        elif found and isinstance(found[-1], list):
            found[-1].append(item)
        else:
            found.append([item])
        if len(found) > MOST_RUNS:
            return None
    is_worth_it = any(isinstance(r, Run) for r in found) and all(
        isinstance(r, Run) or len(r) <= SHORT for r in found)
    return found if is_worth_it else None


def _begun(found: list[Run | list[Any]], row: Any) -> Run | None:
    """A run of the item before, which is taken from the list that it ends, and this one."""
    last = found[-1] if found else None
    if row is None or not isinstance(last, list) or type(last[-1]) is not TracedArray:
        return None
    before = late(last[-1])
    if before is None or before[0] is not row[0] or before[1] == row[1]:
        return None
    last.pop()
    if not last:
        found.pop()
    return Run(row[0], before[1], row[1] - before[1])
