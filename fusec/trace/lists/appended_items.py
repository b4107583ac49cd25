"""Lists that a loop of the graph appends to: its items are collected in arrays.

``path.append(x)`` once per iteration, in a loop of known length, writes ``x`` to row k of an array
that the loop carries.  After the loop the rows are the list's new elements; ``np.array(path)`` is
then the array itself.  The body may do nothing else with the list: Python would see it as it is
while tracing.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import ConcreteValueError
from fusec.ir import TensorType, Value

from ..choice.aliases import held_by, is_reached
from ..choice.merge import is_number, is_traced, leaf_value, lifted, unflatten
from ..choice.regions import placeholder
from ..facts.trees import flattened
from ..values.array import TracedArray, from_value
from ..values.operations import OPERATIONS
from ..values.rows import (
    SHORT,
    CopiedRow,
    Pending,
    Run,
    nested,
    part_of,
    pending_of,
    runs,
    whole,
)
from ..values.selected_arrays import roots
from ..values.storage import Storage
from ..values.trace import Trace
from .item_containers import ItemContainers


class ReadWhole(list[list[Any]]):
    """Of a trace: lists of which all that the program does is to give them to calls."""


Shown = dict[Storage, tuple[list[Any], bool]]  # the items that show memory, and if a part of it


@dataclass
class Appended:
    """One value appended in every iteration: its leaves, by the rows that the loop carries.  A leaf
    that is a long list of parts of one array is that array, with the ``lengths`` of the lists."""

    name: str
    owner: list[Any]
    structure: Any
    leaves: list[Value]
    lengths: list[tuple[Any, ...]]
    kinds: list[str]
    memory: list[Storage | None]  # of each leaf, with its version
    versions: list[int]
    are_views: list[bool] = field(default_factory=list)
    keys: list[tuple[str, int]] = field(default_factory=list)
    shown: Shown = field(default_factory=dict)
    is_read_whole: bool = False  # by what needs no item by itself

    def extend(self, trace: Trace, stacks: list[Value], count: int, start: int,
               shared: Callable[[Sequence[Storage | None]], list[Storage]]) -> Iterator[Any]:
        """The items of each iteration; views of memory older than the loop are copies that are
        not to be written."""
        columns = [self._listed(trace, k, stack, count, [
            *older_roots(self.memory[k], start), *shared([self.memory[k]])])
            for k, stack in enumerate(stacks)]
        self.shown = {
            storage: (column, is_view) for storage, column, is_view, lengths in zip(
                self.memory, columns, self.are_views, self.lengths, strict=True)
            if storage is not None and not lengths}
        if self.structure.is_leaf():
            return iter(columns[0])
        return (unflatten(self.structure, list(leaves)) for leaves in zip(*columns, strict=True))

    def _listed(
        self, trace: Trace, k: int, stack: Value, count: int, others: list[Storage]
    ) -> list[Any]:
        """A leaf in each iteration."""
        lengths, pending = (count, *self.lengths[k]), Pending()
        for axis, length in enumerate(lengths if self.is_read_whole else ()):
            pending.add(axis, length)
        return nested(trace, stack, lengths, self.kinds[k], others, pending)


def older_roots(storage: Storage | None, start: int) -> list[Storage]:
    """The memory from before a node that an array shows."""
    return [] if storage is None else [r for r in roots(storage) if r.born < start]


class Collector:
    """Takes the appends of one trace of a loop body."""

    def __init__(
        self, trace: Trace, body: Callable[..., Any], carried: Mapping[str, Any],
        containers: ItemContainers,
    ) -> None:
        self.trace, self.carried, self.containers = trace, carried, containers
        self.region = trace.record.regions[-1]
        self.held = held_by(body)
        self.uses, self.lists = _lists(body, self.held, carried)
        self.alone: dict[str, bool] = {}
        self.appends: list[Appended] = []

    def takes(self, fn: Any, args: tuple[Any, ...]) -> bool:
        """Whether ``fn(*args)`` is such an append; it is noted and must not run."""
        name = self.lists.get(id(getattr(fn, "__self__", None)))
        if name is None or fn.__name__ != "append" or len(args) != 1 or (
                self.trace.record.regions[-1] != self.region) or not self._is_alone(name):
            return False
        leaves, structure = flattened(args[0], self._is_array)
        leaves = [lifted(self.trace, leaf) for leaf in leaves]
        if not all(is_number(leaf) or is_traced(leaf) or type(leaf) is list for leaf in leaves):
            return False
        is_plain = structure.is_leaf() or (type(args[0]) is tuple and len(args[0]) == len(
            leaves) and list not in map(type, leaves))
        is_read_whole = is_plain and any(fn.__self__ is x for x in self.trace.part(ReadWhole))
        lengths, kinds = _all_lengths(leaves, is_read_whole)
        values = [leaf_value(self.trace, leaf) for leaf in leaves]
        if not values or not all(v.type.is_static for v in values):
            return False
        self.containers.note(args[0])
        memory = [leaf.storage if is_traced(leaf) else None for leaf in leaves]
        self.appends.append(Appended(
            name, fn.__self__, structure, values, [*lengths],
            [kind or value.type.kind for kind, value in zip(kinds, values, strict=True)],
            memory, [0 if s is None else s.version for s in memory],
            [is_traced(leaf) and bool(leaf.steps) for leaf in leaves],
            is_read_whole=is_read_whole))
        return True

    def _is_array(self, x: Any) -> bool:
        """Whether it is a long list of parts of one array, with memory of their own."""
        return type(x) is list and len(x) > 0 and type(_first(x)) is TracedArray and (
            not isinstance(_first(x).storage, CopiedRow)) and whole(self.trace, x) is not None

    def check(self, written: Container[Storage], later: Container[Storage | None]) -> None:
        """Raise where an iteration, or a ``later`` one, writes to an appended item."""
        for appended in self.appends:
            for storage, version in zip(appended.memory, appended.versions, strict=True):
                if storage is not None and (storage.version != version or storage in later or any(
                        r in written or r.stands_for is not None for r in roots(storage)
                        if r.born < self.region or r.stands_for is not None)):
                    raise ConcreteValueError(
                        "an array in a list is written in the loop that appends it",
                        loc=self.trace.loc, cure="append a copy: items.append(x.copy())")

    def check_reads(self) -> None:
        """Raise where the body names a list elsewhere: it would find it as it was before the loop,
        and may have met an IndexError that Python does not meet."""
        for name in {a.name for a in self.appends}:
            if self.uses[name] != sum(a.name == name for a in self.appends):
                raise ConcreteValueError(
                    f"the list {name!r} is read in a loop that appends to it", loc=self.trace.loc,
                    cure="write into an array made before the loop (x[i] = value)")

    def _is_alone(self, name: str) -> bool:
        """Whether the body finds the list by this variable only."""
        if name not in self.alone:
            others = [value for other, value in self.held.items() if other != name]
            self.alone[name] = not is_reached(
                self.held[name], [*others, *self.carried.values()])
        return self.alone[name]

    def rows(self, count: int) -> list[tuple[tuple[str, int], Value, Value]]:
        """For each leaf a key, and a parameter for the rows with the leaf that goes into them."""
        rows = []
        for position, appended in enumerate(self.appends):
            for i, leaf in enumerate(appended.leaves):
                key = f"{appended.name}.append {position}", i
                type_ = TensorType(leaf.dtype, (count, *leaf.shape), "array")
                rows.append((key, placeholder(self.trace, type_, appended.name), leaf))
                appended.keys.append(key)
        return rows


def _first(x: list[Any]) -> Any:
    """The first item in lists of lists."""
    while type(x) is list and x:
        x = x[0]
    return x


def _all_lengths(
    leaves: list[Any], is_read_whole: bool
) -> tuple[Sequence[tuple[Any, ...]], Sequence[str]]:
    """Those of each leaf, and the kinds; unless all that is done with them is to read them as a
    whole, the lists have as many items as in the traced call."""
    pending = list(map(pending_of, leaves))
    for one in pending if not is_read_whole else ():
        one.settle()
    found = [_lengths(leaf, one) for leaf, one in zip(leaves, pending, strict=True)]
    return [lengths for lengths, _ in found], [kind for _, kind in found]


def _lengths(leaf: Any, pending: Pending) -> tuple[tuple[Any, ...], str]:
    """Of lists of lists; and the kind of their items."""
    lengths: list[Any] = []
    while type(leaf) is list:
        lengths.append(pending.get(len(lengths), len(leaf)))
        leaf = leaf[0]
    kind = "" if not lengths or type(leaf) is not TracedArray else (
        "array" if leaf.is_array else leaf.type.kind)
    return tuple(lengths), kind


def _lists(
    body: Callable[..., Any], held: dict[str, Any], carried: Container[str]
) -> tuple[dict[str, int], dict[int, str]]:
    """Uses of names in the body, and the lists that its variables hold, by identity.

    Variables that the loop may bind are left out.
    """
    code: Any = body.__code__
    inner = {n for c in code.co_consts if isinstance(c, CodeType) for n in c.co_freevars}
    uses = dict.fromkeys(held, 0)
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_DEREF" and step.argval in uses:
            uses[step.argval] += 1
    lists = {id(x): name for name, x in held.items() if type(x) is list and name not in inner
             and name not in carried}
    return uses, lists


def _joined(trace: Trace, found: list[Run | list[Any]]) -> TracedArray:
    """Runs of items, and items between them, as one array."""
    pieces: list[Any] = []
    for run in found:
        if isinstance(run, list):
            pieces.append(OPERATIONS.array(trace, run))
            continue
        array = from_value(trace, part_of(trace, (run.parts.stack, run.parts.prefix), "array"))
        pieces.append(array[run.positions])
    joined: Any = np.concatenate(pieces)
    return joined


def restacked(trace: Trace, items: Any) -> TracedArray | None:
    """The array of which the items are all rows, in order, or several joined; for items that are
    tuples or lists an array of the columns.  None for anything else."""
    place = whole(trace, items)
    if place is not None:
        return from_value(trace, part_of(trace, place, "array"))
    if len(items) > SHORT:
        found = runs(items)
        if found is not None:
            return _joined(trace, found)
    if not all(type(i) in (list, tuple) and len(i) == len(items[0]) for i in items):
        return None
    columns: list[Any] = [restacked(trace, [i[j] for i in items]) for j in range(len(items[0]))]
    if not columns or any(c is None or c.ndim != columns[0].ndim for c in columns):
        return None
    stacked: Any = np.stack(columns, axis=1)
    return stacked
