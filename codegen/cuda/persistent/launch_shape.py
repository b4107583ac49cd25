"""How many blocks and threads a persistent kernel is launched with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import Size

from ..module import CudaKernel
from .nest_calls import LEAST_BLOCK
from .program_kernel import ProgramKernel

# Threads that the largest nest may have for one block to do all.
MOST_IN_ONE_BLOCK = 4096
# Of an H200, by hand: a barrier of one block and of all, bytes moved by one block and by all.  A
# step of 1,000 elements takes 0.29 us in one block and 1.15 in all, one of 10,000 2.0 and 1.27.
BLOCK_BARRIER_US, GRID_BARRIER_US, STAYING_GBS, BLOCK_GBS = 0.2, 1.15, 3800.0, 80.0


def iteration_us(barriers: int, moved: int, in_one: bool) -> float:
    """An iteration's time by these figures, in one block or in all."""
    barrier, rate = (BLOCK_BARRIER_US, BLOCK_GBS) if in_one else (GRID_BARRIER_US, STAYING_GBS)
    return barriers * barrier + moved / (1e3 * rate)


def is_for_one_block(threads: int, barriers: int, moved: int) -> bool:
    """Whether one block is sooner through with an iteration than all are."""
    return threads <= MOST_IN_ONE_BLOCK and (
        iteration_us(barriers, moved, True) <= iteration_us(barriers, moved, False))


class LaunchShape:
    """``at(sizes)``: blocks, threads of each, bytes of dynamic shared memory."""

    def __init__(self, made: ProgramKernel, driver: Any, loaded: Any, kernel: CudaKernel) -> None:
        self.made, self.driver, self.loaded, self.kernel = made, driver, loaded, kernel
        self._known: dict[tuple[int, ...], tuple[int, int, int]] = {}

    def size(self, size: Size, sizes: Mapping[str, int]) -> int:
        return int(resolve(size, sizes))

    def at(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        key = tuple(sizes[name] for name in sorted(sizes))
        if key not in self._known:
            self._known.clear()
            self._known[key] = self._made(sizes)
        return self._known[key]

    def _made(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        layouts = [(grid.layout(sizes), grid.function.has_barriers) for grid in self.made.grids]
        shared = max((grid.shared_bytes(sizes) for grid in self.made.grids), default=0)
        teams = [layout.threads[0] * layout.threads[1] for layout, waits in layouts if waits]
        work = max((layout.blocks * layout.threads[0] * layout.threads[1]
                    for layout, _ in layouts), default=1)
        threads = _power_of_two(max([*teams, LEAST_BLOCK]))
        moved = sum(grid.loops(sizes).moved_bytes for grid in self.made.grids
                    if grid.is_repeated and grid.limits is None)
        if is_for_one_block(work, self.made.barriers, moved):
            return 1, max(threads, min(self.made.most_threads, _power_of_two(work))), shared
        if not teams:
            threads = self.made.most_threads
        wanted = max(layout.blocks if waits else -(-layout.blocks * layout.threads[0] // threads)
                     for layout, waits in layouts)
        most = self.driver.resident_blocks(self.loaded, self.kernel, threads, shared)
        return max(1, min(wanted, most)), threads, shared


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
