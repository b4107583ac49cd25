"""Row reductions: vectors along the reduced axis, short sums of several rows at once."""

from __future__ import annotations

from typing import Any

from ...kernels.loop_ir import LEAVES, Stage, walk
from .accumulators import Accumulator, finish, finish_block, finish_once, is_cascaded, sum_block
from .axis_loop import AxisLoop, can_vectorise, is_masked_alone
from .nest import NestEmitter

ROWS = 4  # at once, a power of two: more of their sums would not stay in registers
FEW_OPERATIONS = 2  # for an element of a row: where loops and masks cost more than the arithmetic


class RowNest(NestEmitter):
    """Reductions over inner loops, vectors along them: a task is one outer point."""

    def _body(self) -> None:
        em = self.em
        self._allocate_scratch(1)
        low = "%begin"
        if self._takes_rows_together():
            low = self._end_of_groups()
            with em.loop("%begin", low, ROWS) as task:
                self._rows_together(task)
        with em.loop(low, "%end") as task:
            counters, pointers = self._row(task)
            for stage in self.form.nest.stages:
                if stage.inner:
                    self._row_stage(stage, pointers, counters)
                else:
                    self._outer_stage(stage, pointers, counters)

    def _row(self, task: str) -> tuple[dict[int, str], list[str]]:
        """Its counters, and where its operands begin."""
        outer = list(range(self.form.outer))
        counters = self._decode(task, outer) if outer else {}
        return counters, self._moved(self.base, counters)

    def _row_stage(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        accs = self._accumulators(stage)
        self.scans.start(stage, 1)
        extent = self.extent[self.form.axis]
        loops = range(self.form.outer, self.form.axis)
        for acc in accs:
            acc.once = not loops
        with self._each(loops, pointers, counters) as (here, at, linear):
            base = linear if linear == "0" else self.em.mul(linear, extent)
            self._axis_loop(stage, "0", extent, here, at, base, accs)
        self._finish(accs)

    def _finish(self, accs: list[Accumulator]) -> None:
        left = [acc for acc in accs if acc.alone]
        totals = finish_once(self.em, left) if left else []
        for acc, total in zip(left, totals, strict=True):
            self.reduced[acc.reduction.number] = total
        for acc in accs:
            if not acc.alone:
                value, where = finish(self.em, acc)
                self.reduced[acc.reduction.number] = value if where is None else where

    # -- several rows

    def _takes_rows_together(self) -> bool:
        """Whether it is a product with a vector, or as simple: rows share operands."""
        form, nest = self.form, self.form.nest
        inner = [stage for stage in nest.stages if stage.inner]
        if len(inner) != 1 or not form.outer or form.outer != form.axis or nest.scratch:
            return False
        (stage,) = inner
        if stage.stores or stage.checks or [is_cascaded(r) for r in stage.reductions] != [True]:
            return False
        return (self._shares_loads(stage) and can_vectorise(form, stage)
                and is_masked_alone(self, stage))

    def _shares_loads(self, stage: Stage) -> bool:
        """Whether all rows read one operand, and each an operand of its own, for little work."""
        loads = [e for e in walk(stage.roots) if e.op == "load"]
        shared = [not any(self.form.operands[e.attr].strides[:self.form.outer]) for e in loads]
        operations = sum(e.op not in LEAVES for e in walk(stage.roots))
        return (any(shared) and not all(shared) and not any(e.args for e in loads)
                and operations <= FEW_OPERATIONS)

    def _end_of_groups(self) -> str:
        """Where the rows begin that are summed alone: all of them, where a row is long."""
        em, extent = self.em, self.extent[self.form.axis]
        (reduction,) = [r for stage in self.form.nest.stages for r in stage.reductions]
        short = em.value(f"icmp sle i64 {extent}, {sum_block(reduction.dtype)}")
        count = em.value("sub i64 %end, %begin")
        grouped = em.value(f"and i64 {count}, {-ROWS}")
        return em.add("%begin", em.value(f"select i1 {short}, i64 {grouped}, i64 0"))

    def _rows_together(self, task: str) -> None:
        """Rows of one block each: their vectors hold the whole sums."""
        em = self.em
        (stage,) = [s for s in self.form.nest.stages if s.inner]
        rows = [self._row(em.add(task, k)) for k in range(ROWS)]
        accs = [self._accumulators(stage)[0] for _ in rows]
        runs = [self._evaluation(stage, pointers, counters, "0", [acc])
                for (counters, pointers), acc in zip(rows, accs, strict=True)]

        def run(*position: Any, **where: Any) -> None:
            for one in runs:
                one(*position, **where)

        AxisLoop(self, stage, rows[0][1], accs, run).emit_block(
            "0", self.extent[self.form.axis])
        totals = [finish_block(em, acc) for acc in accs]
        for (counters, pointers), total in zip(rows, totals, strict=True):
            self.reduced[stage.reductions[0].number] = total
            for outer in self.form.nest.stages:
                if not outer.inner:
                    self._outer_stage(outer, pointers, counters)
