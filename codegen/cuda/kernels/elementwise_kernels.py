"""Elementwise kernels: each thread does one pack of neighbours along the vector axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fusec.core.records import replace
from fusec.ir.sizes.dims import Size

from ...kernels.loop_ir import Stage
from ...kernels.specialise import LoopForm
from ..module import WARP
from ..scalars.emitter import CudaEmitter
from .launch_plan import Geometry, Layout, blocks_for, pieces
from .nest_kernel import KernelWriter, ThreadPoint, pack_lanes

MOST_BLOCKS = (1 << 31) - 1  # of a grid


def packs_of(form: LoopForm, lanes: int, loops: range | None = None) -> Size:
    """Packs of these loops (all by default), the axis among them."""
    before = [n for loop, n in enumerate(form.extents)
              if loop != form.axis and (loops is None or loop in loops)]
    return math.prod(before) * pieces(form.extents[form.axis], lanes)


def grid_start(index: str) -> tuple[str, str]:
    """A thread's number in the grid, and the number of threads."""
    return (f"{index}(blockIdx.x) * {index}(blockDim.x) + {index}(threadIdx.x)",
            f"{index}(gridDim.x) * {index}(blockDim.x)")


class MapKernel(KernelWriter):
    """See the module docstring."""

    least_blocks = 4  # half of the threads that a multiprocessor can have

    def body(self) -> None:
        form, em = self.form, self.em
        (stage,) = form.nest.stages
        start, _ = grid_start(self.index)
        work = self.param(("work",), self.index_kind, "work")
        loops = [loop for loop in range(len(form.extents)) if loop != form.axis] + [form.axis]
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        number = em.named(self.index, start, "id")
        with em.block(f"if ({number} < {work})"):
            if are_lanes_apart(form):
                self._run_apart(stage, number, loops, pointers)
                return
            place = self.pack_at(number, loops, pointers, {})
            if place.lanes == 1:
                self.run_stage(stage, place)
            else:
                self._run_pack(stage, place)

    def _run_apart(
        self, stage: Stage, number: str, loops: Sequence[int], pointers: list[str]
    ) -> None:
        """Elements a warp apart, so that what a warp asks for at once is one run, at any address.
        """
        em, index, n, axis = self.em, self.index, self.extent(self.form.axis), self.form.axis
        size, before = self.lanes * WARP, [loop for loop in loops if loop != axis]
        run = em.named(index, f"{number} / {WARP}", "run")
        each = em.named(index, f"({n} + {size - 1}) / {size}", "runs")
        rows = self.quotient(run, each, ("divide_packs", size)) if before else "0"
        first = em.named(index, f"({run} - {rows} * {each}) * {size} + {number} % {WARP}", "first")
        outer = self.decoded(rows, before) if before else {}
        place = ThreadPoint({**outer, axis: first}, self.moved(pointers, outer), lanes=self.lanes,
                            whole="apart")
        with em.block(f"if ({first} + {size - WARP} < {n})"):
            self.run_stage(stage, place)
        em.line("else")
        em.line("#pragma unroll 1")
        with em.block(f"for ({index} i = {first}; i < {n}; i += {WARP})"):
            self.run_stage(stage, replace(
                place, counters={**outer, axis: "i"}, lanes=1, whole="", memo={}))

    def _run_pack(self, stage: Stage, place: ThreadPoint) -> None:
        """All elements at once, or one by one at the end of a row, and where addresses are not as
        the form has them."""
        em, axis = self.em, self.form.axis
        aligned = is_aligned(self.form)
        conditions = [f"{place.count} == {place.lanes}", *(self._aligned(place) if aligned else ())]
        with em.block(f"if ({' && '.join(conditions)})"):
            self.run_stage(stage, replace(place, whole="aligned" if aligned else "any", memo={}))
        em.line("else")
        with one_by_one(em, place, axis) as one:
            self.run_stage(stage, one)

    def _aligned(self, place: ThreadPoint) -> Iterator[str]:
        """Conditions that packs lie where one access reads or writes them."""
        return aligned(self.form, range(len(self.form.operands)), place.lanes, {
            n: [place.pointers[n]] for n in range(len(self.form.operands))})

    def geometry(self) -> Geometry:
        lanes, threads = self.lanes, self.max_threads
        apart = are_lanes_apart(self.form)  # as the text has it, whatever the sizes of a call are

        def layout(form: LoopForm) -> Layout:
            work = packs_of(form, lanes * WARP) * WARP if apart else packs_of(form, lanes)
            return Layout(blocks_for(work, threads, MOST_BLOCKS), (threads, 1), work)

        return layout


def are_lanes_apart(form: LoopForm) -> bool:
    """Whether a thread's elements are a warp apart: where neighbours do not lie at aligned
    addresses, and runs of so many do not leave many threads without an element."""
    if form.mode != "map" or not form.is_static or form.nest.sequential:
        return False
    lanes, n = pack_lanes(form), form.extents[form.axis]
    size = lanes * WARP
    return lanes > 1 and not is_aligned(form) and 8 * (-(-n // size) * size - n) <= n


@contextmanager
def one_by_one(em: CudaEmitter, place: ThreadPoint, axis: int) -> Iterator[ThreadPoint]:
    """Each element of a pack."""
    em.line("#pragma unroll 1")
    with em.block(f"for (int j = 0; j < {place.count}; ++j)"):
        counters = {**place.counters, axis: f"({place.counters[axis]} + j)"}
        yield replace(place, counters=counters, linear=f"({place.linear} + j)", lanes=1, count="1",
                      memo={})


def aligned(
    form: LoopForm, numbers: Iterable[int], lanes: int, words: Mapping[int, Sequence[str]]
) -> Iterator[str]:
    """Conditions that packs of neighbours of these operands lie where one access reads or writes
    them: that ``words``, addresses and strides, are multiples of packs."""
    by_bytes: dict[int, list[str]] = {}
    for number in numbers:
        operand = form.operands[number]
        if form.stride_class(operand) == "unit":
            by_bytes.setdefault(operand.dtype.itemsize * lanes, []).extend(
                f"u64({word})" for word in words[number])
    for nbytes, texts in by_bytes.items():
        yield f"(({' | '.join(texts)}) & {nbytes - 1}) == 0"


def is_aligned(form: LoopForm) -> bool:
    """Whether packs of neighbours lie at multiples of their sizes, as far as offsets and strides
    say; memory that is given may lie otherwise."""
    lanes = pack_lanes(form)
    for operand in form.operands:
        if form.stride_class(operand) == "unit":
            steps = (operand.offset, *(s for loop, s in enumerate(operand.strides)
                                       if loop != form.axis))
            if any(isinstance(s, int) and s % (lanes * operand.dtype.itemsize) for s in steps):
                return False
    return True
