"""Arrays that tasks give in blocks: the keys of these, and where each block lies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dask._task_spec import Task, TaskRef

from fusec.core.records import dataclass
from fusec.ir.lazy_values import lazy
from fusec.ops.splitting import Box, Interval
from fusec.passes.split.grids import covering

from .block_tasks import Layout, cut_part

Tasks = dict[Any, Any]
_ONE: Layout = (None, None)  # one part, all of it


@dataclass(frozen=True, eq=False)
class Stored:
    """``bounds``: by axis its blocks; ``key(numbers)``: the key of one; ``is_shared``: every block
    of a reader's gets the whole, of which its task takes a part."""

    name: str
    bounds: tuple[tuple[Interval, ...], ...]
    key: Callable[[tuple[int, ...]], Any]
    itemsize: int
    is_shared: bool = False

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of its blocks, as Dask has them."""
        return tuple(tuple(stop - start for start, stop in axis) for axis in self.bounds)

    @lazy
    def _numbers(self) -> list[dict[Interval, int]]:
        """By axis the number of each block."""
        return [{part: number for number, part in enumerate(axis)} for axis in self.bounds]

    def block(self, box: Box) -> tuple[int, ...] | None:
        """The numbers of the block that is this box; None where none is."""
        numbers = tuple([axis.get(part, -1) for axis, part in zip(
            self._numbers, box, strict=True)])
        return None if -1 in numbers else numbers

    def parts(self, box: Box) -> Iterator[tuple[tuple[int, ...], Box, bool]]:
        """The blocks that hold parts of a box, in C order: with the part of the block that is
        wanted, and whether that is all of it."""
        axes = [[self._along(axis, part, number) for number in covering(self.bounds[axis], part)]
                for axis, part in enumerate(box)]
        for chosen in itertools.product(*axes):
            yield (tuple(number for number, _, _ in chosen),
                   tuple(part for _, part, _ in chosen), all(whole for *_, whole in chosen))

    def _along(self, axis: int, wanted: Interval, number: int) -> tuple[int, Interval, bool]:
        start, stop = self.bounds[axis][number]
        first, last = max(wanted[0], start) - start, min(wanted[1], stop) - start
        return number, (first, max(last, first)), (first, last) == (0, stop - start)

    def grid(self, box: Box) -> tuple[int, ...]:
        """How many blocks a box is put together of, along each axis."""
        return tuple(len(covering(self.bounds[axis], part)) for axis, part in enumerate(box))


def whole(name: str, key: Any, shape: Sequence[int], itemsize: int) -> Stored:
    """A value that is one block."""
    return Stored(name, tuple(((0, int(size)),) for size in shape), lambda _: key, itemsize,
                  is_shared=True)


@dataclass
class Reads:
    """The parts of stored arrays that tasks read; what is cut out for other tasks is a task of its
    own, so that no more than it travels."""

    tasks: Tasks
    moved: int = 0  # bytes that are cut out of blocks for the tasks of others

    def argument(self, stored: Stored, box: Box) -> tuple[Layout, list[TaskRef]]:
        """How a task gets a box of an array: its layout, and the references that it needs."""
        block = stored.block(box)
        if block is not None:
            return _ONE, [TaskRef(stored.key(block))]
        parts = list(stored.parts(box))
        if len(parts) == 1:
            numbers, part, is_all = parts[0]
            reference = TaskRef(stored.key(numbers))
            if is_all or stored.is_shared:
                return (None, None if is_all else part), [reference]
            return _ONE, [self._cut(stored, numbers, part)]
        references = [TaskRef(stored.key(numbers)) if is_all else self._cut(stored, numbers, part)
                      for numbers, part, is_all in parts]
        return (stored.grid(box), None), references

    def _cut(self, stored: Stored, numbers: tuple[int, ...], part: Box) -> TaskRef:
        block = stored.key(numbers)
        key: Any = (f"{stored.name}-part", *numbers, *itertools.chain(*part))
        if key not in self.tasks:
            self.tasks[key] = Task(key, cut_part, TaskRef(block), part)
            size = stored.itemsize
            for start, stop in part:
                size *= stop - start
            self.moved += size
        return TaskRef(key)
