"""Reductions and scans along inner loops: a team of threads for each row, a warp for short ones,
a part of one where that has more threads than the row packs.

Values that later stages need again stay on chip where a row fits there, else in global memory: each
thread reads back its own values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from fusec.core.records import replace
from fusec.ops import get
from fusec.ops.rows.scans import start_of

from ....kernels.loop_ir import Expr, Stage, walk
from ....kernels.scalar_rules import boolean_op
from ....kernels.specialise import LoopForm
from ...module import WARP
from ...scalars.emitter import BOOL, CudaValue, literal, memory_type, type_name
from ...scalars.scalar_ops import emit_operation
from ..elementwise_kernels import packs_of
from ..launch_plan import Geometry, Layout, blocks_for
from ..nest_kernel import KernelWriter, ThreadPoint, in_memory, pack_lanes
from .accumulators import TeamReduction, accumulate, declare

SHORT_ROW = 64  # packs of a row that one warp does
SHORTEST_ROW = WARP // 2  # packs of a row that a part of a warp does
THREADS_OF_PARTS = 256
ROWS_OF_A_BLOCK = 8
MAX_TEAM = 512
ON_CHIP_BYTES = 40 << 10  # of the 48 KiB that a block has without asking for more
MAX_SCRATCH_BLOCKS = 1024


def inner_points(form: LoopForm) -> int:
    return math.prod(form.extents[form.outer:])


def is_on_chip(form: LoopForm) -> bool:
    """Whether a row's scratch is kept in shared memory."""
    return bool(form.nest.scratch) and form.is_static and _row_bytes(form) <= ON_CHIP_BYTES


def _row_bytes(form: LoopForm) -> int:
    points = inner_points(form)
    return sum(-(-points * d.itemsize // 8) * 8 for d in form.nest.scratch)


def has_parts_of_warps(form: LoopForm) -> bool:
    """Whether several rows share a warp, whose threads then go over rows together."""
    return form.mode == "row" and form.is_static and not form.nest.has_scans and (
        0 < packs_of(form, pack_lanes(form), range(form.outer, len(form.extents))) <= SHORTEST_ROW)


class RowKernel(KernelWriter):
    """See the module docstring."""

    has_barriers = True
    max_threads = MAX_TEAM

    def body(self) -> None:
        form, em = self.form, self.em
        self.shares_warps = has_parts_of_warps(form)
        self.team = TeamReduction(em, self.head, self.shares_warps)
        self.carries: dict[int, str] = {}
        self._declare_scratch()
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        rows = self.param(("work",), self.index_kind, "rows")
        with self._rows(rows):
            outer = list(range(form.outer))
            counters = self.decoded("row", outer) if outer else {}
            here = self.moved(pointers, counters)
            for stage in form.nest.stages:
                if stage.inner:
                    self._inner(stage, here, counters)
                else:
                    self.run_stage(stage, ThreadPoint(counters, here, valid=self.valid),
                                   only="threadIdx.x == 0")
        self.shared_bytes = self.team.bytes

    @contextmanager
    def _rows(self, rows: str) -> Iterator[None]:
        """Each ``row`` of this team; teams that share a warp repeat the last one until all have
        done theirs."""
        em, index = self.em, self.index
        first, step = f"{index}(blockIdx.x) * {index}(blockDim.y)", (
            f"{index}(gridDim.x) * {index}(blockDim.y)")
        self.valid = ""
        if not self.shares_warps:
            start = f"{first} + {index}(threadIdx.y)"
            with em.block(f"for ({index} row = {start}; row < {rows}; row += {step})"):
                yield
            return
        with em.block(f"for ({index} base = {first}; base < {rows}; base += {step})"):
            own = em.named(index, f"base + {index}(threadIdx.y)", "own")
            self.valid = em.named("bool", f"{own} < {rows}", "valid")
            em.line(f"const {index} row = {self.valid} ? {own} : {rows} - 1;")
            yield

    def _inner(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        em = self.em
        accs = {r.number: declare(em, r) for r in stage.reductions}
        self._start_scans(stage)
        with self._row(stage, pointers, counters) as place:
            self.run_stage(stage, place, lambda r, value, at: accumulate(
                em, accs[r.number], value, at.linear, at.valid))
        if accs:
            self.team.join_all(list(accs.values()))
        for number, acc in accs.items():
            self.reduced[number] = acc.result(em)

    @contextmanager
    def _row(
        self, stage: Stage, pointers: list[str], counters: dict[int, str]
    ) -> Iterator[ThreadPoint]:
        """The packs of this thread; in stages with scans all threads take part in every round."""
        form = self.form
        loops = range(form.outer, len(form.extents))
        count = self.param(("row_packs",), self.index_kind, "row_packs")
        lane, step = f"{self.index}(threadIdx.x)", f"{self.index}(blockDim.x)"
        if not any(e.op == "scan" for e in walk(stage.roots)):
            with self.packs(loops, lane, step, count, pointers, counters) as place:
                yield replace(place, valid=self.valid)
            return
        em, index = self.em, self.index
        with em.block(f"for ({index} base = 0; base < {count}; base += {step})"):
            at = em.named(index, f"base + {lane}", "at")
            valid = em.named("bool", f"{at} < {count}", "valid")
            number = em.named(index, f"{valid} ? {at} : {count} - 1", "id")
            inner = self.decoded(number, list(loops))
            before = {loop: c for loop, c in inner.items() if loop != form.axis}
            yield ThreadPoint(
                {**counters, **inner}, self.moved(pointers, before), number, valid=valid)

    # -- scans

    def _start_scans(self, stage: Stage) -> None:
        for e in walk(stage.roots):
            if e.op == "scan":
                name = self.carries[id(e)] = self.em.fresh("carry")
                start = literal(e.dtype, start_of(e.attr, e.dtype))
                self.em.line(f"{type_name(e.dtype)} {name} = {start};")

    def scan(self, e: Expr, value: CudaValue, place: ThreadPoint) -> CudaValue:
        """By doubling distances in a warp, warp after warp, then after the total before."""
        em, kind = self.em, type_name(e.dtype)
        start, carry = literal(e.dtype, start_of(e.attr, e.dtype)), self.carries[id(e)]
        part, total = em.fresh("part"), em.fresh("total")
        em.line(f"{kind} {part} = {place.valid} ? {value} : {start};")
        with em.block(f"for (int d = 1; d < {WARP}; d <<= 1)"):
            other = em.named(kind, f"shuffle_up({part}, d)", "other")
            after = joined(self, e, other, part)
            em.line(f"if (int(threadIdx.x % {WARP}) >= d) {part} = {after};")
        em.line(f"{kind} {total} = shuffle_from({part}, {WARP - 1});")
        with em.block(f"if (blockDim.x > {WARP})"):
            self._scan_warps(e, part, total, start)
        result = joined(self, e, carry, part)
        em.line(f"{carry} = {joined(self, e, carry, total)};")
        return result

    def _scan_warps(self, e: Expr, part: str, total: str, start: str) -> None:
        em, kind, array = self.em, type_name(e.dtype), self.team.array(e.dtype, 0)
        em.line("__syncthreads();")
        em.line(f"if (threadIdx.x % {WARP} == 0) shared_store(&{array}[threadIdx.x / {WARP}], "
                f"{in_memory(CudaValue(total, e.dtype))});")
        em.line("__syncthreads();")
        before = em.fresh("before")
        em.line(f"{kind} {before} = {start};")
        em.line(f"{total} = {start};")
        with em.block(f"for (int w = 0; w < int(blockDim.x) / {WARP}; ++w)"):
            em.line(f"if (w == int(threadIdx.x) / {WARP}) {before} = {total};")
            read = f"shared_load(&{array}[w])" + (" != 0" if e.dtype == BOOL else "")
            other = em.named(kind, read, "other")
            em.line(f"{total} = {joined(self, e, total, other)};")
        em.line(f"{part} = {joined(self, e, before, part)};")

    # -- scratch

    def _declare_scratch(self) -> None:
        form, em = self.form, self.em
        self.on_chip = is_on_chip(form)
        if not form.nest.scratch:
            return
        points = self.param(("row_points",), "int64", "row_points")
        if self.on_chip:
            self.head.append("extern __shared__ unsigned long long on_chip[];")
            offset = f"i64(threadIdx.y) * {self.param(('row_bytes',), 'int64', 'row_bytes')}"
            for number, dtype in enumerate(form.nest.scratch):
                kind = memory_type(dtype)
                em.line(f"{kind} *const scratch{number} = reinterpret_cast<{kind} *>("
                        f"reinterpret_cast<char *>(on_chip) + {offset});")
                offset += f" + ({points} * {dtype.itemsize} + 7) / 8 * 8"
            return
        slot = em.named("i64", "i64(blockIdx.x) * blockDim.y + threadIdx.y", "slot")
        for number, dtype in enumerate(form.nest.scratch):
            base = self.param(("scratch", number), "pointer", f"scratch_at{number}",
                              is_written=True)
            em.line(f"char *const scratch{number} = {base} + {slot} * {points} * "
                    f"{dtype.itemsize};")

    def put_scratch(self, number: int, value: CudaValue, place: ThreadPoint) -> None:
        kind, text = memory_type(value.dtype), in_memory(value)
        if self.on_chip:
            line = f"shared_store(&scratch{number}[{place.linear}], {text});"
        else:
            at = f"scratch{number} + i64({place.linear}) * {value.dtype.itemsize}"
            line = f"store<{kind}>({at}, {text});"
        self.em.line(f"if ({place.valid}) {line}" if place.valid else line)

    def get_scratch(self, number: int, dtype: np.dtype, place: ThreadPoint) -> CudaValue:
        if self.on_chip:
            text = f"shared_load(&scratch{number}[{place.linear}])"
        else:
            at = f"scratch{number} + i64({place.linear}) * {dtype.itemsize}"
            text = f"load<{memory_type(dtype)}>({at})"
        return self.em.value(dtype, f"{text} != 0" if dtype == BOOL else text)

    def geometry(self) -> Geometry:
        lanes, on_chip = self.lanes, self.on_chip
        return lambda form: row_layout(form, lanes, on_chip)


def row_layout(form: LoopForm, lanes: int, on_chip: bool) -> Layout:
    """A warp for each short row, several rows in a block; else a block for each row."""
    rows = math.prod(form.extents[: form.outer])
    packs = packs_of(form, lanes, range(form.outer, len(form.extents)))
    together = 1
    team = min(MAX_TEAM, max(WARP, -(-packs // (2 * WARP)) * WARP))
    if packs <= SHORT_ROW:
        team, together = WARP, min(ROWS_OF_A_BLOCK, max(1, rows))
    if has_parts_of_warps(form):
        team = 1 << (packs - 1).bit_length()
        together = THREADS_OF_PARTS // team
    scratch = _row_bytes(form)
    if on_chip:
        together = max(1, min(together, ON_CHIP_BYTES // max(scratch, 1)))
    if team < WARP:  # warps are whole
        together = max(together * team // WARP, 1) * WARP // team
    limit = MAX_SCRATCH_BLOCKS if scratch and not on_chip else 1 << 16
    blocks = blocks_for(rows, together, limit)
    points = inner_points(form)
    return Layout(blocks, (team, together), rows, shared=together * scratch if on_chip else 0,
                  scratch=0 if on_chip or not scratch else blocks * together * max(points, 1),
                  row_packs=packs, row_points=points, row_bytes=scratch)


def joined(writer: KernelWriter, e: Expr, a: str, b: str) -> CudaValue:
    scalar = get(e.attr).scalar or ""
    op = boolean_op(scalar) if e.dtype == BOOL else scalar
    return emit_operation(writer.em, op, e.dtype, [CudaValue(a, e.dtype), CudaValue(b, e.dtype)])
