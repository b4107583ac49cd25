"""Reductions in two launches: blocks leave partial results, then a block joins these.

For full reductions, and for a few long rows, each of which several blocks share.  Pieces and order
follow from the sizes alone.  One block alone needs no second launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from fusec.core.records import replace
from fusec.ir.sizes.dims import Size

from ....kernels.loop_ir import Reduction, Stage
from ....kernels.specialise import LoopForm
from ...scalars.emitter import BOOL, memory_type, type_name
from ..elementwise_kernels import grid_start, packs_of
from ..launch_plan import Geometry, Layout, blocks_for, most
from ..nest_kernel import KernelWriter, ThreadPoint, pack_lanes
from .accumulators import CudaAccumulator, TeamReduction, accumulate, declare, join

PACKS_OF_A_THREAD = 8
MAX_PARTIALS = 1024
BYTES_OF_A_PARTIAL = 16  # a value and its position
# Rows that several blocks share: where there are so few, and of so many points.
FEW_ROWS, LONG_ROW, POINTS_OF_A_CHUNK = 64, 1 << 15, 1 << 13


class _Partials(KernelWriter):
    """The partial results, as both kernels know them."""

    has_barriers = True

    def inner_stage(self) -> Stage:
        (stage,) = (s for s in self.form.nest.stages if s.inner)
        return stage

    def partial_blocks(self, form: LoopForm) -> Size:
        work = packs_of(form, self.lanes)
        return blocks_for(work, self.max_threads * PACKS_OF_A_THREAD, MAX_PARTIALS)

    def partial(self, block: str, reduction: Reduction, half: int) -> str:
        """The address of a partial result, or of its position."""
        reductions = self.inner_stage().reductions
        base = self.param(("partials",), "pointer", "partials", is_written=True)
        number = f"i64({block}) * {len(reductions)} + {reductions.index(reduction)}"
        return f"{base} + ({number}) * {BYTES_OF_A_PARTIAL} + {8 * half}"


class PartialKernel(_Partials):
    """Every thread goes over packs of the whole domain; a block joins its threads' results."""

    def body(self) -> None:
        em = self.em
        accs = self.totals()
        with em.block("if (threadIdx.x == 0)"):
            for acc in accs:
                for half, (name, dtype) in enumerate(acc.variables):
                    text = f"u8({name})" if dtype == BOOL else name
                    em.line(f"store<{memory_type(dtype)}>("
                            f"{self.partial('blockIdx.x', acc.reduction, half)}, {text});")

    def totals(self) -> list[CudaAccumulator]:
        """The results of all threads of the block."""
        em, stage = self.em, self.inner_stage()
        team = TeamReduction(em, self.head)
        accs = {r.number: declare(em, r) for r in stage.reductions}
        with self.own_packs() as place:
            self.run_stage(stage, place, lambda r, value, at: accumulate(
                em, accs[r.number], value, at.linear, at.valid))
        team.join_all(list(accs.values()))
        self.shared_bytes = team.bytes
        return list(accs.values())

    @contextmanager
    def own_packs(self) -> Iterator[ThreadPoint]:
        """The packs of this thread."""
        start, step = grid_start(self.index)
        work = self.param(("work",), self.index_kind, "work")
        pointers = [self.pointer(n) for n in range(len(self.form.operands))]
        with self.packs(range(len(self.form.extents)), start, step, work, pointers, {}) as place:
            yield place

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            blocks = self.partial_blocks(form)
            partials = blocks * BYTES_OF_A_PARTIAL * len(self.inner_stage().reductions)
            return Layout(blocks, (self.max_threads, 1), packs_of(form, self.lanes),
                          partials=most(partials, 1))

        return layout


class OneBlockKernel(PartialKernel):
    """A full reduction that one block does, later stages included."""

    def body(self) -> None:
        self.reduced = {acc.reduction.number: acc.result(self.em) for acc in self.totals()}
        whole = ThreadPoint({}, [self.pointer(n) for n in range(len(self.form.operands))])
        for later in self.form.nest.stages:
            if not later.inner:
                self.run_stage(later, whole, only="threadIdx.x == 0")

    def geometry(self) -> Geometry:
        return lambda form: Layout(1, (self.max_threads, 1), packs_of(form, self.lanes))


def is_for_one_block(form: LoopForm) -> bool:
    """Whether one block does a full reduction, for these sizes."""
    return form.mode == "flat" and form.is_static and packs_of(form, pack_lanes(form)) <= (
        KernelWriter.max_threads * PACKS_OF_A_THREAD)


class FinishKernel(_Partials):
    """One block joins the partial results and runs the later stages."""

    def body(self) -> None:
        form, em = self.form, self.em
        team = TeamReduction(em, self.head)
        accs = [declare(em, r) for r in self.inner_stage().reductions]
        place, first, count = self.own_partials()
        with em.block(f"for ({self.index} b = threadIdx.x; b < {count}; b += blockDim.x)"):
            for acc in accs:
                self._join_partial(acc, f"{first} + b" if first else "b")
        team.join_all(accs)
        self.reduced = {acc.reduction.number: acc.result(em) for acc in accs}
        for stage in form.nest.stages:
            if not stage.inner:
                self.run_stage(stage, replace(place, memo={}), only="threadIdx.x == 0")
        self.shared_bytes = team.bytes

    def own_partials(self) -> tuple[ThreadPoint, str, str]:
        """Where this block's result is, the first of its partial results ('': 0), their number."""
        pointers = [self.pointer(n) for n in range(len(self.form.operands))]
        return ThreadPoint({}, pointers), "", self.param(("work",), self.index_kind, "blocks")

    def _join_partial(self, acc: CudaAccumulator, number: str) -> None:
        em, values = self.em, []
        for half, (_, dtype) in enumerate(acc.variables):
            text = f"load<{memory_type(dtype)}>({self.partial(number, acc.reduction, half)})"
            text = f"{text} != 0" if dtype == BOOL else text
            values.append(em.named(type_name(dtype), text, "other"))
        join(em, acc, *values)

    def geometry(self) -> Geometry:
        return lambda form: Layout(1, (self.max_threads, 1), self.partial_blocks(form))


# ---------------------------------------------------------------------------------- a few long rows


def chunks_of(form: LoopForm) -> int:
    """How many blocks share a row, for these sizes; 1: one block does it (`rows`)."""
    nest = form.nest
    if form.mode != "row" or not form.is_static or nest.scratch or nest.has_scans or (
            sum(stage.inner for stage in nest.stages) != 1):
        return 1
    rows, points = math.prod(form.extents[: form.outer]), math.prod(form.extents[form.outer:])
    if not 0 < rows <= FEW_ROWS or points < LONG_ROW:
        return 1
    return min(MAX_PARTIALS // rows, points // POINTS_OF_A_CHUNK)


class RowPartialKernel(PartialKernel):
    """Each block does a chunk of a row: every ``chunks``-th of its blocks of packs."""

    @contextmanager
    def own_packs(self) -> Iterator[ThreadPoint]:
        form, em, index = self.form, self.em, self.index
        chunks = self.param(("chunks",), self.index_kind, "chunks")
        row = em.named(index, f"{index}(blockIdx.x) / {chunks}", "row")
        counters = self.decoded(row, list(range(form.outer)))
        pointers = self.moved([self.pointer(n) for n in range(len(form.operands))], counters)
        count = self.param(("row_packs",), self.index_kind, "row_packs")
        start = (f"{index}(blockIdx.x) % {chunks} * {index}(blockDim.x) + {index}(threadIdx.x)")
        loops = range(form.outer, len(form.extents))
        with self.packs(loops, start, f"{chunks} * {index}(blockDim.x)", count, pointers,
                        counters) as place:
            yield place

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            chunks = chunks_of(form)
            blocks = math.prod(form.extents[: form.outer]) * chunks
            partials = blocks * BYTES_OF_A_PARTIAL * len(self.inner_stage().reductions)
            packs = packs_of(form, self.lanes, range(form.outer, len(form.extents)))
            return Layout(blocks, (self.max_threads, 1), blocks, partials=partials,
                          row_packs=packs, chunks=chunks)

        return layout


class RowFinishKernel(FinishKernel):
    """A block for each row."""

    def own_partials(self) -> tuple[ThreadPoint, str, str]:
        form, em, index = self.form, self.em, self.index
        chunks = self.param(("chunks",), self.index_kind, "chunks")
        row = em.named(index, f"{index}(blockIdx.x)", "row")
        counters = self.decoded(row, list(range(form.outer)))
        pointers = self.moved([self.pointer(n) for n in range(len(form.operands))], counters)
        first = em.named(index, f"{row} * {chunks}", "first")
        return ThreadPoint(counters, pointers), first, chunks

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            rows = math.prod(form.extents[: form.outer])
            return Layout(rows, (self.max_threads, 1), rows, chunks=chunks_of(form))

        return layout
