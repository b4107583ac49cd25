"""Full reductions in two launches: blocks leave partial results, one block joins these.

Pieces and order follow from the sizes alone.
"""

from __future__ import annotations

from fusec.codegen.loop_ir import Reduction, Stage
from fusec.codegen.specialise import LoopForm

from .accumulators import Accumulator, TeamReduction, accumulate, declare, join
from .elementwise import grid_start, packs_of
from .emitter import BOOL, memory_type, type_name
from .launch_plan import Geometry, Layout, blocks_for
from .nest_kernel import KernelWriter, Place

PACKS_OF_A_THREAD = 8
MAX_PARTIALS = 1024
BYTES_OF_A_PARTIAL = 16  # a value and its position


class _Partials(KernelWriter):
    """What both kernels know of the partial results."""

    has_barriers = True

    def inner_stage(self) -> Stage:
        (stage,) = (s for s in self.form.nest.stages if s.inner)
        return stage

    def partial_blocks(self, form: LoopForm) -> int:
        work = packs_of(form, self.lanes)
        return blocks_for(work, self.max_threads * PACKS_OF_A_THREAD, MAX_PARTIALS)

    def partial(self, block: str, reduction: Reduction, half: int) -> str:
        """The address of a partial result, or of its position."""
        reductions = self.inner_stage().reductions
        base = self.param(("partials",), "pointer", "partials", is_written=True)
        number = f"i64({block}) * {len(reductions)} + {reductions.index(reduction)}"
        return f"{base} + ({number}) * {BYTES_OF_A_PARTIAL} + {8 * half}"


class PartialKernel(_Partials):
    """Every thread goes over packs of the whole domain; a block joins what its threads have."""

    def body(self) -> None:
        form, em, stage = self.form, self.em, self.inner_stage()
        team = TeamReduction(em, self.head)
        accs = {r.number: declare(em, r) for r in stage.reductions}
        start, step = grid_start(self.index)
        work = self.param(("work",), self.index_kind, "work")
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        with self.packs(range(len(form.extents)), start, step, work, pointers, {}) as place:
            self.run_stage(stage, place, lambda r, value, at: accumulate(
                em, accs[r.number], value, at.linear, at.valid))
        team.join_all(list(accs.values()))
        with em.block("if (threadIdx.x == 0)"):
            for acc in accs.values():
                for half, (name, dtype) in enumerate(acc.variables):
                    text = f"u8({name})" if dtype == BOOL else name
                    em.line(f"store<{memory_type(dtype)}>("
                            f"{self.partial('blockIdx.x', acc.reduction, half)}, {text});")
        self.shared_bytes = team.bytes

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            blocks = self.partial_blocks(form)
            partials = blocks * BYTES_OF_A_PARTIAL * len(self.inner_stage().reductions)
            return Layout(blocks, (self.max_threads, 1), packs_of(form, self.lanes),
                          partials=max(partials, 1))

        return layout


class FinishKernel(_Partials):
    """One block joins the partial results and runs what comes after."""

    def body(self) -> None:
        form, em = self.form, self.em
        team = TeamReduction(em, self.head)
        accs = [declare(em, r) for r in self.inner_stage().reductions]
        blocks = self.param(("work",), self.index_kind, "blocks")
        with em.block(f"for ({self.index} b = threadIdx.x; b < {blocks}; b += blockDim.x)"):
            for acc in accs:
                self._join_partial(acc)
        team.join_all(accs)
        self.reduced = {acc.reduction.number: acc.result(em) for acc in accs}
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        for stage in form.nest.stages:
            if not stage.inner:
                self.run_stage(stage, Place({}, pointers), only="threadIdx.x == 0")
        self.shared_bytes = team.bytes

    def _join_partial(self, acc: Accumulator) -> None:
        em, values = self.em, []
        for half, (_, dtype) in enumerate(acc.variables):
            text = f"load<{memory_type(dtype)}>({self.partial('b', acc.reduction, half)})"
            text = f"{text} != 0" if dtype == BOOL else text
            values.append(em.named(type_name(dtype), text, "other"))
        join(em, acc, *values)

    def geometry(self) -> Geometry:
        return lambda form: Layout(1, (self.max_threads, 1), self.partial_blocks(form))
