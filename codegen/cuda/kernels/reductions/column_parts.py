"""Reductions over outer axes in several launches, where columns alone are too few for a GPU.

There is a launch for each stage of the rows: each block does a part of the rows of 32 columns, and
leaves a partial result for each column.  Later launches join the parts of their columns in order.
How many parts there are follows from the sizes alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from ....kernels.loop_ir import Reduction, Stage, walk
from ....kernels.specialise import LoopForm
from ...scalars.emitter import BOOL, CudaValue, memory_type, type_name
from ..launch_plan import Geometry, Layout
from ..nest_kernel import ThreadPoint, in_memory
from .accumulators import CudaAccumulator, declare, join
from .columns import COLUMNS, MAX_GROUPS, ColumnKernel, may_share_rows, rows_at_once
from .full_reductions import BYTES_OF_A_PARTIAL

MANY_BLOCKS = 1024  # several for each multiprocessor of any GPU
MOST_PARTS = 128  # where each of them joins those of an earlier stage
LEAST_ROWS = 32 * MAX_GROUPS  # of a part: fewer are not worth a partial result
LEAST_PARTS = 4  # fewer are not worth a launch
# Parts whose loads a thread has in flight: with nothing left to do but to join them, and before it
# goes over rows, which need its registers.
PARTS_AT_ONCE, PARTS_BEFORE_ROWS_AT_ONCE = 16, 4


def parts_of(form: LoopForm) -> int:
    """How many blocks share the rows of a column, for these sizes; 1: one does all of them."""
    if form.mode not in ("column", "tiled") or not form.is_static or not may_share_rows(form):
        return 1
    return max(1, -(-_rows(form) // rows_of_a_part(form)))


def rows_of_a_part(form: LoopForm) -> int:
    """As many for each group of threads; all of them where there are no parts."""
    rows, inner = _rows(form), sum(stage.inner for stage in form.nest.stages)
    parts = min(MANY_BLOCKS // max(1, _column_blocks(form)), rows // LEAST_ROWS)
    parts = parts if inner == 1 else min(parts, MOST_PARTS)
    parts = parts if parts >= LEAST_PARTS else 1
    return max(1, -(-rows // (parts * MAX_GROUPS))) * MAX_GROUPS


def _rows(form: LoopForm) -> int:
    return form.extents[form.outer] if len(form.extents) > form.outer else 1


def _columns(form: LoopForm) -> int:
    return math.prod(form.extents[: form.outer])


def _column_blocks(form: LoopForm) -> int:
    return -(-_columns(form) // COLUMNS)


def part_kernels(form: LoopForm) -> list[partial[ColumnPartKernel]]:
    """The kernels of a form with parts: one for each stage of the rows, and one for what follows
    from the last."""
    stages = form.nest.stages
    numbers = [number for number, stage in enumerate(stages) if stage.inner]
    if numbers[-1] + 1 < len(stages):
        numbers.append(len(stages))
    return [partial(ColumnPartKernel, number=number) for number in numbers]


class ColumnPartKernel(ColumnKernel):
    """The stage ``number`` of the rows, after what follows from the one before it; with the number
    of the stages only that."""

    def __init__(self, form: LoopForm, name: str, index: str, number: int) -> None:
        super().__init__(form, name, index)
        self.number, self.is_last = number, number == len(form.nest.stages)
        before = [n for n in range(number) if form.nest.stages[n].inner]
        self.first = before[-1] + 1 if before else 0  # of the stages that it does
        self.needed = _reductions_read(form.nest.stages[self.first:number + 1])
        self.every = [r for stage in form.nest.stages for r in stage.reductions]

    @property
    def elements(self) -> int:
        return self.parts_at_once if self.is_last else (
            rows_at_once(self.form.nest.stages[self.number]))

    @property
    def parts_at_once(self) -> int:
        """Whose loads a thread has in flight."""
        return PARTS_AT_ONCE if self.is_last else PARTS_BEFORE_ROWS_AT_ONCE

    @contextmanager
    def column_blocks(self, columns: str) -> Iterator[None]:
        parts, index, em = self.param(("chunks",), self.index_kind, "parts"), self.index, self.em
        self.part = "0" if self.is_last else em.named(
            index, f"{index}(blockIdx.x) % {parts}", "part")
        block = f"{index}(blockIdx.x)" + ("" if self.is_last else f" / {parts}")
        with em.block(""):
            em.line(f"const {index} base = {block} * {COLUMNS};")
            yield

    def stage(self, number: int, stage: Stage, pointers: list[str], at: dict[int, str]) -> None:
        if number < self.first:
            self._join_parts([r for r in stage.reductions if r.number in self.needed])
        elif stage.inner and number == self.number:
            self.inner_stage(stage, pointers, at)
        elif not stage.inner and number < self.number:
            place = ThreadPoint(at, pointers, valid=self.valid, is_along=False)
            self.run_stage(stage, place, only=f"threadIdx.y == 0 && {self.part} == 0")

    def rows(self, loop: int) -> tuple[str, str, str]:
        each, index = self.param(("row_points",), self.index_kind, "rows"), self.index
        first = self.em.named(index, f"{self.part} * {each}", "first")
        end = self.em.named(
            index, f"{self.extent(loop)} - {first} < {each} ? {self.extent(loop)} : "
            f"{first} + {each}", "end")
        return f"{first} + {index}(threadIdx.y)", end, f"{index}(blockDim.y)"

    def is_read_by_rows(self, stage: Stage) -> bool:
        return False  # the launch of the next stage reads partial results

    # -- partial results

    def _partial(self, part: str, reduction: Reduction, half: int) -> str:
        """The address of this thread's column's partial result, or of its position."""
        base = self.param(("partials",), "pointer", "partials", is_written=True)
        columns = self.param(("work",), self.index_kind, "columns")
        place = f"i64({part}) * {len(self.every)} + {self.every.index(reduction)}"
        number = f"({place}) * {columns} + {self.column}"
        return f"{base} + ({number}) * {BYTES_OF_A_PARTIAL} + {8 * half}"

    def finish(self, accs: list[CudaAccumulator]) -> None:
        with self.em.block(f"if (threadIdx.y == 0 && {self.valid})"):
            for acc in accs:
                for half, (name, dtype) in enumerate(acc.variables):
                    value = in_memory(CudaValue(name, dtype))
                    self.em.line(f"store<{memory_type(dtype)}>("
                                 f"{self._partial(self.part, acc.reduction, half)}, {value});")

    def _join_parts(self, reductions: Sequence[Reduction]) -> None:
        """Groups of threads join the parts of a column."""
        if not reductions:
            return
        em, parts = self.em, self.param(("chunks",), self.index_kind, "parts")
        accs = [declare(em, r) for r in reductions]
        each = f"for (int k = 0; k < {self.parts_at_once}; ++k)"
        with em.block(f"for ({self.index} p = threadIdx.y; p < {parts}; "
                      f"p += {self.parts_at_once} * blockDim.y)"):
            others = [[self._others(dtype) for _, dtype in acc.variables] for acc in accs]
            em.line("#pragma unroll")
            with em.block(each):
                em.line(f"const {self.index} q = p + k * blockDim.y < {parts} ? "
                        f"p + k * blockDim.y : {parts} - 1;")
                for acc, names in zip(accs, others, strict=True):
                    for half, name in enumerate(names):
                        em.line(f"{name}[k] = {self._other(acc, half)};")
            em.line("#pragma unroll")
            with em.block(each), em.block(f"if (p + k * blockDim.y < {parts})"):
                for acc, names in zip(accs, others, strict=True):
                    join(em, acc, *(f"{name}[k]" for name in names))
        self.join_groups(accs, for_all=not self.is_last)
        for acc in accs:
            self.reduced[acc.reduction.number] = acc.result(em)

    def _others(self, dtype: np.dtype) -> str:
        """Room for as many partial results as are asked for before a thread waits."""
        name = self.em.fresh("others")
        self.em.line(f"{type_name(dtype)} {name}[{self.parts_at_once}];")
        return name

    def _other(self, acc: CudaAccumulator, half: int) -> str:
        """The partial result of the part ``q``, or its position."""
        dtype = acc.variables[half][1]
        text = f"load<{memory_type(dtype)}>({self._partial('q', acc.reduction, half)})"
        return f"{text} != 0" if dtype == BOOL else text

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            parts, columns, blocks = parts_of(form), _columns(form), _column_blocks(form)
            return Layout(blocks * (1 if self.is_last else parts), (COLUMNS, MAX_GROUPS), columns,
                          partials=parts * columns * BYTES_OF_A_PARTIAL * len(self.every),
                          row_points=rows_of_a_part(form), chunks=parts)

        return layout


def _reductions_read(stages: Sequence[Stage]) -> set[int]:
    """The numbers of the reductions whose results these stages read."""
    return {e.attr for stage in stages for e in walk(stage.roots) if e.op == "reduced"}
