"""`fusec.explain` of calls with arrays in blocks, and the check of memory before a run."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fusec.compiled.reports.explain import Explanation
from fusec.core.display.amounts import bytes_text, count_text
from fusec.core.display.notebook import preformatted
from fusec.core.records import dataclass
from fusec.errors import user_error
from fusec.ir import Loc, Value
from fusec.ops.splitting import Box
from fusec.passes.split.geometries import Geometry
from fusec.passes.split.split_states import shown_name
from fusec.passes.split.stages import BlockFamily, Root


@dataclass(frozen=True)
class StageReport:
    """The tasks of one family.  ``task_bytes``: of the largest block's operands and results."""

    stage: int
    blocks: int
    kinds: int
    stored: Sequence[str]
    barriers: Sequence[str]
    edges: Sequence[str]
    task_bytes: int
    partial_bytes: int  # of all blocks' partials, which travel to be joined

    def lines(self) -> Iterator[str]:
        yield (f"stage {self.stage}: {count_text(self.blocks, 'task')}, "
               f"{count_text(self.kinds, 'graph')}, at most {bytes_text(self.task_bytes)} a task")
        yield from (f"  gives {text}" for text in self.stored)
        yield from (f"  barrier: {text}" for text in self.barriers)
        yield from (f"  edges: {text}" for text in self.edges)
        if self.partial_bytes:
            yield f"  partial results: {bytes_text(self.partial_bytes)}"


@dataclass(frozen=True)
class SplitExplanation(Explanation):
    """The explanation of a call with arrays in blocks: loops, stages, barriers, edges, memory.

    ``peak_bytes``: of one task's operands and results, the largest; a worker that runs several at a
    time needs as often as much, and what it keeps of other blocks besides.
    """

    stages: Sequence[StageReport] = ()
    moved_bytes: int = 0  # cut out of blocks for the tasks of others
    loops: Sequence[str] = ()  # what became of branches and loops that read blocks, a line each

    @property
    def peak_bytes(self) -> int:
        return max((stage.task_bytes for stage in self.stages), default=0)

    @property
    def tasks(self) -> int:
        """One a block and stage; those of trees and edges are not counted."""
        return sum(stage.blocks for stage in self.stages)

    def __str__(self) -> str:
        lines = [f"{self.function}: {count_text(self.tasks, 'task')} of blocks", *self.loops]
        for stage in self.stages:
            lines += stage.lines()
        lines.append(f"moved between blocks: {bytes_text(self.moved_bytes)}")
        lines.append(f"peak of a task: {bytes_text(self.peak_bytes)}")
        return "\n".join(lines)

    __repr__ = __str__

    def html(self) -> str:
        """The text as HTML."""
        return preformatted(str(self))


def report_of(
    family: BlockFamily, work: Mapping[int, tuple[Geometry, int]],
    halos: dict[tuple[Value, int], int],
) -> StageReport:
    """The report of a family; ``work``: by kind of block the boxes of one, and how many there are.
    """
    stored = [_named(root) for root in family.roots if root.barrier is None]
    barriers = [f"{_named(root)}, joined by {root.barrier.join}"
                for root in family.roots if root.barrier is not None]
    edges = [f"{count_text(halo, 'element')} of {shown_name(leaf)} along axis {axis}"
             for (leaf, axis), halo in halos.items()]
    return StageReport(
        family.stage, sum(count for _, count in work.values()), len(work), stored, barriers, edges,
        max((_task_bytes(family, geometry) for geometry, _ in work.values()), default=0),
        sum(count * _partial_bytes(family, geometry) for geometry, count in work.values()))


def _named(root: Root) -> str:
    node = root.value.node if root.barrier is None else root.barrier.node
    name = shown_name(root.value) if root.barrier is None else node.name
    return f"{name}: {root.value.type}" + _at(node.loc)


def _at(loc: Loc | None) -> str:
    return "" if loc is None else f" at {loc}"


def _bytes(value: Value, box: Box) -> int:
    return int(math.prod(stop - start for start, stop in box)) * value.dtype.itemsize


def _task_bytes(family: BlockFamily, geometry: Geometry) -> int:
    results = sum(_bytes(root.value, box[:root.value.type.rank]) * root.width
                  for root, box in zip(family.roots, geometry.roots, strict=True))
    return results + sum(_bytes(leaf, box) for leaf, box in geometry.reads)


def _partial_bytes(family: BlockFamily, geometry: Geometry) -> int:
    return sum(_bytes(root.value, box[:root.value.type.rank]) * root.width
               for root, box in zip(family.roots, geometry.roots, strict=True) if root.barrier)


# ------------------------------------------------------------------------------- memory of workers


def check_memory(report: SplitExplanation) -> None:
    """Raise ``MemoryError`` where the tasks that a worker of the present client runs at a time need
    more than its limit; nothing is asked where there is no client."""
    client = _client()
    if client is None:
        return
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        limit, slots = worker.get("memory_limit") or 0, worker["nthreads"]
        needed = slots * report.peak_bytes
        if 0 < limit < needed:
            raise user_error(
                MemoryError, f"{report.function}: the tasks that a worker runs at a time need more "
                "than its memory", None, "make the blocks smaller (x.rechunk), or give workers "
                "fewer threads or more memory",
                values=[("needed", f"{bytes_text(needed)}: {slots} times "
                         f"{bytes_text(report.peak_bytes)}"),
                        ("limit", f"{bytes_text(limit)} of {address}")])


def _client() -> Any:
    """The present client of `distributed`; None where there is none."""
    distributed: Any = sys.modules.get("distributed.client")
    if distributed is None:
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return None if client.asynchronous else client


__all__ = ["SplitExplanation", "StageReport", "check_memory", "report_of"]
