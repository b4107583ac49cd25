"""The CUDA back end on the first GPU, through CuPy."""

from __future__ import annotations

from fusec.codegen.backend import DeviceArrays
from fusec.ir.lazy_values import lazy

from .backend import CudaBackend
from .cupy_arrays import CupyArrays
from .cupy_driver import CupyDriver


class GpuBackend(CudaBackend):
    """Kernels and arrays on a GPU; what is no kernel stays on the CPU."""

    def __init__(self) -> None:
        super().__init__("cuda", CupyDriver)

    @lazy
    def arrays(self) -> DeviceArrays:
        """Arrays in the GPU's memory."""
        return CupyArrays(self.driver)


BACKEND = GpuBackend()
