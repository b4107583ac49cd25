"""Reductions and scans along inner loops: a team of threads for each row, a warp for short ones,
a part of one where that has more threads than the row packs.

Values that later stages need again stay on chip where a row fits there, else in global memory: each
thread reads back its own values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from fusec.core.records import replace
from fusec.ir.sizes.dims import Size

from ....kernels.loop_ir import Reduction, Stage, walk
from ....kernels.specialise import LoopForm
from ...module import WARP
from ...scalars.emitter import BOOL, I64, CudaValue, memory_type
from ..elementwise_kernels import aligned, is_aligned, one_by_one, packs_of
from ..launch_plan import Geometry, Layout, blocks_for, either, least, most, pieces
from ..nest_kernel import (
    ACCESS_BYTES,
    MANY_OPERATIONS,
    Accumulate,
    ThreadPoint,
    in_memory,
    operations,
    pack_lanes,
)
from .accumulators import I32, TeamReduction, accumulate, declare
from .scans import ScanWriter, has_scans

PACKS_OF_A_WARP = 256  # of a row; longer rows have more warps
PACKS_AT_ONCE = 2  # that a loop's text does, where it is short
SHORTEST_ROW = WARP // 2  # packs of a row that a part of a warp does
THREADS_OF_PARTS = 256
ROWS_OF_A_BLOCK = 8
MAX_TEAM = 512
ON_CHIP_BYTES = 40 << 10  # of the 48 KiB that a block has without asking for more
MAX_SCRATCH_BLOCKS = 1024
# The shared memory of a launch, whose first byte lies where the widest access may.
ON_CHIP = f"extern __shared__ __align__({ACCESS_BYTES}) unsigned long long on_chip[];"


def inner_points(form: LoopForm) -> Size:
    return math.prod(form.extents[form.outer:])


def is_on_chip(form: LoopForm) -> bool:
    """Whether a row's scratch is kept in shared memory."""
    return bool(form.nest.scratch) and form.is_static and _row_bytes(form) <= ON_CHIP_BYTES


def _row_bytes(form: LoopForm) -> Size:
    points = inner_points(form)
    return sum(pieces(points * d.itemsize, ACCESS_BYTES) * ACCESS_BYTES for d in form.nest.scratch)


def has_parts_of_warps(form: LoopForm) -> bool:
    """Whether several rows share a warp, whose threads then go over rows together."""
    return form.mode == "row" and form.is_static and not form.nest.has_scans and (
        0 < packs_of(form, pack_lanes(form), range(form.outer, len(form.extents))) <= SHORTEST_ROW)


def are_aligned(form: LoopForm) -> bool:
    """Whether packs of all rows are known to lie where one access reads or writes them, but for
    where memory that is given begins."""
    return form.is_static and is_aligned(form)


class RowKernel(ScanWriter):
    """See the module docstring."""

    has_barriers = True
    max_threads = MAX_TEAM
    least_blocks = 3

    def __init__(self, form: LoopForm, name: str, index: str) -> None:
        super().__init__(form, name, index)
        self.packs_at_once = PACKS_AT_ONCE if self.lanes > 1 and not form.nest.has_scans and (
            operations(form) <= MANY_OPERATIONS // PACKS_AT_ONCE) else 1

    @property
    def elements(self) -> int:
        return self.lanes * self.packs_at_once

    def body(self) -> None:
        form, em = self.form, self.em
        self.shares_warps = has_parts_of_warps(form)
        self.team = TeamReduction(em, self.head, self.shares_warps)
        self.packs_of_scratch: dict[int, str] = {}
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
        self.shared_bytes = self.team.bytes + self.scan_bytes

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
        places = I32 if self.index == "i32" else I64
        accs = {r.number: declare(em, r, places, self.first_of(r)) for r in stage.reductions}
        self.start_scans(stage)

        def run(place: ThreadPoint) -> None:
            # Teams that repeat a row have all of it: their sums are right, and nobody stores them.
            is_part = place.lanes > 1 or has_scans(stage)
            self.run_stage(stage, place, lambda r, value, at: accumulate(
                em, accs[r.number], value, at.linear, at.valid if is_part else ""))

        if has_scans(stage):
            self._run_rounds(stage, run, pointers, counters)
        elif self.lanes == 1:
            begin, place_in_team, step, end = self.own_packs
            start = place_in_team if begin == "0" else f"{begin} + {place_in_team}"
            with self.packs(self.inner_loops, start, step, end, pointers, counters) as place:
                run(replace(place, valid=self.valid))
        else:
            self._run_packs(stage, run, pointers, counters)
        if accs:
            self.team.join_all(list(accs.values()))
        for number, acc in accs.items():
            self.reduced[number] = acc.result(em)

    def first_of(self, reduction: Reduction) -> Any:
        """What an accumulator starts with; None: as of any reduction."""
        return None

    @property
    def inner_loops(self) -> range:
        return range(self.form.outer, len(self.form.extents))

    @property
    def own_packs(self) -> tuple[str, str, str, str]:
        """The team's first pack, the thread's place after it, the step, and the end."""
        return ("0", f"{self.index}(threadIdx.x)", f"{self.index}(blockDim.x)",
                self.param(("row_packs",), self.index_kind, "row_packs"))

    def _run_packs(
        self, stage: Stage, run: Callable[[ThreadPoint], None], pointers: list[str],
        counters: dict[int, str],
    ) -> None:
        """The packs of this thread: whole ones, then what is left of them element by element."""
        em, index, loops = self.em, self.index, self.inner_loops
        begin, mine, step, count = self.own_packs
        number, whole = em.fresh("id"), self._whole_packs(stage, pointers, count)
        em.line(f"{index} {number} = {mine if begin == '0' else f'{begin} + {mine}'};")
        em.line(f"#pragma unroll {self.packs_at_once}")
        with em.block(f"for (; {number} < {whole}; {number} += {step})"):
            place = self.pack_at(number, loops, pointers, counters, is_full=True)
            run(replace(place, whole=self.kind_of_whole, valid=self.valid))
        em.line("#pragma unroll 1")
        with em.block(f"for (; {number} < {count}; {number} += {step})"):
            place = self.pack_at(number, loops, pointers, counters)
            with one_by_one(em, place, self.form.axis) as one:
                run(replace(one, valid=self.valid))

    @property
    def kind_of_whole(self) -> Literal["aligned", "any"]:
        return "aligned" if are_aligned(self.form) else "any"

    def _whole_packs(self, stage: Stage, pointers: list[str], count: str) -> str:
        """How many packs of the row, from the first one, are whole and lie as the form has them."""
        form, lanes, extent = self.form, self.lanes, self.extent(self.form.axis)
        others = [loop for loop in self.inner_loops if loop != form.axis]
        conditions = [f"{extent} % {lanes} == 0"] if others else []
        if are_aligned(form):
            used = dict.fromkeys([e.attr for e in walk(stage.roots) if e.op == "load"] + [
                s.access for s in stage.stores])
            words = {n: [pointers[n], *(
                self.stride(n, loop) for loop in others if form.operands[n].strides[loop] != 0)]
                for n in used}
            conditions += aligned(form, used, lanes, words)
        full = count if others else f"{extent} / {lanes}"
        if not others and self.own_packs[0] != "0":
            full = f"({full} < {count} ? {full} : {count})"
        return self.em.named(self.index, (
            f"{' && '.join(conditions)} ? {full} : 0" if conditions else full), "whole")

    def _run_rounds(
        self, stage: Stage, run: Callable[[ThreadPoint], None], pointers: list[str],
        counters: dict[int, str],
    ) -> None:
        """The packs of this thread in a stage with scans: all threads take part in each round."""
        em, index, loops = self.em, self.index, self.inner_loops
        begin, first, step, count = self.own_packs
        base = em.fresh("base")
        em.line(f"{index} {base} = {begin};")
        if self.lanes > 1:
            whole = self._whole_packs(stage, pointers, count)
            with em.block(f"for (; {base} + {step} <= {whole}; {base} += {step})"):
                at = em.named(index, f"{base} + {first}", "id")
                place = replace(self.pack_at(at, loops, pointers, counters, is_full=True),
                                whole=self.kind_of_whole)
                with self.round(stage, place):
                    run(place)
        with em.block(f"for (; {base} < {count}; {base} += {step})"):
            at = em.named(index, f"{base} + {first}", "at")
            valid = em.named("bool", f"{at} < {count}", "valid")
            number = em.named(index, f"{valid} ? {at} : {count} - 1", "id")
            place = replace(self.pack_at(number, loops, pointers, counters), valid=valid)
            with self.round(stage, place):
                run(place)

    # -- scratch

    def _declare_scratch(self) -> None:
        form, em = self.form, self.em
        self.on_chip = is_on_chip(form)
        if not form.nest.scratch:
            return
        points = self.param(("row_points",), "int64", "row_points")
        if self.on_chip:
            self.head.append(ON_CHIP)
            offset = f"i64(threadIdx.y) * {self.param(('row_bytes',), 'int64', 'row_bytes')}"
            for number, dtype in enumerate(form.nest.scratch):
                kind = memory_type(dtype)
                em.line(f"{kind} *const scratch{number} = reinterpret_cast<{kind} *>("
                        f"reinterpret_cast<char *>(on_chip) + {offset});")
                offset += (f" + ({points} * {dtype.itemsize} + {ACCESS_BYTES - 1}) / "
                           f"{ACCESS_BYTES} * {ACCESS_BYTES}")
            return
        slot = em.named("i64", "i64(blockIdx.x) * blockDim.y + threadIdx.y", "slot")
        for number, dtype in enumerate(form.nest.scratch):
            base = self.param(("scratch", number), "pointer", f"scratch_at{number}",
                              is_written=True)
            em.line(f"char *const scratch{number} = {base} + {slot} * {points} * "
                    f"{dtype.itemsize};")

    def run_stage(
        self, stage: Stage, place: ThreadPoint, accumulate: Accumulate | None = None,
        only: str = "",
    ) -> None:
        """As of any kernel, with a whole pack of scratch read and written at once."""
        if not place.whole:
            super().run_stage(stage, place, accumulate, only)
            return
        em, numbers = self.em, self._wide_scratch(stage)
        self.packs_of_scratch = {}
        for number, written in numbers.items():
            kind = memory_type(self.form.nest.scratch[number])
            name = self.packs_of_scratch[number] = em.fresh("held")
            em.line(f"Pack<{kind}, {place.lanes}> {name};" if written else
                    f"const Pack<{kind}, {place.lanes}> {name} = load_wide<{kind}, "
                    f"{place.lanes}>({self._wide_at(number, place)});")
        super().run_stage(stage, place, accumulate, only)
        for number, written in numbers.items():
            if written:
                kind = memory_type(self.form.nest.scratch[number])
                em.line(f"store_wide<{kind}, {place.lanes}>({self._wide_at(number, place)}, "
                        f"{self.packs_of_scratch[number]});")
        self.packs_of_scratch = {}

    def _wide_scratch(self, stage: Stage) -> dict[int, bool]:
        """The scratch on chip that a stage reads, and (true) what it writes."""
        if not self.on_chip:
            return {}
        read = {e.attr: False for e in walk(stage.roots) if e.op == "scratch"}
        return read | {number: True for number, _ in stage.scratch}

    def _wide_at(self, number: int, place: ThreadPoint) -> str:
        return f"reinterpret_cast<char *>(scratch{number} + {place.linear})"

    def put_scratch(self, number: int, value: CudaValue, place: ThreadPoint) -> None:
        kind, text = memory_type(value.dtype), in_memory(value)
        if number in self.packs_of_scratch:
            self.em.line(f"{self.packs_of_scratch[number]}.v[k] = {text};")
            return
        if self.on_chip:
            line = f"shared_store(&scratch{number}[{place.linear}], {text});"
        else:
            at = f"scratch{number} + i64({place.linear}) * {value.dtype.itemsize}"
            line = f"store<{kind}>({at}, {text});"
        self.em.line(f"if ({place.valid}) {line}" if place.valid else line)

    def get_scratch(self, number: int, dtype: np.dtype, place: ThreadPoint) -> CudaValue:
        if number in self.packs_of_scratch:
            text = f"{self.packs_of_scratch[number]}.v[k]"
        elif self.on_chip:
            text = f"shared_load(&scratch{number}[{place.linear}])"
        else:
            at = f"scratch{number} + i64({place.linear}) * {dtype.itemsize}"
            text = f"load<{memory_type(dtype)}>({at})"
        return self.em.value(dtype, f"{text} != 0" if dtype == BOOL else text)

    def geometry(self) -> Geometry:
        lanes, on_chip, shares = self.lanes, self.on_chip, self.shares_warps
        return lambda form: row_layout(form, lanes, on_chip, shares)


def row_layout(form: LoopForm, lanes: int, on_chip: bool, shares_warps: bool) -> Layout:
    """A warp for each short row, several rows in a block; else a block for each row.  Where rows
    share warps is in the text, and no question of a call's sizes."""
    rows = math.prod(form.extents[: form.outer])
    packs = packs_of(form, lanes, range(form.outer, len(form.extents)))
    warps = least(MAX_TEAM // WARP, most(1, pieces(packs, PACKS_OF_A_WARP)))
    team = warps * WARP
    is_long = least(warps - 1, 1)
    together = either(is_long, 1, least(ROWS_OF_A_BLOCK, most(1, rows)))
    if shares_warps:
        team = 1 << (packs - 1).bit_length()
        together = THREADS_OF_PARTS // team
    scratch = _row_bytes(form)
    if on_chip:
        together = max(1, min(together, ON_CHIP_BYTES // max(scratch, 1)))
    if shares_warps and team < WARP:  # warps are whole
        together = max(together * team // WARP, 1) * WARP // team
    limit = MAX_SCRATCH_BLOCKS if form.nest.scratch and not on_chip else 1 << 16
    blocks = blocks_for(rows, together, limit)
    points = inner_points(form)
    return Layout(blocks, (team, together), rows, shared=together * scratch if on_chip else 0,
                  scratch=0 if on_chip or not form.nest.scratch else (
                      blocks * together * most(points, 1)),
                  row_packs=packs, row_points=points, row_bytes=scratch)
