"""The LLVM function of a loop form, by mode: elementwise, row reductions, column reductions."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.codegen.loop_ir import LEAVES, Stage, walk
from fusec.codegen.specialise import COLUMN_BLOCK, MAP_BLOCK, LoopForm

from fusec.ir.dims import typical

from .emitter import Emitter
from .flat import FlatNest
from .nest import NestEmitter, Point
from .reductions import Accumulator, finish, finish_lanes, make_accumulator

# A column pass this cheap keeps four vectors of columns in flight at once.
CHEAP_OPERATIONS = 6
import os
ROWS_AHEAD = int(os.environ.get("RA","8"))  # of a column pass, whose rows are pages apart
PAGE, LINE = 4096, 64  # bytes


class MapNest(NestEmitter):
    """Elementwise: a task is a block of the vectorised loop at one point of the others."""

    def _body(self) -> None:
        em, form = self.em, self.form
        loops = [loop for loop in range(form.outer) if loop != form.axis]
        extent = self.extent[form.axis]
        (stage,) = form.nest.stages
        blocks = em.value(f"udiv i64 {em.add(extent, MAP_BLOCK - 1)}, {MAP_BLOCK}")
        with em.loop("%begin", "%end") as task:
            low = "0"
            if loops:
                block = em.value(f"urem i64 {task}, {blocks}")
                task = em.value(f"udiv i64 {task}, {blocks}")
            else:
                block = task
            low = em.mul(block, MAP_BLOCK)
            high = em.minimum(em.add(low, MAP_BLOCK), extent)
            counters = self._decode(task, loops)
            pointers = self._moved(self.base, counters)
            self._axis_loop(stage, low, high, pointers, counters, "0", ())


class RowNest(NestEmitter):
    """Reductions over inner loops, vectors along them: a task is one outer point."""

    def _body(self) -> None:
        em, form = self.em, self.form
        self._allocate_scratch(1)
        outer = list(range(form.outer))
        with em.loop("%begin", "%end") as task:
            counters = self._decode(task, outer) if outer else {}
            pointers = self._moved(self.base, counters)
            for stage in form.nest.stages:
                if stage.inner:
                    self._row_stage(stage, pointers, counters)
                else:
                    self._outer_stage(stage, pointers, counters)

    def _row_stage(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        accs = self._accumulators(stage)
        self.scans.start(stage, 1)
        self._inner_loops(
            list(range(self.form.outer, self.form.axis)), stage, pointers, counters, "0", accs
        )
        for acc in accs:
            value, where = finish(self.em, acc)
            self.reduced[acc.reduction.number] = value if where is None else where

    def _inner_loops(
        self, loops: list[int], stage: Stage, pointers: list[str], counters: dict[int, str],
        linear: str, accs: Sequence[Accumulator],
    ) -> None:
        """The inner loops outside the vectorised one, then the vectorised one."""
        em = self.em
        if not loops:
            extent = self.extent[self.form.axis]
            base = linear if linear == "0" else em.mul(linear, extent)
            self._axis_loop(stage, "0", extent, pointers, counters, base, accs)
            return
        first, *others = loops
        with em.loop(0, self.extent[first]) as i:
            moved = self._moved(pointers, {first: i})
            step = i if linear == "0" else em.value(
                f"add i64 {em.mul(linear, self.extent[first])}, {i}"
            )
            self._inner_loops(others, stage, moved, {**counters, first: i}, step, accs)


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
            for width in self._column_widths():
                whole = high if width == 1 else self._whole(low, high, width)
                with em.loop(low, whole, width) as column:
                    self._columns(width, column, pointers, counters)
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
            if not others:
                self._fetch_ahead(first, stage, width, column, moved)
            self._column_loops(
                others, stage, width, column, moved, {**counters, first: i}, step, accs
            )


    def _fetch_ahead(
        self, loop: int, stage: Stage, width: int, column: str, pointers: list[str]
    ) -> None:
        """Ask for rows to come: the processor follows no steps from page to page itself."""
        em, form = self.em, self.form
        loads = {e.attr for e in walk(stage.roots) if e.op == "load" and not e.args}
        for number in sorted(loads):
            operand = form.operands[number]
            far = abs(typical(operand.strides[loop])) >= PAGE
            if width == 1 or not far or form.stride_class(operand) != "unit":
                continue
            ahead = em.mul(self.stride[number][loop], ROWS_AHEAD)
            pointer = em.offset(em.offset(pointers[number], ahead),
                                em.mul(column, operand.dtype.itemsize))
            em.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            for line in range(0, width * operand.dtype.itemsize, LINE):
                place = em.offset(pointer, str(line))
                em.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")


_MODES: dict[str, type[NestEmitter]] = {
    "map": MapNest, "row": RowNest, "column": ColumnNest, "flat": FlatNest,
}


def emit_nest(form: LoopForm, name: str) -> Emitter:
    """LLVM functions of a form, named ``name`` (and ``name.finish`` for full reductions)."""
    return _MODES[form.mode](form, name).emit()
