"""Back ends that run kernels as they are: a Python function of arrays, and no machine code."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from fusec.core.records import dataclass
from fusec.ir.sizes.bindings import Bindings

from .backend import Backend, Strides
from .kernels.loop_ir import Kernel
from .machine_code.native_nest import CompileStats

Run = Callable[[Sequence[np.ndarray], Bindings], bool]


@dataclass(frozen=True)
class WholeKernel:
    """A kernel as the only form of itself."""

    kernel: Kernel
    mode: str = "whole"
    is_static: bool = False  # nothing of it is made for its sizes


class WholeKernels(Backend):
    """A back end of `runs` alone."""

    @abstractmethod
    def runs(self, kernel: Kernel) -> Run:
        """The kernel as a function of its buffers and the sizes' values: see `Backend`."""

    def specialise(self, kernel: Kernel, strides: Sequence[Strides]) -> list[WholeKernel]:
        return [WholeKernel(kernel)]

    def compile(self, forms: Sequence[WholeKernel], stats: CompileStats) -> list[Run]:
        return [self.runs(form.kernel) for form in forms]

    def clear(self) -> None:
        """Nothing is kept."""
