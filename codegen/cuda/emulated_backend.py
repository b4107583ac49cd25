"""The CUDA back end on the emulated device: the same source, compiled for this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusec import config

from ..kernels.loop_ir import Kernel
from .backend import CudaBackend
from .driver.arrays import DriverArrays
from .emulation import toolchain
from .emulation.driver import EmulatedDriver
from .emulation.origins import DriverFor

DRIVER = EmulatedDriver(config.cuda_host_seed)
config.on_change("cuda_host_seed", DRIVER.reseed)


class CudaHostBackend(CudaBackend):
    """See the module docstring."""

    def __init__(self) -> None:
        super().__init__("cudahost", lambda: DRIVER)
        self.arrays = DriverArrays(DRIVER)

    def driver_for(self, kernel: Kernel) -> Any:
        return DriverFor(DRIVER, kernel)

    def status(self) -> Iterator[str]:
        yield f"/device:CUDAHOST:0, which runs a GPU's kernels on the CPU: {toolchain.status()}"


BACKEND = CudaHostBackend()
