"""The CUDA back end on the first GPU, through CuPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusec.codegen.backend import DeviceArrays
from fusec.core import gpus
from fusec.ir import Node
from fusec.ir.lazy_values import lazy

from ..kernels.loop_ir import Kernel
from .backend import CudaBackend
from .driver import nvrtc
from .driver.cupy_arrays import CupyArrays
from .driver.cupy_driver import CupyDriver
from .driver.gpu_faults import GpuDriverFor
from .gpu_library import GpuLibraryCall, call_at
from .library_functions import is_called_on_gpu
from .programs.program_text import LibraryAt


class GpuBackend(CudaBackend):
    """Kernels, arrays and CuPy's libraries on a GPU; everything else stays on the CPU."""

    def __init__(self) -> None:
        super().__init__("gpu", CupyDriver)

    @lazy
    def arrays(self) -> DeviceArrays:
        """Arrays in the GPU's memory."""
        return self._arrays

    @lazy
    def _arrays(self) -> CupyArrays:
        driver: Any = self.driver
        return CupyArrays(driver)

    def driver_for(self, kernel: Kernel) -> Any:
        return GpuDriverFor(self._arrays.driver, kernel)

    def has_kernel(self, node: Node) -> bool:
        return is_called_on_gpu(node) or super().has_kernel(node)

    def status(self) -> Iterator[str]:
        yield gpus.missing() or (
            f"{gpus.count()} found by CuPy; programs use the first, /device:GPU:0")
        yield f"NVRTC, which compiles kernels: {nvrtc.status()}"

    def library_at(self, node: Node) -> LibraryAt:
        """See `CudaBackend.library_at`."""
        return call_at(node, self._arrays) if is_called_on_gpu(node) else super().library_at(node)

    def library_call(self, node: Node) -> GpuLibraryCall | None:
        return GpuLibraryCall(node, self._arrays) if is_called_on_gpu(node) else None


BACKEND = GpuBackend()
