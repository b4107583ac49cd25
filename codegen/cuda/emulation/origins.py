"""Launches that know which of a program's kernels they are a part of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fusec.codegen.cuda.module import CudaKernel
from fusec.core import timeline
from fusec.core.records import replace
from fusec.errors import FusecError

from ...kernels.loop_ir import Kernel
from ..driver.driver import Dim3
from .driver import EmulatedDriver
from .loading import EmulatedModule

DEVICE = "/job:localhost/task:0/device:CUDAHOST:0"


class DriverFor:
    """The emulated driver for one kernel of a program: faults of its launches are reported with
    the program's line, and when they really run is on the timeline."""

    def __init__(self, driver: EmulatedDriver, kernel: Kernel) -> None:
        self._driver, self._kernel = driver, kernel
        self._loc = kernel.locs[0] if kernel.locs else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def launch(
        self, loaded: EmulatedModule, kernel: CudaKernel, grid: Dim3, block: Dim3,
        shared_bytes: int, args: Sequence[int],
    ) -> None:
        """Ask for a launch: see `EmulatedDriver.launch`."""
        self._driver.launch(loaded, kernel, grid, block, shared_bytes, args, around=self._around)

    def bound(self, *launch: Any) -> Callable[[], None]:
        """See `Driver.bound`."""
        return partial(self.launch, *launch)

    def _around(self, run: Callable[[], None]) -> None:
        start = timeline.now() if timeline.on else 0
        try:
            run()
        except FusecError as error:
            note = f"it is a part of {self._kernel.name}, on the emulated CUDA device"
            error.diagnostic = replace(error.diagnostic, notes=(*error.diagnostic.notes, note))
            error.located(self._loc)
            raise
        if start:
            timeline.span(DEVICE, "kernel", f"{self._kernel.name} runs", start, timeline.now(),
                          self._loc)
