"""Lists that a loop of the graph appends to and reads: ``ys.append(ys[-1] + h)``.

In a loop of known length such a list, which is not empty before, is an array that the loop fills:
each ``append`` writes a row, an index reads one.  While the body is traced its variable holds a
`GrowingList`, so nothing finds the list as it was before the loop; operations it lacks are refused,
and Python runs the loop.  After it the list has the rows as items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import ConcreteValueError
from fusec.ir import TensorType, Value
from fusec.ir.sizes.symbolic_numbers import is_int

from ..choice.joined_kinds import JoinedKinds
from ..choice.merge import Disagreement, is_number, is_traced, joined, leaf_value, lifted, unflatten
from ..facts.refusals import is_index
from ..facts.trees import flattened
from ..index.list_items import checked_place
from ..operands.python_numbers import index_of, weak
from ..values.array import TracedArray, number
from ..values.rows import Parts
from ..values.selected_arrays import roots
from ..values.storage import Storage
from ..values.trace import Trace
from .appended_items import older_roots
from .item_containers import ItemContainers
from .positions import affine

MOST_PEELED = 64  # iterations run by Python until a list is as long as the body wants it


class ShortListError(ConcreteValueError):
    """A list that a loop appends to is shorter at first than the part it reads."""

    missing = 1


@dataclass
class FilledList:
    """Facts of attempts at a loop about one list: its items' ``types``, how many an iteration
    appends; the arrays that it fills."""

    structure: Any
    types: list[TensorType]
    least: int  # items before the loop
    per: int = 1
    appended: list[TensorType] = field(default_factory=list)  # what the loop appends
    arrays: list[TracedArray] = field(default_factory=list)
    is_joined: bool = False  # items from before are of another kind

    def is_stale(self) -> bool:
        """Whether an attempt, be it one that was broken off, found items of other dtypes."""
        return any(array.dtype != type_.dtype
                   for array, type_ in zip(self.arrays, self.types, strict=False))

    def begin_anew(self) -> None:
        """Forgets the arrays, which the next attempt makes."""
        self.appended, self.arrays = [], []


def leaves_of(
    trace: Trace, item: Any, structure: Any, are_old: bool = False
) -> list[Any] | None:
    """The numbers and arrays in an item; None for one of another structure or of other things."""
    leaves, found = flattened(item)
    if found != structure:
        return None
    if not are_old:  # which may have no nodes, and need none
        leaves = [lifted(trace, leaf) for leaf in leaves]
    return leaves if all(
        type(x) is TracedArray or is_number(x) or is_traced(x) or type(x) is np.ndarray
        for x in leaves) else None


class HasOthers(Protocol):
    """Which arrays are items of lists more than once."""

    def others(self, memory: Iterable[Storage | None]) -> list[Storage]: ...


class GrowingList:
    """Such a list in an iteration: ``base`` items and those ``added``."""

    def __init__(
        self, trace: Trace, name: str, owner: Any, filled: FilledList, base: Any, least: int
    ) -> None:
        self.trace, self.name, self.owner, self.filled = trace, name, owner, filled
        self.base, self.least, self.added = base, least, 0
        self.counter: Any = None  # the iteration's number
        self.region = -1
        self.containers: ItemContainers
        self.is_wrong = False  # of other types or another length than was supposed
        self.items: list[tuple[int, int, TracedArray]] = []  # arrays that were appended
        self.versions: list[int] = []
        self.of_inner: list[tuple[Storage, int]] = []  # that loops within appended, and versions
        self.columns: list[list[TracedArray]] = []  # afterwards
        self.found: list[Storage] = []  # of what was read

    # -- appending --------------------------------------------------------------------------------

    def begin(self, counter: TracedArray, containers: ItemContainers) -> None:
        """An iteration, by its number."""
        self.counter, self.region = counter, self.trace.record.regions[-1]
        self.containers = containers

    def length(self) -> Any:
        """How many items there are now."""
        length = self.base + self.added
        return length if self.counter is None else self.counter * self.filled.per + length

    def append(self, item: Any) -> None:
        """``append``: a row is written."""
        self.check_is_reached()
        leaves = leaves_of(self.trace, item, self.filled.structure)
        if leaves is None:
            raise self.refused("gets items that are no numbers or arrays of one structure")
        self.containers.note(item)
        for k, leaf in enumerate(leaves):
            self._put(k, leaf)
        self.added += 1

    def check_is_reached(self) -> None:
        """Raises `ConcreteValueError` where not each iteration comes here, once."""
        if self.trace.record.regions[-1] != self.region:
            raise self.refused("is appended to in a branch, or in a loop of unknown length")

    def _put(self, k: int, leaf: Any) -> None:
        value, filled = leaf_value(self.trace, leaf), self.filled
        if is_traced(leaf) and leaf.storage is not None:
            self.items.append((self.added, k, leaf))
            self.versions.append(leaf.storage.version)
        self._note_type(k, value.type)
        if filled.types[k].shape == value.type.shape and filled.per > self.added:
            filled.arrays[k][self._position(self.added)] = number(self.trace, value) if (
                value.type.kind != "array") else TracedArray(self.trace, Storage(value))

    def _position(self, added: int) -> Any:
        before = self.base + added
        return self.counter * self.filled.per + before

    def _note_type(self, k: int, type_: TensorType) -> None:
        """A leaf that is appended; all of them have one type, which those from before fit in."""
        filled = self.filled
        if len(filled.appended) <= k:
            filled.appended.append(type_)
        elif filled.appended[k] != type_:
            raise self.refused("gets items of different types")
        try:
            both = joined(filled.types[k], type_)
        except Disagreement:
            raise self.refused("gets items of different shapes") from None
        if both.dtype != type_.dtype:
            raise self.refused("gets items of different types")
        if both != filled.types[k]:
            filled.types[k], self.is_wrong = both, True
            filled.is_joined = True

    # -- reading ----------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice:
            return self._part(key)
        if type(key) is TracedArray and not key.is_array and is_index(key):
            return self._item(self._checked(key))
        if not is_int(key):
            raise self.refused("is read at what is no int")
        return self._item(self._known_place(key))

    def _known_place(self, key: int) -> Any:
        """A position that is known while tracing; the list may be too short for it at first."""
        self._require(key + 1 if key >= 0 else -key)
        return key if key >= 0 else self.length() + key

    def _require(self, count: int) -> None:
        if count > self.least + self.added:
            error = ShortListError(
                f"the list {self.name!r} is read beyond the items that it has before the loop "
                "which appends to it", loc=self.trace.loc, cure="give it these items before")
            error.missing = -(-(count - self.least - self.added) // max(self.filled.per, 1))
            raise error

    def _checked(self, key: TracedArray) -> Any:
        """A position that the run knows."""
        trace, length = self.trace, self.length()
        place = key if key.dtype.kind in "iu" else index_of(trace, key)
        if self._is_below(place, length, 1):
            return place
        return checked_place(trace, place, length, "list index")

    def _is_below(self, place: Any, length: Any, by: int) -> bool:
        """Whether it is at least ``by`` below the length in any iteration, and not negative."""
        at, end = (affine(x, self.counter) for x in (place, length))
        return at is not None and end is not None and 0 <= at[0] <= end[0] and (
            0 <= at[1] <= end[1] - by)

    def _item(self, place: Any) -> Any:
        return self._read([self._leaf(k, place) for k in range(len(self.filled.types))])

    def _read(self, leaves: Sequence[Any]) -> Any:
        item = unflatten(self.filled.structure, list(leaves))
        self.containers.note(item, is_read=True)
        return item

    def _leaf(self, k: int, place: Any) -> TracedArray:
        type_, trace = self.filled.types[k], self.trace
        value = self.filled.arrays[k][place].value
        if type_.kind == "array":
            result = TracedArray(trace, Storage(value))
            assert result.storage is not None
            self.found.append(result.storage)
            return result
        result = number(trace, weak(trace, value, type_.dtype) if type_.is_weak else value)
        if self.filled.is_joined:
            trace.part(JoinedKinds).add(result.value)
        return result

    def _part(self, key: slice) -> list[Any]:
        """``items[-3:]`` and its like: a list of known length."""
        first, count = self._ends(key)
        if self.filled.is_joined:
            return [self._item(first + j) for j in range(count)]
        columns = [self._column(k, first, count) for k in range(len(self.filled.types))]
        return [self._read(leaves) for leaves in zip(*columns, strict=True)]

    def _column(self, k: int, first: Any, count: int) -> list[TracedArray]:
        stack = self.filled.arrays[k][first:first + count]
        items = Parts(self.trace, stack.value, (), self.filled.types[k].kind).items(count)
        self.found += [x.storage for x in items if x.storage is not None]
        return items

    def _ends(self, key: slice) -> tuple[Any, int]:
        """The first position and how many follow."""
        start, stop = (0 if key.start is None else key.start), key.stop
        is_plain = key.step is None or (is_int(key.step) and key.step == 1)
        if is_plain and is_int(start) and (stop is None or is_int(stop)):
            from_end = start < 0 and (stop is None or stop < 0)
            if from_end:
                self._require(-start)
                return self.length() + start, max((stop or 0) - start, 0)
            if start >= 0 and stop is not None and stop >= 0:
                self._require(stop)
                return start, max(stop - start, 0)
        elif is_plain and stop is not None:
            first, last = (affine(x, self.counter) for x in (start, stop))
            if first is not None and last is not None and first[0] == last[0] and (
                    first[1] <= last[1] and self._is_below(stop, self.length(), 0)
                    and self._is_below(start, self.length(), 0)):
                return start, last[1] - first[1]
        raise self.refused("is read from a position to another, so many items as only the run "
                           "knows,")

    def __len__(self) -> int:
        raise self.refused("is asked for its length by other code than the program's")

    def __iter__(self) -> Iterator[Any]:
        raise self.refused("is read as a whole")

    def __bool__(self) -> bool:
        return True  # there were items before the loop

    def __getattr__(self, name: str) -> Any:
        raise self.refused(f"is asked for {name!r}")

    def _refuse(self, *operands: Any) -> Any:
        raise self.refused("is used as a whole")

    __setitem__ = __delitem__ = __contains__ = __eq__ = __ne__ = __lt__ = __le__ = _refuse
    __gt__ = __ge__ = __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = _refuse
    __reversed__ = __str__ = __repr__ = __format__ = __reduce_ex__ = _refuse
    __hash__ = object.__hash__

    def refused(self, what: str) -> ConcreteValueError:
        """Why Python must run the loop."""
        return ConcreteValueError(
            f"the list {self.name!r} {what} in a loop that appends to it", loc=self.trace.loc,
            cure="write into an array made before the loop (x[i] = value)")

    # -- afterwards -------------------------------------------------------------------------------

    def is_other(self) -> bool:
        """Whether it differs from the supposed one; then that is noted for the next attempt."""
        filled, owner = self.filled, self.owner
        if isinstance(owner, GrowingList):
            owner.is_wrong |= self.is_wrong
            owner.filled.is_joined |= filled.is_joined
            is_wrong = self.added != filled.per
        else:
            is_wrong = self.is_wrong or self.added != filled.per or filled.is_stale()
            if is_wrong:
                filled.begin_anew()
        filled.per = self.added
        return is_wrong

    def check(self, written: Mapping[Storage, Value], later: set[Any], needed: list[Any]) -> None:
        """Raise where an array that is an item is written in place."""
        region = self.region
        for storage, version in self._appended():
            if storage.version != version or storage in later or any(
                    r in written or r.stands_for is not None for r in roots(storage)
                    if r.born < region or r.stands_for is not None):
                raise self.refused("holds an array that is written after it was appended")
        if any(s.version or s in later for s in self.found):
            raise self.refused("has an item that is written")
        if self.found and not self.before().isdisjoint({*written, *later}):
            raise self.refused("is read where an array is written that it holds")
        found = {*self.found, *(storage for storage, _ in self.of_inner)}
        if isinstance(self.owner, GrowingList):
            found |= {storage for storage, _ in self._appended()}
        if found and any(is_traced(leaf) and leaf.storage is not None and not found.isdisjoint(
                roots(leaf.storage)) for value in needed for leaf in flattened(value)[0]):
            raise self.refused("has an item that a variable holds after the loop,")

    def appended(self) -> list[Storage]:
        """The memory of arrays that were appended."""
        return [storage for storage, _ in self._appended()]

    def _appended(self) -> Iterator[tuple[Storage, int]]:
        """The memory of arrays that were appended, and its version then."""
        for (_, _, array), version in zip(self.items, self.versions, strict=True):
            assert array.storage is not None
            yield array.storage, version
        yield from self.of_inner

    def extend(self, count: int, shared: HasOthers) -> None:
        """The list gets the items of so many iterations."""
        rows, owner = count * self.filled.per, self.owner
        if isinstance(owner, GrowingList):
            owner.added += rows
            owner.of_inner += self._appended()
            owner.found += self.found
            return
        if not rows:
            return
        others = [s for one in self.appended() for s in older_roots(one, self.region)]
        others += shared.others([*self.appended(), *self.found])
        self.columns = [
            Parts(self.trace, array.value, (), type_.kind, others).items(rows, self.filled.least)
            for array, type_ in zip(self.filled.arrays, self.filled.appended, strict=True)]
        owner.extend(unflatten(self.filled.structure, list(leaves))
                     for leaves in zip(*self.columns, strict=True))

    def before(self) -> set[Storage]:
        """The memory that items from before the loop show."""
        leaves = [] if isinstance(self.owner, GrowingList) else flattened(self.owner)[0]
        return {root for leaf in leaves if is_traced(leaf) and leaf.storage is not None
                for root in roots(leaf.storage)}

    def shown(self) -> Iterator[tuple[Storage, tuple[list[Any], bool]]]:
        """The memory that items show, those, and if it is only a part of it."""
        for nth, k, array in self.items:
            if array.storage is not None:
                yield array.storage, (
                    self.columns[k][nth::self.filled.per], bool(array.steps))
