"""From stages to the tasks of Dask's graph: one a block and stage, and the trees of barriers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from dask._task_spec import DataNode, Task, TaskRef

from fusec.core.records import dataclass, field
from fusec.ir import Value
from fusec.ops.splitting import Box
from fusec.passes.split.barriers import Barrier
from fusec.passes.split.geometries import Geometries, Geometry
from fusec.passes.split.local_graphs import Halos, LocalGraph, local_graph
from fusec.passes.split.narrow_blocks import Slices
from fusec.passes.split.stages import BlockFamily, Root, Stages

from .block_tasks import StageCode, finish_blocks, join_blocks, run_block, take_result
from .joins import JoinOf, group_of
from .split_report import StageReport, report_of
from .stored import Reads, Stored, Tasks, whole

Block = tuple[int, ...]


@dataclass
class Kinds:
    """The graphs of one family: one for each kind of block."""

    family: BlockFamily
    graphs: list[LocalGraph] = field(default_factory=list)
    _numbers: dict[Any, int] = field(default_factory=dict)

    def number(self, geometry: Geometry) -> int:
        """That of the graph of a block."""
        number = self._numbers.get(geometry.key)
        if number is None:
            number = self._numbers[geometry.key] = len(self.graphs)
            self.graphs.append(local_graph(self.family, geometry))
        return number

    def slots(self, graph: LocalGraph) -> list[int | None]:
        """By result of the stage the output of a graph."""
        return [None if first is None else first + k
                for root, first in zip(self.family.roots, graph.outputs, strict=True)
                for k in range(root.width)]

    def kept(self, graph: LocalGraph) -> list[Slices | None]:
        """By result of the stage what is kept of an output."""
        return [part for root, part in zip(self.family.roots, graph.kept, strict=True)
                for _ in range(root.width)]


@dataclass
class LayerBuilder:
    """Makes the tasks of stages.  ``stored``: where each value that tasks read is."""

    name: str
    token: str
    stages: Stages
    stored: dict[Value, Stored]
    tasks: Tasks = field(default_factory=dict)
    codes: list[StageCode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reads = Reads(self.tasks)
        self.reports: list[StageReport] = []

    def key_name(self, *parts: Any) -> str:
        """The first part of keys, as Dask has them: words, and the token at the end."""
        return "-".join([self.name, *map(str, parts), self.token])

    def build(self) -> None:
        """Make the tasks of every family."""
        for number, family in enumerate(self.stages.families):
            _FamilyTasks(self, family, number).build()


class _FamilyTasks:
    """The tasks of one family."""

    def __init__(self, layers: LayerBuilder, family: BlockFamily, number: int) -> None:
        self.layers, self.family, self.number = layers, family, number
        self.states = layers.stages.states
        self.name = layers.key_name(f"stage{family.stage}", number)
        self.kinds, self.halos = Kinds(family), Halos(self.states, family)
        self.is_single = len(family.roots) == 1 and family.roots[0].barrier is None
        self.done: list[tuple[Block, Geometry]] = []
        self.kept: dict[Root, list[tuple[int | None, dict[int, int]]]] = {}

    def build(self) -> None:
        code_key = self.layers.key_name("code", self.number)
        work = list(self._work())
        like: dict[int, tuple[Geometry, int]] = {}
        for _, geometry, kind in work:
            like[kind] = geometry, like.get(kind, (geometry, 0))[1] + 1
        graphs = self.kinds.graphs
        code = StageCode(self.name, [k.graph.to_json() for k in graphs],
                         [*map(self.kinds.slots, graphs)], [*map(self.kinds.kept, graphs)])
        self.layers.codes.append(code)
        self.layers.reports.append(report_of(self.family, like, self.halos.widest))
        self.layers.tasks[code_key] = DataNode(code_key, code)
        self._place_results()
        for block, geometry, kind in work:
            self._task(block, geometry, kind, code_key)
        for slot, root in self._slotted():
            if root.barrier is None and not self.is_single:
                self._take(root, slot)
        self._trees()

    def _work(self) -> Iterator[tuple[Block, Geometry, int]]:
        """The blocks that have elements, with their boxes and the numbers of their graphs."""
        geometries = Geometries(self.states, self.family)
        for block in itertools.product(*(
                range(self.states.lines.blocks(line)) for line in self.family.grid)):
            geometry = geometries.of(block)
            if geometry is not None:
                self.halos.note(block, geometry)
                yield block, geometry, self.kinds.number(geometry)

    def _slotted(self) -> Iterator[tuple[int, Root]]:
        """The roots, each with the number of its first result."""
        slot = 0
        for root in self.family.roots:
            yield slot, root
            slot += root.width

    # -- keys

    def _key(self, block: Block) -> Any:
        """The key of a block's task: that of its one result, where it is an array's block."""
        root = self.family.roots[0]
        if self.is_single:
            return self.layers.stored[root.value].key(self._numbers(root, block))
        return (self.name, *block)

    def _numbers(self, root: Root, block: Block) -> Block:
        """The numbers of a result's block among those that have elements."""
        kept = self.kept.get(root)
        if kept is None:
            kept = self.kept[root] = [
                (at, {} if at is None else self._kept(root, axis))
                for axis, at in enumerate(root.along[:root.value.type.rank])]
        return tuple([0 if at is None else numbers[block[at]] for at, numbers in kept])

    def _kept(self, root: Root, axis: int) -> dict[int, int]:
        """The blocks along an axis that have elements, with their numbers among these."""
        place, size, lines = root.places[axis], root.sizes[axis], self.states.lines
        assert place is not None
        parts = lines.intervals(place, size)
        kept = (block for block, part in enumerate(parts) if range(*part))
        return {block: number for number, block in enumerate(kept)} or (
            dict.fromkeys(range(len(parts)), 0))  # an axis without elements

    def _place_results(self) -> None:
        """Note where the results will be."""
        for slot, root in self._slotted():
            name = self.layers.key_name(self.number, slot)
            rank, value = root.value.type.rank, root.value
            lines = self.states.lines
            bounds = tuple(
                ((0, size),) if place is None else tuple(lines.bounds(place, size))
                for place, size in zip(root.places[:rank], root.sizes[:rank], strict=True))
            self.layers.stored[value] = Stored(
                name, bounds, partial(_key_of_block, name), value.dtype.itemsize,
                is_shared=not any(root.places[:rank]))

    # -- tasks

    def _task(self, block: Block, geometry: Geometry, kind: int, code_key: str) -> None:
        layouts, references = [], []
        for leaf, box in geometry.reads:
            layout, needed = self.layers.reads.argument(self.layers.stored[leaf], box)
            layouts.append(layout)
            references += needed
        starts = self.kinds.graphs[kind].numbers(self.family, geometry)
        key = self._key(block)
        self.layers.tasks[key] = Task(key, run_block, TaskRef(code_key), kind, starts,
                                      tuple(layouts), self.is_single, *references)
        self.done.append((block, geometry))

    def _take(self, root: Root, slot: int) -> None:
        """The blocks of one of several results."""
        stored = self.layers.stored[root.value]
        number = self.family.roots.index(root)
        for block, geometry in self.done:
            if not geometry.empty[number]:
                key = stored.key(self._numbers(root, block))
                self.layers.tasks[key] = Task(key, take_result, TaskRef((self.name, *block)), slot)

    # -- trees

    def _trees(self) -> None:
        """The tasks that join barriers' partials; one tree for those that have the same blocks."""
        alike: dict[Any, list[_Partials]] = {}
        for slot, root in self._slotted():
            if root.barrier is not None:
                partials = self._partials(root, slot)
                blocks = tuple((numbers, tuple(block for block, _ in members))
                               for numbers, members in partials.groups.items())
                alike.setdefault(blocks, []).append(partials)
        are_alone = all(root.barrier is not None for root in self.family.roots)
        for together in alike.values():
            wanted = [slot for partials in together for slot in partials.slots]
            slots = {slot: slot if are_alone else k for k, slot in enumerate(wanted)}
            for numbers, members in together[0].groups.items():
                keys = [(self.name, *block) for block, _ in members]
                if not are_alone:
                    keys = [self._alone(key, tuple(wanted)) for key in keys]
                joins = [JoinOf(p.barrier.join, tuple(slots[slot] for slot in p.slots),
                                p.counts(numbers)) for p in together]
                self._join(together, numbers, keys, joins)

    def _partials(self, root: Root, slot: int) -> _Partials:
        """The blocks that have a partial of a barrier, for each block of its result."""
        groups: dict[Block, list[tuple[Block, Box]]] = {}
        number, rank = self.family.roots.index(root), root.value.type.rank
        for block, geometry in self.done:
            if not geometry.empty[number]:
                groups.setdefault(self._numbers(root, block), []).append(
                    (block, geometry.roots[number][rank:]))
        return _Partials(root, tuple(range(slot, slot + root.width)), groups)

    def _alone(self, key: Any, slots: tuple[int, ...]) -> Any:
        """The partials of a block whose task gives larger arrays as well, which must not travel."""
        own = (self.layers.key_name("partial", self.number, slots[0]), *key[1:])
        self.layers.tasks[own] = Task(own, take_results, TaskRef(key), slots)
        return own

    def _join(
        self, together: Sequence[_Partials], numbers: Block, row: list[Any], joins: list[JoinOf]
    ) -> None:
        """Join partials until few are left, all barriers' at a time; then finish each barrier's."""
        places = [self.layers.stored[p.root.value] for p in together]
        name = self.layers.key_name("join", *places[0].name.split("-")[-3:-1])
        group = group_of(sum(p.bytes_at(stored, numbers) for p, stored in zip(
            together, places, strict=True)))
        for level in itertools.count():
            if len(row) <= group:
                break
            after = []
            for start in range(0, len(row), group):
                part = slice(start, start + group)
                key = (name, level, *numbers, start // group)
                self.layers.tasks[key] = Task(key, join_blocks, tuple(
                    join.part(part) for join in joins), *map(TaskRef, row[part]))
                after.append(key)
            row, joins = after, [JoinOf(join.name, k, None) for k, join in enumerate(joins)]
        for partials, stored, join in zip(together, places, joins, strict=True):
            key = stored.key(numbers)
            self.layers.tasks[key] = Task(key, finish_blocks, join, partials.barrier.options,
                                          *map(TaskRef, row))


@dataclass(frozen=True)
class _Partials:
    """The partials of one barrier: their places among a task's results, and by block of the
    barrier's result the blocks that they are of, with the part that is joined along."""

    root: Root
    slots: tuple[int, ...]
    groups: dict[Block, list[tuple[Block, Box]]]

    @property
    def barrier(self) -> Barrier:
        assert self.root.barrier is not None
        return self.root.barrier

    def counts(self, numbers: Block) -> tuple[int, ...] | None:
        """The elements that each partial is of, where joining counts them."""
        if self.barrier.join != "moments":
            return None
        return tuple(self.barrier.elements * math.prod(stop - start for start, stop in box)
                     for _, box in self.groups[numbers])

    def bytes_at(self, stored: Stored, numbers: Block) -> int:
        """Of one partial."""
        return self.root.width * stored.itemsize * math.prod(
            sizes[number] for sizes, number in zip(stored.chunks, numbers, strict=True))


def take_results(results: tuple[Any, ...], slots: Sequence[int]) -> tuple[Any, ...]:
    """Several of a block's results."""
    return tuple(results[slot] for slot in slots)


def _key_of_block(name: str, numbers: Block) -> Any:
    """Dask's key of a block."""
    return (name, *numbers)


__all__ = ["LayerBuilder", "whole"]
