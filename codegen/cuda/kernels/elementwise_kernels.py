"""Elementwise kernels: a grid-stride loop over packs of neighbours along the vector axis."""

from __future__ import annotations

import math

from ...kernels.specialise import LoopForm
from .launch_plan import Geometry, Layout, blocks_for
from .nest_kernel import KernelWriter


def packs_of(form: LoopForm, lanes: int, loops: range | None = None) -> int:
    """Packs of these loops (all by default), the axis among them."""
    before = [n for loop, n in enumerate(form.extents)
              if loop != form.axis and (loops is None or loop in loops)]
    return math.prod(before) * -(-form.extents[form.axis] // lanes)


def grid_start(index: str) -> tuple[str, str]:
    """A thread's number in the grid, and the number of threads."""
    return (f"{index}(blockIdx.x) * {index}(blockDim.x) + {index}(threadIdx.x)",
            f"{index}(gridDim.x) * {index}(blockDim.x)")


class MapKernel(KernelWriter):
    """See the module docstring."""

    def body(self) -> None:
        form = self.form
        (stage,) = form.nest.stages
        start, step = grid_start(self.index)
        work = self.param(("work",), self.index_kind, "work")
        loops = [loop for loop in range(len(form.extents)) if loop != form.axis] + [form.axis]
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        with self.packs(loops, start, step, work, pointers, {}) as place:
            self.run_stage(stage, place)

    def geometry(self) -> Geometry:
        lanes, threads = self.lanes, self.max_threads

        def layout(form: LoopForm) -> Layout:
            work = packs_of(form, lanes)
            return Layout(blocks_for(work, threads), (threads, 1), work)

        return layout
