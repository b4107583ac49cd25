"""Scans along rows: a thread scans its pack, a warp the packs' totals, a block those of warps.

A team goes over a row in rounds, a pack for each thread.  What the threads before have in all comes
from shuffles, and in teams of several warps through shared memory, with one barrier a round.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusec.core.records import replace
from fusec.ops import get
from fusec.ops.rows.scans import start_of

from ....kernels.loop_ir import Expr, Stage, walk
from ....kernels.scalar_rules import boolean_op
from ....kernels.specialise import LoopForm
from ...module import WARP
from ...scalars.emitter import BOOL, CudaValue, literal, memory_type, type_name
from ...scalars.scalar_ops import emit_operation
from ..nest_kernel import KernelWriter, ThreadPoint, in_memory
from .accumulators import MAX_WARPS


def has_scans(stage: Stage) -> bool:
    return any(e.op == "scan" for e in walk(stage.roots))


class ScanWriter(KernelWriter):
    """A kernel whose stages may have scans, in rounds; ``carries``: what came before, by scan."""

    def __init__(self, form: LoopForm, name: str, index: str) -> None:
        super().__init__(form, name, index)
        self.carries: dict[int, str] = {}
        self.arrays_of_warps: dict[int, tuple[str, str]] = {}  # and which half is next, by scan
        self.scanned: dict[int, tuple[Expr, str, str]] = {}  # the pack's, and what is before it
        self.is_round = False
        self.loads_of_round: dict[int, str] | None = None
        self.scan_bytes = 0

    def start_scans(self, stage: Stage) -> None:
        for e in scans_of(stage):
            self.start_carry(e)
            self._declare_array(e)
        if scans_of(stage):
            self.em.line(f"if (blockDim.x > {WARP}) __syncthreads();")

    def start(self, e: Expr) -> str:
        return literal(e.dtype, start_of(e.attr, e.dtype))

    def start_carry(self, e: Expr) -> None:
        name = self.carries[id(e)] = self.em.fresh("carry")
        self.em.line(f"{type_name(e.dtype)} {name} = {self.start(e)};")

    def _declare_array(self, e: Expr) -> None:
        """Shared memory for warps' totals; two halves take turns, so that a round has one barrier.
        """
        array, turn = self.arrays_of_warps[id(e)] = self.em.fresh("warps"), self.em.fresh("turn")
        self.head.append(f"__shared__ {memory_type(e.dtype)} {array}[{2 * MAX_WARPS}];")
        self.scan_bytes += 2 * MAX_WARPS * e.dtype.itemsize
        self.em.line(f"int {turn} = 0;")

    @contextmanager
    def round(self, stage: Stage, place: ThreadPoint) -> Iterator[None]:
        """The scans of a stage at a pack; inside, expressions have their results."""
        self.is_round = True
        loads = self.loads_of_round = self._loads(stage, place)
        for e in scans_of(stage):
            self._scan_pack(e, place, loads)
        yield
        self.is_round, self.loads_of_round, self.scanned = False, None, {}

    def _loads(self, stage: Stage, place: ThreadPoint) -> dict[int, str]:
        known = self.loads_of_round
        return super()._loads(stage, place) if known is None else known

    def _lane(self, place: ThreadPoint) -> ThreadPoint:
        here = super()._lane(place)
        if not self.is_round:
            return here
        if place.lanes > 1 and place.valid:
            here = replace(here, valid=f"{place.valid} && {here.valid}")
        lane = "k" if place.lanes > 1 else "0"
        for e, part, before in self.scanned.values():
            here.memo[id(e)] = joined(self, e, before, f"{part}.v[{lane}]")
        return here

    def _scan_pack(self, e: Expr, place: ThreadPoint, loads: dict[int, str]) -> None:
        em, kind = self.em, type_name(e.dtype)
        part, total = em.fresh("part"), em.fresh("total")
        em.line(f"Pack<{kind}, {place.lanes}> {part};")
        em.line(f"{kind} {total} = {self.start(e)};")
        with em.block(self._lane_loop(place.lanes)):
            here, lane = self._lane(place), "k" if place.lanes > 1 else "0"
            value = self._evaluate(e.args, here, loads, lane)[id(e.args[0])]
            if here.valid:
                value = em.value(e.dtype, f"{here.valid} ? {value} : {self.start(e)}")
            em.line(f"{total} = {joined(self, e, total, str(value))};")
            em.line(f"{part}.v[{lane}] = {total};")
        before = self.before_of_team(e, total)
        carry = self.carries[id(e)]
        self.scanned[id(e)] = e, part, str(joined(self, e, carry, before))
        em.line(f"{carry} = {joined(self, e, carry, total)};")

    def before_of_team(self, e: Expr, total: str) -> str:
        """What the threads before this one have in all, of each thread's ``total``, which becomes
        that of the team."""
        em, kind, lane = self.em, type_name(e.dtype), f"int(threadIdx.x % {WARP})"
        before = em.fresh("before")
        self._up_to(e, total, lane, WARP)
        em.line(f"{kind} {before} = shuffle_up({total}, 1);")
        em.line(f"if ({lane} == 0) {before} = {self.start(e)};")
        em.line(f"{total} = shuffle_from({total}, {WARP - 1});")
        with em.block(f"if (blockDim.x > {WARP})"):
            self._before_of_warps(e, total, before)
        return before

    def _up_to(self, e: Expr, name: str, lane: str, lanes: int) -> None:
        """A value of each lane becomes that of all up to it, by doubling distances."""
        em, kind = self.em, type_name(e.dtype)
        em.line("#pragma unroll")
        with em.block(f"for (int d = 1; d < {lanes}; d <<= 1)"):
            other = em.named(kind, f"shuffle_up({name}, d)", "other")
            em.line(f"if ({lane} >= d) {name} = {joined(self, e, other, name)};")

    def _before_of_warps(self, e: Expr, total: str, before: str) -> None:
        em, kind, (array, turn) = self.em, type_name(e.dtype), self.arrays_of_warps[id(e)]
        mine = em.named("int", f"int(threadIdx.x) / {WARP}", "warp")
        em.line(f"if (threadIdx.x % {WARP} == 0) shared_store(&{array}[{turn} + {mine}], "
                f"{in_memory(CudaValue(total, e.dtype))});")
        em.line("__syncthreads();")
        held = em.named("int", f"int(threadIdx.x % {MAX_WARPS})", "held")
        read = f"shared_load(&{array}[{turn} + {held}])" + (" != 0" if e.dtype == BOOL else "")
        of_warp = em.fresh("of_warp")
        em.line(f"{kind} {of_warp} = {self.start(e)};")
        em.line(f"if ({held} < int(blockDim.x) / {WARP}) {of_warp} = {read};")
        self._up_to(e, of_warp, held, MAX_WARPS)
        start = em.fresh("start")
        em.line(f"{kind} {start} = shuffle_from({of_warp}, {mine} > 0 ? {mine} - 1 : 0);")
        em.line(f"if ({mine} == 0) {start} = {self.start(e)};")
        em.line(f"{before} = {joined(self, e, start, before)};")
        em.line(f"{total} = shuffle_from({of_warp}, {MAX_WARPS - 1});")
        em.line(f"{turn} = {MAX_WARPS} - {turn};")


def scans_of(stage: Stage) -> list[Expr]:
    """Operands before users."""
    return [e for e in walk(stage.roots) if e.op == "scan"]


def joined(writer: KernelWriter, e: Expr, a: str, b: str) -> CudaValue:
    scalar = get(e.attr).scalar or ""
    op = boolean_op(scalar) if e.dtype == BOOL else scalar
    return emit_operation(writer.em, op, e.dtype, [CudaValue(a, e.dtype), CudaValue(b, e.dtype)])
