"""Calls of a kernel that runs lanes: a thread for each, and one more launch for a lane that failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.program import StructuredProgram
from fusec.core.records import replace
from fusec.errors import InternalError

from ...kernels.loop_ir import Kernel
from ...plan.control_program import EarlyExit
from ..module import CudaKernel
from ..persistent.persistent_call import KernelRun, PersistentProgram
from ..persistent.program_kernel import EXIT, KernelArgument
from .lane_kernel import BLOCK, FAILED, LaneKernel

MOST_BLOCKS = (1 << 31) - 1  # of a grid
# Where each thread has arrays in global memory: as many threads as an H200 holds at once.
BLOCKS_WITH_ARRAYS = 132 * 2048 // BLOCK


class LaneProgram(PersistentProgram):
    """``program(operands, results, sizes)``: see `ControlCode`."""

    def __init__(
        self, program: StructuredProgram, made: LaneKernel, kernel: CudaKernel, loaded: Any,
        driver: Any, whole: Kernel,
    ) -> None:
        super().__init__(program, made, kernel, loaded, driver, whole)
        self.begin, self.end = made.begin, made.end
        self.most_blocks = BLOCKS_WITH_ARRAYS if made.is_bounded else MOST_BLOCKS

    def new_run(self, *call: Any) -> LaneLaunch:
        return LaneLaunch(self, *call)

    def layout_of(self, operands: Sequence[Any]) -> tuple[int, int, int]:
        return self.blocks(int(operands[self.begin]), int(operands[self.end])), BLOCK, 0

    def blocks(self, begin: int, end: int) -> int:
        return max(1, min(-(-(end - begin) // BLOCK), self.most_blocks))

    def __call__(
        self, operands: Sequence[Any], results: list[Any], sizes: Mapping[str, int]
    ) -> EarlyExit | None:
        left = super().__call__(operands, results, sizes)
        results[0] = np.asarray(operands[self.end], np.int64)  # the number of the lane afterwards
        return left


class LaneLaunch(KernelRun):
    """A call while it runs, of the lanes from ``begin`` to before ``end``."""

    program: LaneProgram

    def __init__(self, program: LaneProgram, *call: Any) -> None:
        super().__init__(program, *call)
        self.begin, self.end = (int(self.operands[k]) for k in (program.begin, program.end))

    def launch(self) -> None:
        program = self.program
        blocks = program.blocks(self.begin, self.end)
        values = [self._value(argument) for argument in self.made.arguments.values()]
        self.driver.launch(program.loaded, program.kernel, (blocks, 1, 1), (BLOCK, 1, 1), 0, values)

    def _value(self, argument: KernelArgument) -> int:
        source = argument.source
        if source[0] == "bound":
            return self.begin if source[1] == self.program.begin else self.end
        if source[0] == "of threads":
            assert argument.of is not None
            threads = self.program.blocks(self.begin, self.end) * BLOCK
            return self.memory.fresh(argument.of(self.sizes) * threads)
        return super()._value(argument)

    def left_by(self, state: np.ndarray) -> EarlyExit | None:
        """Of several lanes that failed the first; it runs again by itself, to say how: a lane reads
        nothing that lanes write."""
        taken = int(state[EXIT])
        if taken >= 0:
            left = super().left_by(state)
            return None if left is None else replace(left, lane=self.begin)
        if taken > FAILED:
            raise InternalError("a kernel of lanes ended, and nobody had asked it to")
        lane = FAILED - taken
        self.begin, self.end, self.state = lane, lane + 1, 0
        left = self.outcome()
        if left is None:
            raise InternalError(f"lane {lane} failed among others, and does not by itself")
        return left
