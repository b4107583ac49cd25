"""The oracle as a back end: plans as they are, kernels through the interpreter of loop IR, branches
and loops through that of structured programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.ir import Node
from fusec.ir.sizes.bindings import Bindings

from .backend import Strides
from .kernels.complex_pairs import as_pairs
from .kernels.loop_ir import Kernel
from .kernels.reference import FailedCheckError, run_kernel, scalar_functions
from .machine_code.native_nest import CompileStats
from .plan.control_program import ControlCode
from .structured.interpreter import interpreted
from .whole_kernels import Run, WholeKernels


class ReferenceBackend(WholeKernels):
    """See the module docstring."""

    name = "reference"

    def supports(self, op: str, dtype: np.dtype) -> bool:
        return op in scalar_functions() or op in ("cast", "bitcast")

    def runs(self, kernel: Kernel) -> Run:
        def run(buffers: Sequence[np.ndarray], sizes: Bindings) -> bool:
            try:
                run_kernel(kernel.at_sizes(sizes), [as_pairs(array) for array in buffers])
            except (IndexError, FailedCheckError):
                return False
            return True

        return run

    def compile_control(
        self, node: Node, strides: Sequence[Strides], stats: CompileStats
    ) -> ControlCode:
        return interpreted(node, strides)


BACKEND = ReferenceBackend()
