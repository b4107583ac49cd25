"""Reductions and scans over outer axes: neighbouring threads take neighbouring columns.

Where rows are many and nothing is carried from one to the next but sums, groups of threads share
them: row r of the first reduced loop goes to group ``r % groups``, and groups are joined in order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import numpy as np

from fusec.ir.sizes.dims import Size

from ....kernels.loop_ir import Expr, Stage
from ....kernels.specialise import LoopForm
from ...module import WARP
from ...scalars.emitter import BOOL, CudaValue, memory_type, type_name
from ..launch_plan import Geometry, Layout, blocks_for, either, least, most
from ..nest_kernel import ThreadPoint, in_memory
from .accumulators import CudaAccumulator, accumulate, declare, is_indexed, join
from .rows import ON_CHIP_BYTES, RowKernel, inner_points
from .scans import joined, scans_of

COLUMNS = WARP  # of a block
MAX_GROUPS = 16
MAX_SCRATCH_BLOCKS = 512
# Rows whose loads a thread has in flight.  A sum of what is read has registers for more: 64 KiB of
# a multiprocessor are on their way then, twice what keeps an H200's memory busy.
ROWS_AT_ONCE, ROWS_OF_SUMS_AT_ONCE = 4, 8


class ColumnKernel(RowKernel):
    """See the module docstring; `blockDim.y` is the number of groups."""

    max_threads = COLUMNS * MAX_GROUPS
    least_blocks = 1

    @property
    def elements(self) -> int:
        return max((rows_at_once(s) for s in self.form.nest.stages if s.reductions), default=1)

    def body(self) -> None:
        form, em, index = self.form, self.em, self.index
        self.packs_of_scratch, self.columns_bytes = {}, 0
        self.arrays: dict[str, int] = {}
        self.on_chip = False
        self._declare_scratch()
        columns = self.param(("work",), self.index_kind, "columns")
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        with self.column_blocks(columns):
            at = em.named(index, f"base + {index}(threadIdx.x)", "at")
            self.valid = em.named("bool", f"{at} < {columns}", "valid")
            self.column = em.named(index, f"{self.valid} ? {at} : {columns} - 1", "column")
            counters = self.decoded(self.column, list(range(form.outer)))
            here = self.moved(pointers, counters)
            for number, stage in enumerate(form.nest.stages):
                self.stage(number, stage, here, counters)
        self.shared_bytes = self.columns_bytes

    @contextmanager
    def column_blocks(self, columns: str) -> Iterator[None]:
        """Columns of this block, the first of which is ``base``."""
        index = self.index
        loop = (f"for ({index} base = {index}(blockIdx.x) * {COLUMNS}; base < {columns}; "
                f"base += {index}(gridDim.x) * {COLUMNS})")
        with self.em.block(loop):
            yield

    def stage(self, number: int, stage: Stage, pointers: list[str], at: dict[int, str]) -> None:
        """One of the form's, for the column whose counters are ``at``."""
        if stage.inner:
            self.inner_stage(stage, pointers, at)
        else:
            place = ThreadPoint(at, pointers, valid=self.valid, is_along=False)
            self.run_stage(stage, place, only="threadIdx.y == 0")

    def inner_stage(
        self, stage: Stage, pointers: list[str], counters: dict[int, str]
    ) -> None:
        """A stage of the rows."""
        em, form = self.em, self.form
        accs = {r.number: declare(em, r) for r in stage.reductions}
        self.start_scans(stage)
        loops = range(form.outer, len(form.extents))
        with ExitStack() as stack:
            inner: dict[int, str] = {}
            linear = "0"
            for loop in loops:
                first = loop == loops[0]
                start, end, step = self.rows(loop) if first else ("0", self.extent(loop), "1")
                name = em.fresh("i")
                if loop == loops[-1] and accs:
                    em.line(f"#pragma unroll {rows_at_once(stage)}")
                stack.enter_context(em.block(
                    f"for ({self.index} {name} = {start}; {name} < {end}; {name} += {step})"))
                inner[loop] = name
                linear = name if first else em.named(
                    "i64", f"i64({linear}) * {self.extent(loop)} + {name}", "linear")
            place = ThreadPoint({**counters, **inner}, self.moved(pointers, inner), linear,
                                valid=self.valid, is_along=False)
            self.run_stage(stage, place, lambda r, value, at: accumulate(
                em, accs[r.number], value, at.linear, ""))
        self.join_groups([*accs.values()], self.is_read_by_rows(stage))
        self.finish([*accs.values()])

    def is_read_by_rows(self, stage: Stage) -> bool:
        """Whether later stages of the rows, which all groups do, may read its results."""
        stages = self.form.nest.stages
        return any(later.inner for later in stages[stages.index(stage) + 1:])

    def rows(self, loop: int) -> tuple[str, str, str]:
        """The first row of this thread, the end, and the step."""
        return "threadIdx.y", self.extent(loop), "blockDim.y"

    def finish(self, accs: list[CudaAccumulator]) -> None:
        """The results of a column, for later stages."""
        for acc in accs:
            self.reduced[acc.reduction.number] = acc.result(self.em)

    # -- joining groups

    def join_groups(self, accs: list[CudaAccumulator], for_all: bool) -> None:
        """The groups' results; where they are not ``for_all`` groups, for the first alone."""
        em = self.em
        if not accs or not may_share_rows(self.form):
            return
        with em.block("if (blockDim.y > 1)"):
            for some in _that_fit(accs):
                self._join_at_once(some, for_all)

    def _join_at_once(self, accs: list[CudaAccumulator], for_all: bool) -> None:
        em, names = self.em, self._declare_arrays(accs)
        em.line("__syncthreads();")
        for acc in accs:
            for name, dtype in acc.variables:
                em.line(f"shared_store(&{names[name]}[threadIdx.y * {COLUMNS} + threadIdx.x], "
                        f"{in_memory(CudaValue(name, dtype))});")
        em.line("__syncthreads();")
        with nullcontext() if for_all else em.block("if (threadIdx.y == 0)"):
            for acc in accs:
                self._join_others(acc, names)

    def _join_others(self, acc: CudaAccumulator, names: dict[str, str]) -> None:
        em = self.em
        for name, dtype in acc.variables:
            em.line(f"{name} = {_read(names[name], '0', dtype)};")
        with em.block("for (int g = 1; g < int(blockDim.y); ++g)"):
            others = [em.named(type_name(dtype), _read(names[name], "g", dtype), "other")
                      for name, dtype in acc.variables]
            join(em, acc, *others)

    def _declare_arrays(self, accs: list[CudaAccumulator]) -> dict[str, str]:
        """Shared memory for a value of each thread."""
        names: dict[str, str] = {}
        counts: dict[str, int] = {}
        for acc in accs:
            for name, dtype in acc.variables:
                kind = memory_type(dtype)
                counts[kind] = counts.get(kind, -1) + 1
                array = names[name] = f"groups_{kind}_{counts[kind]}"
                if array not in self.arrays:
                    self.arrays[array] = COLUMNS * MAX_GROUPS * dtype.itemsize
                    self.head.append(f"__shared__ {kind} {array}[{COLUMNS * MAX_GROUPS}];")
                    self.columns_bytes += self.arrays[array]
        return names

    # -- what a thread does alone

    def start_scans(self, stage: Stage) -> None:
        for e in scans_of(stage):
            self.start_carry(e)

    def scan(self, e: Expr, value: CudaValue, place: ThreadPoint) -> CudaValue:
        """In the rows' order, as NumPy does."""
        carry = self.carries[id(e)]
        result = joined(self, e, carry, str(value))
        self.em.line(f"{carry} = {result};")
        return result

    def put_scratch(self, number: int, value: CudaValue, place: ThreadPoint) -> None:
        at = self._scratch_at(number, value.dtype, place)
        self.em.line(f"store<{memory_type(value.dtype)}>({at}, {in_memory(value)});")

    def get_scratch(self, number: int, dtype: np.dtype, place: ThreadPoint) -> CudaValue:
        text = f"load<{memory_type(dtype)}>({self._scratch_at(number, dtype, place)})"
        return self.em.value(dtype, f"{text} != 0" if dtype == BOOL else text)

    def _declare_scratch(self) -> None:
        for number in range(len(self.form.nest.scratch)):
            self.param(("scratch", number), "pointer", f"scratch_at{number}", is_written=True)

    def _scratch_at(self, number: int, dtype: np.dtype, place: ThreadPoint) -> str:
        """Neighbouring threads write to neighbouring places."""
        thread = f"i64(blockIdx.x) * {COLUMNS} + threadIdx.x"
        row = f"i64({place.linear}) * gridDim.x * {COLUMNS}"
        return f"scratch_at{number} + ({row} + {thread}) * {dtype.itemsize}"

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            columns = math.prod(form.extents[: form.outer])
            limit = MAX_SCRATCH_BLOCKS if form.nest.scratch else 1 << 16
            blocks = blocks_for(columns, COLUMNS, limit)
            scratch = blocks * COLUMNS * most(1, inner_points(form)) if form.nest.scratch else 0
            return Layout(blocks, (COLUMNS, groups_of(form)), columns, scratch=scratch)

        return layout


def rows_at_once(stage: Stage) -> int:
    """Whose loads a thread has in flight."""
    is_sum = len(stage.reductions) == 1 and not (stage.stores or stage.scratch or any(
        is_indexed(r) or r.value.op != "load" for r in stage.reductions))
    return ROWS_OF_SUMS_AT_ONCE if is_sum else ROWS_AT_ONCE


def may_share_rows(form: LoopForm) -> bool:
    """Whether groups of threads may share a column's rows, whatever the sizes."""
    nest = form.nest
    return not nest.scratch and not nest.has_scans


def groups_of(form: LoopForm) -> Size:
    """Groups for these sizes."""
    rows = form.extents[form.outer] if len(form.extents) > form.outer else 1
    if not may_share_rows(form):
        return 1
    has_8, has_32 = least(rows // 8, 1), least(rows // (2 * MAX_GROUPS), 1)
    return either(has_32, MAX_GROUPS, either(has_8, 4, 1))


def _that_fit(accs: list[CudaAccumulator]) -> Iterator[list[CudaAccumulator]]:
    """The accumulators in as few parts as shared memory has room for; each part's arrays lie where
    those of the part before lay, if they are of one type."""
    whole = sum((_bytes_of(acc) for acc in accs), Counter[str]())
    room = ON_CHIP_BYTES if whole.total() <= ON_CHIP_BYTES else ON_CHIP_BYTES // len(whole)
    some, used = list[CudaAccumulator](), Counter[str]()
    for acc in accs:
        if some and max((used + _bytes_of(acc)).values()) > room:
            yield some
            some, used = [], Counter()
        some.append(acc)
        used += _bytes_of(acc)
    yield some


def _bytes_of(acc: CudaAccumulator) -> Counter[str]:
    """What a value of each thread takes, by type."""
    taken = Counter[str]()
    for _, dtype in acc.variables:
        taken[memory_type(dtype)] += COLUMNS * MAX_GROUPS * dtype.itemsize
    return taken


def _read(array: str, group: str, dtype: np.dtype) -> str:
    text = f"shared_load(&{array}[{group} * {COLUMNS} + threadIdx.x])"
    return f"{text} != 0" if dtype == BOOL else text
