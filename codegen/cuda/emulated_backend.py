"""The CUDA back end on the emulated device: the same source, compiled for this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusec import config

from ..machine_code.native_nest import CompileStats
from .backend import CudaBackend
from .compiled_nests import CudaForm, NestCall
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

    def compile(self, forms: Sequence[CudaForm], stats: CompileStats) -> list[NestCall]:
        calls = super().compile(forms, stats)
        for form, call in zip(forms, calls, strict=True):
            call.driver = DriverFor(DRIVER, form.kernel)
        return calls

    def status(self) -> Iterator[str]:
        yield f"/device:CUDAHOST:0, which runs a GPU's kernels on the CPU: {toolchain.status()}"


BACKEND = CudaHostBackend()
