"""The lists that the body of a loop finds as `WrittenList`: which they are, and their arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import reduce
from itertools import chain
from types import CellType
from typing import Any

import numpy as np

from fusec.errors import ConcreteValueError
from fusec.ir import TensorType

from ..choice.aliases import held_by, reached_of
from ..choice.joined_kinds import is_of_other_kind
from ..choice.merge import Disagreement, joined, leaf_value
from ..guards.places import Places
from ..guards.side_effects import is_outside
from ..operands.operands import as_traced, cast
from ..values.array import TracedArray
from ..values.operations import OPERATIONS
from ..values.storage import Storage
from ..values.trace import Trace
from .written_lists import ListTable, WrittenList

MOST_LISTS = 16
MOST_KNOWN = 4_096  # iterations that Python runs where all is known
_PLAIN = frozenset({bool, int, float, complex})


class RefusedLists(dict[int, list[Any]]):
    """Of a trace: lists of which a loop perhaps could not write an item, or read one of those in
    it, by their ids."""


class WrittenLists:
    """Those of one loop, in the cells of its parts: lists of which an attempt wrote items."""

    def __init__(
        self, trace: Trace, bound: Collection[str], is_older: Callable[[Any], bool],
        *parts: Callable[..., Any],
    ) -> None:
        """``bound``: variables that the loop binds; ``is_older``: of lists that a region around it
        has to carry."""
        self.trace, self.bound, self.parts, self.is_older = trace, bound, parts, is_older
        self.cells: dict[str, CellType] = {}
        self.tables: dict[str, ListTable] = {}
        self.are_known = True

    def learn(self) -> bool:
        """Whether another attempt is due, as the latest wrote items of a list."""
        refused = self.trace.part(RefusedLists)
        if not refused or len(self.tables) >= MOST_LISTS:
            return False
        known = len(self.tables)
        for name, cell in self._candidates():
            if name not in self.tables and not self.is_older(cell.cell_contents):
                self._add(name, cell, refused)
        return len(self.tables) > known

    def _candidates(self) -> Iterator[tuple[str, CellType]]:
        """Variables that hold lists."""
        for part in self.parts:
            cells = dict(zip(part.__code__.co_freevars, part.__closure__ or (), strict=True))
            for name, held in held_by(part).items():
                if type(held) is list and held and name not in self.bound:
                    yield name, cells[name]

    def _add(self, name: str, cell: CellType, refused: RefusedLists) -> None:
        owner: list[Any] = cell.cell_contents
        shape, numbers, lists = _taken_apart(owner)
        if not numbers or len({*map(id, lists)}) < len(lists) or not any(
                id(x) in refused for x in lists) or any(
                is_outside(self.trace, x) or self.trace.world.containers.is_held(x)
                or id(x) in self.trace.local.chosen for x in lists):
            return
        ids = {*map(id, lists)}
        type_ = _type_of(self.trace, numbers)
        if type_ is None or any(ids & table.ids for table in self.tables.values()):
            return
        self.are_known = self.are_known and set(map(type, numbers)) <= _PLAIN
        self.cells[name] = cell
        table = _table(self.trace, name, owner, (shape, numbers), *type_)
        table.ids = ids
        self.tables[name] = table

    def widen(self) -> bool:
        """Whether another attempt is due, in which lists have numbers of other types."""
        wrong = [name for name, table in self.tables.items() if table.is_wrong]
        for name in wrong:
            old = self.tables[name]
            shape, numbers, _ = _taken_apart(old.owner)
            self.tables[name] = _table(
                self.trace, name, old.owner, (shape, numbers), old.wanted, old.wants_joined)
            self.tables[name].ids = old.ids
        return bool(wrong)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The loop finds them in the place of the lists, where it finds those by these names only.
        """
        for name, cell in self.cells.items():
            cell.cell_contents = WrittenList(self.tables[name])
        try:
            self._check_names()
            yield
        finally:
            for name, cell in self.cells.items():
                cell.cell_contents = self.tables[name].owner

    def _check_names(self) -> None:
        held = [x for part in self.parts for x in held_by(part).values()]
        held += [place.now() for place in self.trace.part(Places).by_title.values()]
        for table in self.tables.values():
            if reached_of(table.ids, held):
                raise table.refused("has another name")

    def check(self, needed: list[Any]) -> None:
        """Raise where a variable that is read after the loop holds one of them."""
        for value in needed:
            found = value if type(value) is WrittenList else _found_in(value)
            if found is not None:
                raise found.refused("is bound to another name")

    def written(self, storages: Collection[Storage | None]) -> list[list[Any]]:
        """The lists that get other items, where the loop carries this memory."""
        return [x for table in self.tables.values() if table.array.storage in storages
                for x in _taken_apart(table.owner)[2]]

    def store(self) -> None:
        """After the loop: the lists have its items."""
        for table in self.tables.values():
            if table.is_written:
                table.store()

    @property
    def storages(self) -> set[Storage]:
        """The memory of the arrays."""
        return {t.array.storage for t in self.tables.values() if t.array.storage is not None}


def _found_in(value: Any) -> WrittenList | None:
    todo, visited = [value], set[int]()
    while todo:
        x = todo.pop()
        if type(x) is WrittenList:
            return x
        if type(x) in (list, tuple, dict) and id(x) not in visited:
            visited.add(id(x))
            todo += x.values() if type(x) is dict else x
    return None


def _taken_apart(owner: list[Any]) -> tuple[tuple[int, ...], list[Any], list[list[Any]]]:
    """Lengths of a list and of those in it, which are equal, the numbers, and all of the lists; no
    numbers where it holds something else."""
    shape, level, lists = [len(owner)], owner, [owner]
    while level and type(level[0]) is list:
        if any(type(x) is not list or len(x) != len(level[0]) for x in level):
            return (0,), [], []
        shape.append(len(level[0]))
        lists += level
        level = list(chain.from_iterable(level))
    return tuple(shape), level, lists


def _type_of(trace: Trace, numbers: list[Any]) -> tuple[TensorType, bool] | None:
    """The type that holds all, and whether some are of another kind; None for other things."""
    kinds = set(map(type, numbers))
    if kinds <= _PLAIN:
        types = {leaf_value(trace, kind(0)).type for kind in kinds}
    elif all((type(x) is TracedArray and not x.is_array) or isinstance(
            x, (bool, int, float, complex, np.generic)) for x in numbers):
        types = {x.type if type(x) is TracedArray else as_traced(trace, x).type for x in numbers}
    else:
        return None
    try:
        type_ = reduce(joined, types)
    except Disagreement:
        return None
    return type_, any(is_of_other_kind(t, type_) or t != type_ for t in types)


def _table(trace: Trace, name: str, owner: list[Any], content: tuple[tuple[int, ...], list[Any]],
           type_: TensorType, is_joined: bool) -> ListTable:
    shape, numbers = content
    array: TracedArray = _array(trace, numbers, type_.dtype)
    if len(shape) > 1:
        array = array.reshape(shape)
    value = cast(trace, array.value, type_.dtype)
    return ListTable(trace, name, owner, TracedArray(trace, Storage(value)), type_, is_joined)


def _array(trace: Trace, numbers: list[Any], dtype: np.dtype) -> Any:
    if set(map(type, numbers)) <= _PLAIN:
        try:
            known = np.array(numbers, dtype)
        except OverflowError:
            raise ConcreteValueError(
                "a list holds ints of more than 64 bits in a loop that writes its items",
                loc=trace.loc, cure="use floats, or one variable each") from None
        if known.tobytes() == known[:1].tobytes() * len(known):
            first = trace.builder.const(known[0])
            return TracedArray(trace, Storage(
                trace.emit("BroadcastTo", first, shape=known.shape)))
    return OPERATIONS.array(trace, numbers, dtype)
