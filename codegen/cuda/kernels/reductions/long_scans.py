"""Scans of a few long rows in one pass, by blocks that look back at those before them.

A block takes a number when it begins, and with it a tile of a row: so all tiles before its own are
done, or are being done.  It reduces its tile and publishes the total; then it waits for what is
before the tile, and scans.  After D. Merrill and M. Garland, "Single-pass parallel prefix scan with
decoupled look-back", NVIDIA NVR-2016-002; but there the totals that are known by then decide on the
order of additions.  Here it is always the same: tiles are in groups, a block joins the totals of
those of its group, by halves as a team does, after the sum of all groups before, which the last
block of each group publishes.
"""

from __future__ import annotations

import math
from typing import Any

from fusec.ops import get
from fusec.ops.rows.scans import start_of

from ....kernels.loop_ir import Expr, Reduction, Stage, walk
from ....kernels.specialise import LoopForm
from ...scalars.emitter import BOOL, CudaValue, memory_type, type_name
from ..elementwise_kernels import grid_start, packs_of
from ..launch_plan import Geometry, Layout, blocks_for
from ..nest_kernel import KernelWriter, in_memory
from .accumulators import TeamReduction, declare, join
from .full_reductions import FEW_ROWS, LONG_ROW
from .rows import RowKernel
from .scans import joined, scans_of

THREADS = 256
PACKS_OF_A_TILE = 8 * THREADS
GROUP = 128  # tiles, whose totals the threads of a block read at once
_HEAD = 16  # bytes: the next number


def is_long_scan(form: LoopForm) -> bool:
    """Whether blocks share rows: scans of what the arguments say, of few and long rows."""
    nest = form.nest
    if form.mode != "row" or not form.is_static or nest.scratch or len(nest.stages) != 1:
        return False
    (stage,) = nest.stages
    scans = scans_of(stage)
    rows, points = math.prod(form.extents[: form.outer]), math.prod(form.extents[form.outer:])
    return bool(scans) and not stage.reductions and 0 < rows <= FEW_ROWS and (
        points >= LONG_ROW) and not any(e.op == "scan" for s in scans for e in walk(s.args))


class _Published(KernelWriter):
    """Memory that the blocks share: the next number; for each tile whether its total is there, and
    whether the sum up to its group's end is; then both for each scan."""

    def words(self) -> str:
        return self.param(("partials",), "pointer", "published", is_written=True)

    def is_there(self, tile: str, is_sum: bool) -> str:
        """The address of a flag."""
        tiles = self.param(("work",), self.index_kind, "tiles")
        first = f"i64({tiles}) + " if is_sum else ""
        return f"{self.words()} + {_HEAD} + ({first}{tile}) * 4"

    def total(self, tile: str, scan: int, is_sum: bool) -> str:
        """The address of a total, or of a sum."""
        tiles = self.param(("work",), self.index_kind, "tiles")
        return (f"{self.words()} + {_HEAD} + i64({tiles}) * {8 + 8 * (2 * scan + is_sum)} + "
                f"i64({tile}) * 8")


def _tiles_of_a_row(form: LoopForm, lanes: int) -> int:
    return -(-packs_of(form, lanes, range(form.outer, len(form.extents))) // PACKS_OF_A_TILE)


def _bytes(form: LoopForm, tiles: int) -> int:
    return _HEAD + tiles * (8 + 16 * len(scans_of(form.nest.stages[0])))


class ClearKernel(_Published):
    """Takes back what an earlier launch has published."""

    def body(self) -> None:
        em, (start, step) = self.em, grid_start(self.index)
        tiles = self.param(("work",), self.index_kind, "tiles")
        loop = f"for ({self.index} w = {start}; w < 2 * {tiles} + {_HEAD // 4}; w += {step})"
        with em.block(loop):
            em.line(f"store<i32>({self.words()} + i64(w) * 4, 0);")

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            tiles = math.prod(form.extents[: form.outer]) * _tiles_of_a_row(form, self.lanes)
            return Layout(blocks_for(2 * tiles + 4, THREADS, 64), (THREADS, 1), tiles,
                          partials=_bytes(form, tiles))

        return layout


class LongScanKernel(RowKernel, _Published):
    """See the module docstring."""

    max_threads = THREADS

    def body(self) -> None:
        form, em, index = self.form, self.em, self.index
        (stage,) = form.nest.stages
        self.shares_warps, self.valid, self.on_chip, self.packs_of_scratch = False, "", False, {}
        self.team, self.scans = TeamReduction(em, self.head), scans_of(stage)
        self.sums = [Reduction(n, get(e.attr).scalar or "", e.args[0], e.dtype)
                     for n, e in enumerate(self.scans)]
        tiles = self.param(("chunks",), index_kind := self.index_kind, "row_tiles")
        packs = self.param(("row_packs",), index_kind, "row_packs")
        self.number = self._next_number()
        row = em.named(index, f"{self.number} / {tiles}", "row")
        self.tile = em.named(index, f"{self.number} - {row} * {tiles}", "tile")
        self.begin = em.named(index, f"{self.tile} * {PACKS_OF_A_TILE}", "begin")
        self.end = em.named(index, f"{packs} - {self.begin} < {PACKS_OF_A_TILE} ? {packs} : "
                            f"{self.begin} + {PACKS_OF_A_TILE}", "end")
        outer = list(range(form.outer))
        counters = self.decoded(row, outer) if outer else {}
        here = self.moved([self.pointer(n) for n in range(len(form.operands))], counters)
        self._before(here, counters)
        self._inner(stage, here, counters)
        self.shared_bytes = self.team.bytes + self.scan_bytes + 4

    def _next_number(self) -> str:
        """The number that the block takes."""
        em = self.em
        self.head.append("__shared__ i32 taken[1];")
        em.line("if (threadIdx.x == 0) shared_store(&taken[0], i32(atomicAdd("
                f"reinterpret_cast<unsigned *>({self.words()}), 1u)));")
        em.line("__syncthreads();")
        return em.named(self.index, f"{self.index}(shared_load(&taken[0]))", "number")

    # -- what is before a tile

    def _before(self, pointers: list[str], counters: dict[int, str]) -> None:
        """Publishes the tile's totals; then `before` has what comes before it."""
        em = self.em
        self._inner(Stage(True, reductions=tuple(self.sums)), pointers, counters)
        own = [str(self.reduced[r.number]) for r in self.sums]
        self._publish(own, is_sum=False, only="threadIdx.x == 0")
        in_group = em.named("int", f"int({self.tile} % {GROUP})", "in_group")
        first = em.named(self.index, f"{self.number} - {in_group}", "first")
        accs = [declare(em, r, first=self.first_of(r)) for r in self.sums]
        with em.block(f"if (int(threadIdx.x) < {in_group})"):
            at = em.named(self.index, f"{first} + {self.index}(threadIdx.x)", "at")
            em.line(f"wait_for({self.is_there(at, False)});")
            for n, acc in enumerate(accs):
                join(em, acc, self._read(at, n, False))
        self.team.join_all(accs)
        self.before = [self._after_groups(e, n, acc.value, first) for n, (e, acc) in enumerate(
            zip(self.scans, accs, strict=True))]
        ends = [str(joined(self, e, before, total)) for e, before, total in zip(
            self.scans, self.before, own, strict=True)]
        self._publish(ends, is_sum=True, only=f"threadIdx.x == 0 && {in_group} == {GROUP - 1}")

    def first_of(self, reduction: Reduction) -> Any:
        """-0.0 of sums, so that a total of zeros keeps its sign."""
        e = self.scans[reduction.number]
        return start_of(e.attr, e.dtype)

    def _after_groups(self, e: Expr, scan: int, in_group: str, first: str) -> str:
        """The totals of the group after the sum of all groups before."""
        em, before = self.em, self.em.fresh("before")
        em.line(f"{type_name(e.dtype)} {before} = {self.start(e)};")
        em.line(f"if ({self.tile} % {GROUP} != 0) {before} = {in_group};")
        with em.block(f"if ({self.tile} >= {GROUP})"):
            at = em.named(self.index, f"{first} - 1", "at")
            em.line(f"wait_for({self.is_there(at, True)});")
            em.line(f"{before} = {joined(self, e, self._read(at, scan, True), before)};")
        return before

    def _publish(self, values: list[str], is_sum: bool, only: str) -> None:
        em = self.em
        with em.block(f"if ({only})"):
            for scan, (e, value) in enumerate(zip(self.scans, values, strict=True)):
                em.line(f"store<{memory_type(e.dtype)}>({self.total(self.number, scan, is_sum)}, "
                        f"{in_memory(CudaValue(value, e.dtype))});")
            em.line(f"publish({self.is_there(self.number, is_sum)});")

    def _read(self, tile: str, scan: int, is_sum: bool) -> str:
        dtype = self.scans[scan].dtype
        text = f"load<{memory_type(dtype)}>({self.total(tile, scan, is_sum)})"
        return self.em.named(type_name(dtype), f"{text} != 0" if dtype == BOOL else text, "other")

    # -- a tile

    @property
    def own_packs(self) -> tuple[str, str, str, str]:
        return self.begin, f"{self.index}(threadIdx.x)", f"{self.index}(blockDim.x)", self.end

    def start_scans(self, stage: Stage) -> None:
        super().start_scans(stage)
        for e, before in zip(scans_of(stage), self.before if scans_of(stage) else (),
                             strict=True):
            self.em.line(f"{self.carries[id(e)]} = {before};")

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            loops = range(form.outer, len(form.extents))
            each = _tiles_of_a_row(form, self.lanes)
            tiles = math.prod(form.extents[: form.outer]) * each
            return Layout(tiles, (THREADS, 1), tiles, partials=_bytes(form, tiles), chunks=each,
                          row_packs=packs_of(form, self.lanes, loops))

        return layout
