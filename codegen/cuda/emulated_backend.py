"""The CUDA back end on the emulated device: the same source, compiled for this machine's CPU."""

from __future__ import annotations

from fusec import config
from fusec.codegen.kernel_nodes import is_of_kernels
from fusec.ir import Node

from .arrays import DriverArrays
from .backend import CudaBackend
from .emulation.driver import EmulatedDriver

DRIVER = EmulatedDriver(config.cuda_host_seed)
config.on_change("cuda_host_seed", DRIVER.reseed)


class CudaHostBackend(CudaBackend):
    """See the module docstring."""

    def __init__(self) -> None:
        super().__init__("cudahost", lambda: DRIVER)
        self.arrays = DriverArrays(DRIVER)

    def has_kernel(self, node: Node) -> bool:
        return is_of_kernels(node)


BACKEND = CudaHostBackend()
