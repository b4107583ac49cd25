"""Column reductions: the vector axis is not reduced, so each lane accumulates one column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...kernels.loop_ir import LEAVES, Reduction, Stage, walk
from ...kernels.specialise import BLOCKS, TILE, LoopForm
from ..emitter import I64, LlvmValue, scalar_type
from .accumulators import Accumulator, finish_lanes, is_indexed, make_accumulator, reset
from .axis_loop import can_vectorise
from .nest import NestEmitter
from .nest_expressions import LanePoint

# A column pass this cheap keeps four vectors of columns in flight at once.
CHEAP_OPERATIONS = 6
WIDEST = 256  # bytes of the widest vector, which is also its alignment in LLVM


class ColumnNest(NestEmitter):
    """Reductions over inner loops, vectors along an outer one; a task is a block of columns."""

    def _body(self) -> None:
        self._allocate_scratch(max(self._column_widths()))
        with self._tasks() as (low, high, pointers, counters):
            for width, column in self._steps(low, high):
                self._columns(width, column, pointers, counters)

    @contextmanager
    def _tasks(self) -> Iterator[tuple[str, str, list[str], dict[int, str]]]:
        """For each task: its first and last column, pointers and counters of the outer loops."""
        em, form, block = self.em, self.form, BLOCKS[self.form.mode]
        loops = [loop for loop in range(form.outer) if loop != form.axis]
        extent = self.extent[form.axis]
        blocks = em.value(f"udiv i64 {em.add(extent, block - 1)}, {block}")
        with em.loop("%begin", "%end") as task:
            low = em.mul(em.value(f"urem i64 {task}, {blocks}"), block)
            high = em.minimum(em.add(low, block), extent)
            counters = self._decode(em.value(f"udiv i64 {task}, {blocks}"), loops)
            yield low, high, self._moved(self.base, counters), counters

    def _rows(self, stage: Stage) -> Sequence[int]:
        return range(self.form.outer, len(self.form.extents)) if stage.inner else ()

    def _steps(self, low: str, high: str) -> Iterator[tuple[int, str]]:
        """Loops over the columns in ever narrower steps; yields each step's width and column."""
        for width in self._column_widths():
            whole = high if width == 1 else self._whole(low, high, width)
            with self.em.loop(low, whole, width) as column:
                yield width, column
            low = whole

    def _whole(self, low: str, high: str, step: int) -> str:
        """Where whole steps of this many columns end; the step is a power of two."""
        count = self.em.value(f"sub i64 {high}, {low}")
        return self.em.add(low, self.em.value(f"and i64 {count}, {-step}"))

    def _column_widths(self) -> list[int]:
        form = self.form
        if any(not can_vectorise(form, s) for s in form.nest.stages):
            return [1]
        operations = sum(1 for e in walk(form.nest.roots) if e.op not in LEAVES)
        wide = [4 * self.lanes] if operations <= CHEAP_OPERATIONS and self.lanes <= 16 else []
        return [*wide, self.lanes, 1]

    def _columns(
        self, width: int, column: str, pointers: list[str], counters: dict[int, str]
    ) -> None:
        em, form = self.em, self.form
        for stage in form.nest.stages:
            accs = [make_accumulator(em, r, width, 1, cascade=False) for r in stage.reductions]
            self.scans.start(stage, width)
            still = self._still(stage, LanePoint(width, column, pointers, counters, {}))
            with self._each(self._rows(stage), pointers, counters) as (here, at, linear):
                at = {**at, form.axis: column}
                point = LanePoint(width, column, here, at, self._invariants(stage, here) | still,
                                  linear)
                self._run(stage, point, accs, 0)
            for acc in accs:
                self.reduced[acc.reduction.number] = finish_lanes(em, acc)

    def _still(self, stage: Stage, point: LanePoint) -> dict[int, LlvmValue]:
        """The loads of an inner stage that are invariant in its loops, hoisted out of them."""
        form, loops = self.form, self._rows(stage)
        loads = {e.attr for e in walk(stage.roots) if e.op == "load" and not e.args}
        repeated = [k for k in sorted(loads) if form.stride_class(form.operands[k]) != "zero"
                    and loops and not any(form.operands[k].strides[loop] for loop in loops)]
        return {k: self._load(k, point) for k in repeated}


class TiledNest(ColumnNest):
    """The same for rows that lie far apart in memory: a tile of columns, accumulators in memory.

    Each row is read in a run that is long enough for the hardware prefetcher.  With accumulators in
    registers a step would read a few columns only, and touch another page at every row.
    """

    def __init__(self, form: LoopForm, name: str) -> None:
        super().__init__(form, name)
        # By reduction: memory of the accumulators, and of their positions.
        self.tiles: dict[int, tuple[str, str]] = {}

    def _body(self) -> None:
        stages = self.form.nest.stages
        self.tiles = {r.number: self._tile(r) for stage in stages for r in stage.reductions}
        with self._tasks() as (low, high, pointers, counters):
            for stage in stages:
                self._start(stage, low, high)
                with self._each(self._rows(stage), pointers, counters) as (here, at, linear):
                    self._row(stage, (low, high), here, at, linear)

    def _tile(self, reduction: Reduction) -> tuple[str, str]:
        em, kind = self.em, scalar_type(reduction.value.dtype)
        values = em.alloca(f"[{TILE} x {kind}]", "tile", WIDEST)
        at = em.alloca(f"[{TILE} x i64]", "places", WIDEST) if is_indexed(reduction) else ""
        return values, at

    def _accumulator(self, reduction: Reduction, width: int, place: str) -> Accumulator:
        """The accumulator of ``width`` columns, from offset ``place`` of the tile on."""
        em, (values, at) = self.em, self.tiles[reduction.number]
        size = reduction.value.dtype.itemsize
        slots = [em.offset(values, em.mul(place, size))]
        indices = [em.offset(at, em.mul(place, I64.itemsize))] if at else []
        return Accumulator(reduction, width, slots, indices)

    def _start(self, stage: Stage, low: str, high: str) -> None:
        for width, column in self._steps(low, high) if stage.reductions else ():
            place = self.em.value(f"sub i64 {column}, {low}")
            for reduction in stage.reductions:
                reset(self.em, self._accumulator(reduction, width, place))

    def _row(
        self, stage: Stage, tile: tuple[str, str], pointers: list[str], counters: dict[int, str],
        linear: str,
    ) -> None:
        """One row of the tile; for an outer stage, one evaluation of each column after all rows."""
        em, form = self.em, self.form
        invariant = self._invariants(stage, pointers)
        needed = {e.attr for e in walk(stage.roots) if e.op == "reduced"}
        earlier = [r for s in form.nest.stages for r in s.reductions if r.number in needed]
        for width, column in self._steps(*tile):
            place = em.value(f"sub i64 {column}, {tile[0]}")
            for reduction in earlier:
                self.reduced[reduction.number] = finish_lanes(
                    em, self._accumulator(reduction, width, place))
            accs = [self._accumulator(r, width, place) for r in stage.reductions]
            here = {**counters, form.axis: column}
            self._run(stage, LanePoint(width, column, pointers, here, invariant, linear), accs, 0)
