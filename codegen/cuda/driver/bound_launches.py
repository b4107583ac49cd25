"""Launches on a GPU with their arguments as CuPy takes them, alone and as CUDA graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.core import timeline
from fusec.core.records import dataclass

from ...kernels.loop_ir import Kernel
from ..launches import Filled
from .driver import GpuDriver


@dataclass(frozen=True, eq=False)
class BoundLaunch:
    """``launch()``; ``kernel`` is the program's, where faults are to be told with its line.

    While a profile is taken it is waited for, so that the timeline shows how long it runs.
    """

    driver: GpuDriver
    filled: Filled
    kernel: Kernel | None = None

    def __call__(self) -> None:
        if self.kernel is None:
            self._ask()
            return
        start = timeline.now() if timeline.on else 0
        with self.driver.faults.of_launch(self.kernel):
            self._ask()
        if start:
            self._note(self.kernel, start)

    def _ask(self) -> None:
        driver, (function, grid, block, words, shared) = self.driver, self.filled
        driver.launched += 1
        with driver.device:
            function(grid, block, words, shared_mem=shared, stream=driver.stream)

    def _note(self, kernel: Kernel, start: int) -> None:
        self.driver.synchronize()
        device = f"/job:localhost/task:0/device:GPU:{self.driver.number}"
        timeline.span(device, "kernel", f"{kernel.name} runs", start, timeline.now(),
                      kernel.locs[0] if kernel.locs else None)


class JoinedLaunch:
    """``launch()`` of a CUDA graph; one by one while the program makes a graph of its own."""

    def __init__(self, driver: GpuDriver, launches: Sequence[BoundLaunch], graph: Any) -> None:
        self.driver, self.launches, self.graph = driver, launches, graph
        self.kernels = [launch.kernel for launch in launches if launch.kernel is not None]

    def __call__(self) -> None:
        driver, stream = self.driver, self.driver.stream
        if self.graph is None or driver.is_capturing(stream):
            for launch in self.launches:
                launch()
            return
        driver.note(self.kernels, len(self.launches))
        try:
            with driver.device:
                self.graph.launch(stream)
        except driver.faults.kinds as error:
            if not driver.faults.is_for_memory(error):
                raise driver.faults.of(error, self.kernels) from error
            self.graph = None
            driver.note_no_graph(error)
            self()
