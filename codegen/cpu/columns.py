"""Reductions over outer loops: vectors lie across them, a lane for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusec.codegen.loop_ir import LEAVES, Reduction, Stage, walk
from fusec.codegen.specialise import COLUMN_BLOCK, TILE, LoopForm

from .emitter import I64, scalar_type
from .nest import NestEmitter, Point
from .reductions import Accumulator, finish_lanes, is_indexed, make_accumulator, reset

# A column pass this cheap keeps four vectors of columns in flight at once.
CHEAP_OPERATIONS = 6
WIDEST = 256  # bytes of its vectors, to which LLVM aligns them


class ColumnNest(NestEmitter):
    """Reductions over inner loops, vectors across them: a task is a block of outer points."""

    def _body(self) -> None:
        em, form = self.em, self.form
        loops = [loop for loop in range(form.outer) if loop != form.axis]
        widest = max(self._column_widths())
        self._allocate_scratch(widest)
        extent = self.extent[form.axis]
        blocks = em.value(f"udiv i64 {em.add(extent, COLUMN_BLOCK - 1)}, {COLUMN_BLOCK}")
        with em.loop("%begin", "%end") as task:
            block = em.value(f"urem i64 {task}, {blocks}")
            counters = self._decode(em.value(f"udiv i64 {task}, {blocks}"), loops)
            pointers = self._moved(self.base, counters)
            low = em.mul(block, COLUMN_BLOCK)
            high = em.minimum(em.add(low, COLUMN_BLOCK), extent)
            for width, column in self._steps(low, high):
                self._columns(width, column, pointers, counters)

    def _steps(self, low: str, high: str) -> Iterator[tuple[int, str]]:
        """The columns in loops, with ever narrower steps: the width of one, and its first column.
        """
        for width in self._column_widths():
            whole = high if width == 1 else self._whole(low, high, width)
            with self.em.loop(low, whole, width) as column:
                yield width, column
            low = whole

    def _whole(self, low: str, high: str, step: int) -> str:
        """The end of the last whole step of this many columns; steps are powers of two."""
        count = self.em.value(f"sub i64 {high}, {low}")
        return self.em.add(low, self.em.value(f"and i64 {count}, {-step}"))

    def _column_widths(self) -> list[int]:
        form = self.form
        if any(not self._can_vectorise(s) for s in form.nest.stages):
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
            loops = list(range(form.outer, len(form.extents))) if stage.inner else []
            self._column_loops(loops, stage, width, column, pointers, counters, "0", accs)
            for acc in accs:
                self.reduced[acc.reduction.number] = finish_lanes(em, acc)

    def _column_loops(
        self, loops: list[int], stage: Stage, width: int, column: str, pointers: list[str],
        counters: dict[int, str], linear: str, accs: Sequence[Accumulator],
    ) -> None:
        em = self.em
        if not loops:
            here = {**counters, self.form.axis: column}
            invariant = self._invariants(stage, pointers)
            point = Point(width, column, pointers, here, invariant, linear)
            self._run(stage, point, accs, 0)
            return
        first, *others = loops
        with em.loop(0, self.extent[first]) as i:
            moved = self._moved(pointers, {first: i})
            step = i if linear == "0" else em.value(
                f"add i64 {em.mul(linear, self.extent[first])}, {i}"
            )
            self._column_loops(
                others, stage, width, column, moved, {**counters, first: i}, step, accs
            )


class TiledNest(ColumnNest):
    """The same for rows that lie far apart: accumulators of a tile of columns are in memory.

    So each row is read in a piece long enough for the processor to fetch ahead; a few registers of
    columns at a time would be another page with every step.
    """

    def __init__(self, form: LoopForm, name: str) -> None:
        super().__init__(form, name)
        self.tiles: dict[int, tuple[str, str]] = {}  # by number: accumulators, and their positions

    def _body(self) -> None:
        em, form = self.em, self.form
        loops = [loop for loop in range(form.outer) if loop != form.axis]
        for stage in form.nest.stages:
            for reduction in stage.reductions:
                self.tiles[reduction.number] = self._tile(reduction)
        extent = self.extent[form.axis]
        blocks = em.value(f"udiv i64 {em.add(extent, TILE - 1)}, {TILE}")
        with em.loop("%begin", "%end") as task:
            low = em.mul(em.value(f"urem i64 {task}, {blocks}"), TILE)
            high = em.minimum(em.add(low, TILE), extent)
            counters = self._decode(em.value(f"udiv i64 {task}, {blocks}"), loops)
            pointers = self._moved(self.base, counters)
            for stage in form.nest.stages:
                self._start(stage, low, high)
                rows = list(range(form.outer, len(form.extents))) if stage.inner else []
                self._rows(rows, stage, (low, high), pointers, counters, "0")

    def _tile(self, reduction: Reduction) -> tuple[str, str]:
        em, kind = self.em, scalar_type(reduction.value.dtype)
        values = em.alloca(f"[{TILE} x {kind}]", "tile", WIDEST)
        at = em.alloca(f"[{TILE} x i64]", "places", WIDEST) if is_indexed(reduction) else ""
        return values, at

    def _accumulator(self, reduction: Reduction, width: int, place: str) -> Accumulator:
        """That of the columns from this place of the tile on."""
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

    def _rows(
        self, loops: list[int], stage: Stage, tile: tuple[str, str], pointers: list[str],
        counters: dict[int, str], linear: str,
    ) -> None:
        if not loops:
            self._row(stage, tile, pointers, counters, linear)
            return
        em, (first, *others) = self.em, loops
        with em.loop(0, self.extent[first]) as i:
            step = i if linear == "0" else em.value(
                f"add i64 {em.mul(linear, self.extent[first])}, {i}")
            self._rows(others, stage, tile, self._moved(pointers, {first: i}),
                       {**counters, first: i}, step)

    def _row(
        self, stage: Stage, tile: tuple[str, str], pointers: list[str], counters: dict[int, str],
        linear: str,
    ) -> None:
        """One row of the tile, or one evaluation of each column after all rows."""
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
            self._run(stage, Point(width, column, pointers, here, invariant, linear), accs, 0)
