"""Full reductions: tasks leave partial results, a second function combines them.

The pieces and the order in which they are combined are fixed by the sizes alone, so a result does
not depend on how many threads did the tasks.
"""

from __future__ import annotations

from ...kernels.loop_ir import Reduction, Stage
from ...kernels.specialise import FLAT_BLOCK
from ..emitter import I64, LlvmEmitter, LlvmValue
from .accumulators import Accumulator, combine_pairs, finish, is_indexed
from .nest import NestEmitter


class FlatNest(NestEmitter):
    """``name`` does tasks, ``name.finish`` combines their results and runs the outer stages."""

    def emit(self) -> LlvmEmitter:
        super().emit()
        self.reduced.clear()
        self._function(self.name + ".finish", self._finish)
        return self.em

    def _inner_stage(self) -> Stage:
        (stage,) = [s for s in self.form.nest.stages if s.inner]
        return stage

    def _body(self) -> None:
        """Each task reduces a fixed piece of the domain to one partial result per reduction."""
        em, form = self.em, self.form
        stage, extent = self._inner_stage(), self.extent[form.axis]
        loops = list(range(form.axis))
        chunks, rows_per_task, rows = self._split(loops)
        with em.loop("%begin", "%end") as task:
            accs = self._accumulators(stage)
            chunk = em.value(f"urem i64 {task}, {chunks}")
            group = em.value(f"udiv i64 {task}, {chunks}")
            low = em.mul(chunk, FLAT_BLOCK)
            high = em.minimum(em.add(low, FLAT_BLOCK), extent)
            first = em.mul(group, rows_per_task)
            last = em.minimum(em.value(f"add i64 {first}, {rows_per_task}"), rows)
            with em.loop(first, last) as row:
                counters = self._decode(row, loops) if loops else {}
                pointers = self._moved(self.base, counters)
                linear = em.mul(row, extent) if loops else "0"
                self._axis_loop(stage, low, high, pointers, counters, linear, accs)
            for acc in accs:
                self._store_partial(acc, task)

    def _split(self, loops: list[int]) -> tuple[str, str, str]:
        """(chunks of the last loop, rows per task, rows): the same rule as `LoopForm`."""
        em, extent = self.em, self.extent[self.form.axis]
        chunks = em.value(f"udiv i64 {em.add(extent, FLAT_BLOCK - 1)}, {FLAT_BLOCK}")
        chunks = em.intrinsic("umax", I64, 1, LlvmValue(chunks, I64, 1), em.const(I64, 1)).text
        some = em.intrinsic("umax", I64, 1, LlvmValue(extent, I64, 1), em.const(I64, 1)).text
        fit = em.value(f"udiv i64 {FLAT_BLOCK}, {some}")
        rows_per_task = em.intrinsic("umax", I64, 1, LlvmValue(fit, I64, 1), em.const(I64, 1)).text
        rows = "1"
        for loop in loops:
            rows = em.mul(rows, self.extent[loop])
        return chunks, rows_per_task, rows

    def _partial(self, position: int, task: str, half: int) -> str:
        """Address of a partial result: 16 bytes per task and reduction (value, position)."""
        em = self.em
        table = self._slot(self.layout.partial_results, "ptr")
        count = len(self._inner_stage().reductions)
        index = em.value(f"add i64 {em.mul(task, count)}, {position}")
        return em.offset(table, em.add(em.mul(index, 16), 8 * half))

    def _store_partial(self, acc: Accumulator, task: str) -> None:
        position = self._position(acc.reduction)
        value, where = finish(self.em, acc)
        self.em.store(self._partial(position, task, 0), value)
        if where is not None:
            self.em.store(self._partial(position, task, 1), where)

    def _position(self, reduction: Reduction) -> int:
        return self._inner_stage().reductions.index(reduction)

    def _finish(self) -> None:
        """Combine the partial results pairwise in task order, then run the outer stages."""
        for reduction in self._inner_stage().reductions:
            self.reduced[reduction.number] = self._combine_partials(reduction)
        for stage in self.form.nest.stages:
            if not stage.inner:
                self._outer_stage(stage, self._moved(self.base, {}), {})

    def _combine_partials(self, reduction: Reduction) -> LlvmValue:
        em, position = self.em, self._position(reduction)
        slot = em.alloca("i64", "left", 8)
        em.line(f"store i64 {self._slot(self.layout.task_count)}, ptr {slot}")
        with em.while_loop() as (_, done):
            left = em.value(f"load i64, ptr {slot}")
            more = em.value(f"icmp sgt i64 {left}, 1")
            pair = em.fresh("pair")
            em.line(f"br i1 {more}, label %{pair}, label %{done}")
            em.label(pair)
            half = em.value(f"lshr i64 {left}, 1")
            with em.loop(0, half) as i:
                self._combine_two(reduction, position, i)
            odd = em.value(f"and i64 {left}, 1")
            with em.loop(0, odd) as _:
                self._copy_partial(reduction, position, em.value(f"sub i64 {left}, 1"), half)
            em.line(f"store i64 {em.value(f'add i64 {half}, {odd}')}, ptr {slot}")
        half_read = 1 if is_indexed(reduction) else 0
        dtype = I64 if is_indexed(reduction) else reduction.value.dtype
        return em.load(self._partial(position, "0", half_read), dtype, 1)

    def _read_partial(self, r: Reduction, position: int, task: str) -> tuple[LlvmValue, LlvmValue]:
        em = self.em
        value = em.load(self._partial(position, task, 0), r.value.dtype, 1)
        where = em.const(I64, 0)
        if is_indexed(r):
            where = em.load(self._partial(position, task, 1), I64, 1)
        return value, where

    def _write_partial(
        self, r: Reduction, position: int, task: str, result: tuple[LlvmValue, LlvmValue]
    ) -> None:
        self.em.store(self._partial(position, task, 0), result[0])
        if is_indexed(r):
            self.em.store(self._partial(position, task, 1), result[1])

    def _combine_two(self, r: Reduction, position: int, i: str) -> None:
        em = self.em
        even = em.mul(i, 2)
        a = self._read_partial(r, position, even)
        b = self._read_partial(r, position, em.add(even, 1))
        self._write_partial(r, position, i, combine_pairs(em, r, a, b))

    def _copy_partial(self, r: Reduction, position: int, source: str, target: str) -> None:
        self._write_partial(r, position, target, self._read_partial(r, position, source))
