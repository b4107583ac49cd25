"""Lists whose items a loop of the graph writes: ``out = [0.0] * n``, then ``out[i] = ...``; tables
of such (``t[i][j] = ...``).

In the loop such a list is an array.  While the body is traced its variable holds a `WrittenList`,
so nothing finds the list as it was before the loop; operations it lacks are refused, and Python
runs the loop.  After it the list has the elements of the array as items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fusec.errors import ConcreteValueError
from fusec.ir import TensorType, Value
from fusec.ir.sizes.symbolic_numbers import is_int

from ..choice.joined_kinds import JoinedKinds, is_of_other_kind
from ..choice.merge import Disagreement, converted, is_number, is_traced, joined, leaf_value, lifted
from ..facts.refusals import is_index
from ..index.list_items import checked_place
from ..operands.python_numbers import index_of, weak
from ..values.array import TracedArray, from_value, number
from ..values.rows import Parts
from ..values.trace import Trace


class JoinedParts(Parts):
    """Items of which data decides whether they are Python's, or ints."""

    def value_of(self, k: int) -> Value:
        """The value of one."""
        value = super().value_of(k)
        self.trace.part(JoinedKinds).add(value)
        return value


class ListTable:
    """A list, or lists in a list, as an array: the numbers' types, and facts about them."""

    def __init__(self, trace: Trace, name: str, owner: list[Any], array: TracedArray,
                 type_: TensorType, is_joined: bool) -> None:
        self.trace, self.name, self.owner, self.array = trace, name, owner, array
        self.type, self.is_joined = type_, is_joined
        self.ids: set[int] = set()  # of the lists
        self.wanted, self.wants_joined = type_, is_joined  # in the next attempt
        assert array.storage is not None
        self.before = array.storage.value

    @property
    def is_wrong(self) -> bool:
        """Whether the loop writes numbers of another type than was supposed."""
        return self.wanted != self.type or self.wants_joined != self.is_joined

    @property
    def is_written(self) -> bool:
        """Whether the loop has left something else in it."""
        assert self.array.storage is not None
        return self.array.storage.value != self.before

    def put(self, places: tuple[Any, ...], item: Any) -> None:
        """A number at a place."""
        item = lifted(self.trace, item)
        if not (is_number(item) or (is_traced(item) and not item.is_array)):
            raise self.refused("gets items that are no numbers")
        value = leaf_value(self.trace, item)
        try:
            self.wanted = joined(self.wanted, value.type)
        except Disagreement:
            raise self.refused("gets items of different types") from None
        self.wants_joined |= is_of_other_kind(value.type, self.type) or value.type != self.type
        if self.is_wrong:
            return
        self.array[places] = number(self.trace, converted(self.trace, value, self.type))

    def item(self, places: tuple[Any, ...]) -> TracedArray:
        """The number at a place."""
        value = self.array[places].value
        result = number(
            self.trace, weak(self.trace, value, value.dtype) if self.type.is_weak else value)
        if self.is_joined:
            self.trace.part(JoinedKinds).add(result.value)
        return result

    def items(self, value: Value, prefix: tuple[int, ...] = ()) -> list[Any]:
        """The items of a list in it, from an earlier value of the array."""
        count, depth = value.shape[len(prefix)], len(prefix) + 1
        if depth < len(value.shape):
            return [self.items(value, (*prefix, k)) for k in range(count)]
        kind = JoinedParts if self.is_joined else Parts
        return [*kind(self.trace, value, prefix, self.type.kind).items(count)]

    def store(self) -> None:
        """The list, and those in it, have the numbers that the loop left."""
        assert self.array.storage is not None
        self._store(self.owner, self.items(self.array.storage.value))

    def _store(self, owner: list[Any], items: list[Any]) -> None:
        if type(items[0]) is not list:
            owner[:] = items
            return
        for inner, new in zip(owner, items, strict=True):
            self._store(inner, new)

    def refused(self, what: str) -> ConcreteValueError:
        """Why Python must run the loop."""
        return ConcreteValueError(
            f"the list {self.name!r} {what} in a loop that writes its items", loc=self.trace.loc,
            cure="write into an array (np.zeros(n) instead of [0.0] * n)")


class WrittenList:
    """The list in an iteration, or one in it at places that the iteration knows."""

    def __init__(self, table: ListTable, places: tuple[Any, ...] = ()) -> None:
        self.table, self.places = table, places

    def length(self) -> int:
        """How many items there are, in all iterations."""
        count: int = self.table.array.shape[len(self.places)]
        return count

    @property
    def _is_row(self) -> bool:
        return len(self.places) + 1 == self.table.array.ndim

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice:
            return self._part(key)
        places = (*self.places, self._place(key, "list index"))
        return self.table.item(places) if self._is_row else WrittenList(self.table, places)

    def __setitem__(self, key: Any, item: Any) -> None:
        if type(key) is slice or not self._is_row:
            raise self.refused("gets other lists or several items at once")
        self.table.put((*self.places, self._place(key, "list assignment index")), item)

    def _place(self, key: Any, what: str) -> Any:
        """Where in the array, counted from the start."""
        count, trace = self.length(), self.table.trace
        if is_int(key) and -count <= key < count:
            return int(key) % count
        if is_int(key):
            key = number(trace, trace.builder.const(np.int64(int(key))))
        if type(key) is not TracedArray or key.is_array or not is_index(key):
            raise self.refused("is used at what is no int")
        return checked_place(trace, index_of(trace, key) if key.dtype.kind not in "iu" else key,
                             count, what)

    def _part(self, key: slice) -> list[Any]:
        """Some items, as a list of its own."""
        ends = [key.start, key.stop, key.step]
        if not self._is_row or not all(x is None or is_int(x) for x in ends):
            raise self.refused("is read from a position to another, so many items as only the run "
                               "knows,")
        return self.now()[key]

    def now(self) -> list[Any]:
        """A list of its items."""
        table = self.table
        value = table.array[self.places].value if self.places else table.array.value
        return table.items(from_value(table.trace, value).value)

    def __len__(self) -> int:
        return self.length()

    def __iter__(self) -> Iterator[Any]:
        raise self.refused("is read as a whole")

    def __getattr__(self, name: str) -> Any:
        raise self.refused(f"is asked for {name!r}")

    def _refuse(self, *operands: Any) -> Any:
        raise self.refused("is used as a whole")

    __delitem__ = __contains__ = __eq__ = __ne__ = __lt__ = __le__ = _refuse
    __gt__ = __ge__ = __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = _refuse
    __reversed__ = __str__ = __repr__ = __format__ = __reduce_ex__ = _refuse
    __hash__ = object.__hash__

    def refused(self, what: str) -> ConcreteValueError:
        """Why Python must run the loop."""
        return self.table.refused(what)
