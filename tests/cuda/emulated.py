"""Hand-written CUDA kernels on the emulated device, for tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.cuda.emulation.driver import EmulatedDriver
from fusec.codegen.cuda.module import CudaKernel, CudaModule, CudaParam

_KERNEL = re.compile(r'extern "C" __global__ void(?: __launch_bounds__\((\d+)\))? (\w+)\(([^)]*)\)')


def module(source: str) -> CudaModule:
    """The source with its kernels' parameters."""
    kernels = []
    for bound, name, params in _KERNEL.findall(source):
        made = tuple(map(_param, filter(None, (p.strip() for p in params.split(",")))))
        kernels.append(CudaKernel(name, made, int(bound or 1024)))
    return CudaModule(source, tuple(kernels))


def _param(text: str) -> CudaParam:
    name = text.split()[-1].lstrip("*")
    if "*" in text:
        return CudaParam(name, "pointer", "const" not in text)
    return CudaParam(name, "int64" if "long long" in text else "int32")


class Run:
    """A module on a device of its own; arrays are copied there and back for each launch."""

    def __init__(self, source: str, seed: int = 0) -> None:
        self.driver = EmulatedDriver(seed)
        self.module = module(source)
        self.loaded = self.driver.compile(self.module)

    def __call__(
        self, kernel: str, grid: int | tuple[int, ...], block: int | tuple[int, ...], *args: Any,
        shared: int = 0,
    ) -> list[np.ndarray]:
        """Every array argument as the kernel leaves it."""
        addresses = [self.put(a) if isinstance(a, np.ndarray) else a for a in args]
        self.launch(kernel, grid, block, addresses, shared)
        outs = [a.copy() for a in args if isinstance(a, np.ndarray)]
        places = [p for p, a in zip(addresses, args, strict=True) if isinstance(a, np.ndarray)]
        for out, place in zip(outs, places, strict=True):
            self.driver.copy_out(out, place)
            self.driver.free(place)
        return outs

    def put(self, array: np.ndarray) -> int:
        address = self.driver.allocate(array.nbytes)
        self.driver.copy_in(address, array)
        return address

    def launch(
        self, kernel: str, grid: int | tuple[int, ...], block: int | tuple[int, ...],
        args: Sequence[int], shared: int = 0, stream: int = 0,
    ) -> None:
        self.driver.launch(self.loaded, self.module.kernel(kernel), _three(grid), _three(block),
                           shared, args, stream)


def _three(size: int | tuple[int, ...]) -> Any:
    given = (size,) if isinstance(size, int) else size
    return (*given, *[1] * (3 - len(given)))
