"""The oracle as a back end: plans as they are, every kernel through the interpreter of loop IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusec.ir.dims import Bindings

from .backend import Backend, Strides
from .compiled import CompileStats, WholeKernel
from .complex_pairs import as_pairs
from .loop_ir import Kernel
from .reference import FailedCheckError, run_kernel, scalar_functions


class ReferenceBackend(Backend):
    """See the module docstring."""

    name = "reference"

    def supports(self, op: str, dtype: np.dtype) -> bool:
        return op in scalar_functions() or op in ("cast", "bitcast")

    def specialise(self, kernel: Kernel, strides: Sequence[Strides]) -> list[WholeKernel]:
        return [WholeKernel(kernel)]

    def compile(
        self, forms: Sequence[WholeKernel], stats: CompileStats
    ) -> list[Callable[[Sequence[np.ndarray], Bindings], bool]]:
        return [_runs(form.kernel) for form in forms]

    def clear(self) -> None:
        """Nothing is kept."""


def _runs(kernel: Kernel) -> Callable[[Sequence[np.ndarray], Bindings], bool]:
    def run(buffers: Sequence[np.ndarray], sizes: Bindings) -> bool:
        try:
            run_kernel(kernel.at_sizes(sizes), [as_pairs(array) for array in buffers])
        except (IndexError, FailedCheckError):
            return False
        return True

    return run


BACKEND = ReferenceBackend()
