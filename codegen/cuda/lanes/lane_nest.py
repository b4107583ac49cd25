"""A nest of a lane's arrays as loops of one thread: sizes and constants are part of the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np

from fusec.core.records import dataclass
from fusec.ir.sizes.dims import Size, is_static

from ...kernels.loop_ir import Stage
from ...kernels.specialise import LoopForm
from ..kernels.launch_plan import Geometry, Slot
from ..kernels.nest_kernel import ThreadPoint
from ..kernels.reductions.accumulators import CudaAccumulator
from ..kernels.reductions.columns import ColumnKernel
from ..scalars.emitter import CudaEmitter, literal, memory_type


@dataclass(frozen=True)
class NestBuffer:
    """The address of a buffer, and what its strides are multiplied by ("": nothing)."""

    at: str
    scale: str = ""


class LaneNest(ColumnKernel):
    """Printed where the emitter is; the sums of a row are in the row's order.

    ``size``: the text of a size.
    """

    def __init__(
        self, form: LoopForm, em: CudaEmitter, buffers: Sequence[NestBuffer],
        size: Callable[[Size], str],
    ) -> None:
        super().__init__(form, "", "i64")
        self.em, self.lanes, self.buffers, self.size = em, 1, buffers, size
        self.valid = ""

    def print(self) -> bool:
        """The loops; whether they note in ``failed`` that a check has failed."""
        form, em = self.form, self.em
        with em.block(""):
            for number, dtype in enumerate(form.nest.scratch):
                em.line(f"{memory_type(dtype)} row{number}[{max(self._inner_points(), 1)}];")
            pointers = [self._placed(number) for number in range(len(form.operands))]
            loops = range(len(form.extents) if form.mode == "map" else form.outer)
            with ExitStack() as stack:
                counters = {}
                for loop in loops:
                    name = counters[loop] = em.fresh("i")
                    stack.enter_context(em.block(
                        f"for (i64 {name} = 0; {name} < {self.extent(loop)}; ++{name})"))
                here = self.moved(pointers, counters)
                for number, stage in enumerate(form.nest.stages):
                    if form.mode == "map":
                        self.run_stage(stage, ThreadPoint(counters, here, is_along=False))
                    else:
                        self.stage(number, stage, here, counters)
        return form.nest.has_checks

    def stage(self, number: int, stage: Stage, pointers: list[str], at: dict[int, str]) -> None:
        if stage.inner:
            self.inner_stage(stage, pointers, at)
        else:
            self.run_stage(stage, ThreadPoint(at, pointers, is_along=False))

    def _inner_points(self) -> int:
        inner = self.form.extents[self.form.outer:]
        return int(np.prod([int(n) for n in inner], dtype=np.int64))

    def _placed(self, number: int) -> str:
        operand = self.form.operands[number]
        buffer, name = self.buffers[operand.buffer], self.em.fresh("p")
        kind = "char *" if number in self.stored else "const char *"
        self.em.line(f"{kind}const {name} = {buffer.at}{self._moved_by(number, operand.offset)};")
        return name

    def _moved_by(self, number: int, nbytes: Size) -> str:
        if is_static((nbytes,)) and nbytes == 0:
            return ""
        return f" + {self._scaled(number, nbytes)}"

    def _scaled(self, number: int, nbytes: Size) -> str:
        return f"{self.size(nbytes)}{self.buffers[self.form.operands[number].buffer].scale}"

    # -- what other kernels have as parameters

    def param(self, slot: Slot, kind: str, name: str, is_written: bool = False) -> str:
        assert slot[0] == "gathered", slot
        number, position = int(slot[1]), int(slot[2])
        return self._scaled(number, self.form.operands[number].gathered[position])

    def extent(self, loop: int) -> str:
        return self.size(self.form.extents[loop])

    def stride(self, number: int, loop: int) -> str:
        return self._scaled(number, self.form.operands[number].strides[loop])

    def constant(self, number: int, dtype: np.dtype) -> str:
        return literal(dtype, self.form.params[number])

    # -- what groups of threads have

    def rows(self, loop: int) -> tuple[str, str, str]:
        return "0", self.extent(loop), "1"

    def join_groups(self, accs: list[CudaAccumulator], for_all: bool) -> None:
        pass

    def _scratch_at(self, number: int, dtype: np.dtype, place: ThreadPoint) -> str:
        return f"reinterpret_cast<char *>(&row{number}[{place.linear}])"

    def geometry(self) -> Geometry:
        raise AssertionError("internal error: a part of a kernel is not launched")
