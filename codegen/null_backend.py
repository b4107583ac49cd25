"""A back end that compiles nothing: what it costs to trace, optimise, plan and call a program.

Kernels leave zeros, in arguments that they update too; library calls run on those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusec.ir.dims import Bindings

from .backend import Backend, Strides
from .compiled import CompileStats, WholeKernel
from .loop_ir import Kernel


class NullBackend(Backend):
    """See the module docstring."""

    name = "null"

    def supports(self, op: str, dtype: np.dtype) -> bool:
        return True

    def specialise(self, kernel: Kernel, strides: Sequence[Strides]) -> list[WholeKernel]:
        return [WholeKernel(kernel)]

    def compile(
        self, forms: Sequence[WholeKernel], stats: CompileStats
    ) -> list[Callable[[Sequence[np.ndarray], Bindings], bool]]:
        return [_zeros(form.kernel) for form in forms]

    def clear(self) -> None:
        """Nothing is kept."""


def _zeros(kernel: Kernel) -> Callable[[Sequence[np.ndarray], Bindings], bool]:
    outs = [number for number, buffer in enumerate(kernel.buffers) if buffer.role == "out"]

    def run(buffers: Sequence[np.ndarray], sizes: Bindings) -> bool:
        for number in outs:
            buffers[number][...] = 0
        return True

    return run


BACKEND = NullBackend()
