"""The lists that the body of a loop finds as `GrowingList`: which they are, their first items,
and the facts about them after an attempt."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from types import CellType, CodeType
from typing import Any

from fusec.ir import TensorType, Value

from ..choice.aliases import held_by, is_reached
from ..choice.joined_kinds import is_of_other_kind
from ..choice.merge import Disagreement, joined, leaf_value
from ..facts.trees import flattened
from ..values.array import TracedArray
from ..values.operations import OPERATIONS
from ..values.storage import Storage
from ..values.trace import Trace
from .appended_items import Shown
from .growing_lists import FilledList, GrowingList, leaves_of
from .item_containers import ItemContainers
from .shared_items import SharedItems


class GrowingLists:
    """Those of one attempt at a loop, in the cells of its body."""

    def __init__(
        self, trace: Trace, body: Callable[..., Any], count: Any, known: dict[str, FilledList],
        changed: Callable[[], None], bound: Mapping[str, Any],
    ) -> None:
        self.trace, self.known, self.count, self.changed = trace, known, count, changed
        self.cells: dict[str, CellType] = {}
        self.lists: dict[str, GrowingList] = {}
        self.bound, self.body = bound, body
        before = self.storages_of(known.values())
        for name, cell in _candidates(body, bound):
            one = self._of(name, cell.cell_contents)
            if one is not None:
                self.cells[name], self.lists[name] = cell, one
        self.given_up = before - set(self.storages)

    def _of(self, name: str, items: Any) -> GrowingList | None:
        if isinstance(items, GrowingList):
            outer = items.filled
            inner = self.known.setdefault(name, FilledList(
                outer.structure, outer.types, 0, appended=outer.appended, arrays=outer.arrays))
            inner.is_joined, base = outer.is_joined, items.length()
            return GrowingList(self.trace, name, items, inner, base, items.least + items.added)
        filled = self.known.get(name)
        if filled is None:
            filled = _of_items(self.trace, items)
            if filled is None:
                return None
            self.known[name] = filled
        if filled.is_stale():
            filled.begin_anew()
        if not filled.arrays:
            filled.arrays = _made(self.trace, items, filled, self.count)
        return GrowingList(self.trace, name, items, filled, len(items), len(items))

    def begin(self, counter: TracedArray, containers: ItemContainers) -> None:
        """The body finds them in the place of the lists, where it finds those by these names only.
        """
        for name, one in self.lists.items():
            self.cells[name].cell_contents = one
            one.begin(counter, containers)
        held = [*self.bound.values(), *held_by(self.body).values()]
        for one in self.lists.values():
            if is_reached(one.owner, [x for x in held if x is not one]):
                raise one.refused("has another name")

    def end(self) -> None:
        """The lists are back."""
        for name, one in self.lists.items():
            self.cells[name].cell_contents = one.owner

    def settle(self, finals: Mapping[str, Any], needed: list[Any],
               written: Mapping[Storage, Value], later: set[Any]) -> None:
        """Compare an iteration with the supposition; ``needed``: the values of the variables that
        are read after the loop."""
        for one in self.lists.values():
            if one.is_other():
                self.changed()
                continue
            one.check(written, later, needed)
            if is_reached(one, list(finals.values())):
                raise one.refused("is bound to another name")

    def check_are_reached(self) -> None:
        """Raises `ConcreteValueError` where the loop is in a branch of one that fills the list."""
        for one in self.lists.values():
            if isinstance(one.owner, GrowingList) and one.filled.per:
                one.owner.check_is_reached()

    def extend(self, count: int, shared: SharedItems) -> None:
        """The lists get the items that the loop appended."""
        for one in self.lists.values():
            one.extend(count, shared)

    def are_known(self) -> bool:
        """Whether all that they begin with is known while tracing."""
        return not any(type(one.owner) is GrowingList or any(
            type(leaf) is TracedArray for leaf in flattened(one.owner)[0])
            for one in self.lists.values())

    def shown(self) -> Shown:
        """The memory that items show."""
        return dict(pair for one in self.lists.values() if one.columns for pair in one.shown())

    @property
    def storages(self) -> set[Storage]:
        """The memory that is filled."""
        return self.storages_of(one.filled for one in self.lists.values())

    @staticmethod
    def storages_of(lists: Iterable[FilledList]) -> set[Storage]:
        """That of some."""
        return {a.storage for filled in lists for a in filled.arrays if a.storage is not None}


def _candidates(
    body: Callable[..., Any], bound: Mapping[str, Any]
) -> Iterator[tuple[str, CellType]]:
    """Variables that hold lists which the body may append to and read."""
    code: Any = body.__code__
    if not _mentions_append(code):
        return
    cells = dict(zip(code.co_freevars, body.__closure__ or (), strict=True))
    around = held_by(body)
    for name, held in around.items():
        if name not in bound and (type(held) is GrowingList or (type(held) is list and held)):
            appends, others = _uses(code, name)
            if appends and (others or type(held) is GrowingList or is_reached(
                    held, [x for other, x in around.items() if other != name])):
                yield name, cells[name]


def _uses(code: CodeType, name: str, inside: bool = False) -> tuple[int, int]:
    """How often code appends to a variable's list, and how often it, or code inside it, uses
    it otherwise."""
    appends = others = 0
    steps = list(dis.get_instructions(code))
    for step, following in pairwise(steps):
        if step.argval == name and step.opname == "LOAD_DEREF":
            is_append = following.opname == "LOAD_CONST" and following.argval == "append"
            appends, others = appends + is_append, others + (inside or not is_append)
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and name in inner.co_freevars:
            more = _uses(inner, name, inside=True)
            appends, others = appends + more[0], others + more[1]
    return appends, others


def _mentions_append(code: CodeType) -> bool:
    return "append" in code.co_consts or any(
        _mentions_append(c) for c in code.co_consts if isinstance(c, CodeType))


def _of_items(trace: Trace, items: list[Any]) -> FilledList | None:
    """A list of numbers or arrays of one structure and shape; None for others."""
    _, structure = flattened(items[0])
    columns = [leaves_of(trace, item, structure, are_old=True) for item in items]
    if not structure.num_leaves or any(leaves is None for leaves in columns):
        return None
    types: list[TensorType] = []
    is_joined = False
    for leaves in zip(*columns, strict=True):
        kinds = [leaf.type if type(leaf) is TracedArray else leaf_value(trace, leaf).type
                 for leaf in leaves]
        type_ = kinds[0]
        for kind in kinds[1:]:
            try:
                type_ = joined(type_, kind)
            except Disagreement:
                return None
        is_joined |= any(is_of_other_kind(kind, type_) or kind != type_ for kind in kinds)
        if not type_.is_static or (type_.kind == "array" and not type_.shape):
            return None
        types.append(type_)
    return FilledList(structure, types, len(items), is_joined=is_joined)


def _made(trace: Trace, items: list[Any], filled: FilledList, count: int) -> list[TracedArray]:
    """The arrays, with the items that there are."""
    columns = list(zip(*(flattened(item)[0] for item in items), strict=True))
    arrays = []
    for column, type_ in zip(columns, filled.types, strict=True):
        shape = (len(items) + count * filled.per, *type_.shape)
        zero = trace.builder.const(type_.dtype.type(0))
        array = TracedArray(trace, Storage(trace.emit("BroadcastTo", zero, shape=shape)))
        array[:len(items)] = OPERATIONS.array(trace, list(column), type_.dtype)
        arrays.append(array)
    return arrays
