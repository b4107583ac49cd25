"""The emulated device's memory: blocks that only its kernels and copies may use."""

from __future__ import annotations

import bisect

import numpy as np

from fusec.core import locks
from fusec.core.records import dataclass
from fusec.errors import user_error

ALIGNMENT = 256
_GARBAGE = 0xA5  # what fresh memory holds: a GPU's is not zero either


@dataclass(frozen=True)
class ArenaBlock:
    """Allocated memory: ``start`` is its address, ``memory`` keeps it."""

    start: int
    nbytes: int
    memory: np.ndarray

    @property
    def end(self) -> int:
        return self.start + self.nbytes


class Arena:
    """Blocks by address, at most ``limit`` bytes of them."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._lock = locks.Lock(quiet=True)  # a fork in the middle would leave half a change
        self._blocks: dict[int, ArenaBlock] = {}
        self._starts: list[int] = []

    def allocate(self, nbytes: int) -> int:
        """The address of fresh memory; raises ``MemoryError`` where there is no room."""
        with self._lock:
            if nbytes > self.limit - self.used:
                raise self._full(nbytes)
            try:
                memory = np.full(max(nbytes, 1) + ALIGNMENT, _GARBAGE, np.uint8)
            except MemoryError:
                raise self._full(nbytes, "the host has no more") from None
            start = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT
            self._blocks[start] = ArenaBlock(start, nbytes, memory)
            bisect.insort(self._starts, start)
            self.used += nbytes
        return start

    def holds(self, block: ArenaBlock) -> bool:
        """Whether it has not been given back."""
        return self._blocks.get(block.start) is block

    def free(self, block: ArenaBlock) -> None:
        """Give a block back."""
        with self._lock:
            if self.holds(block):
                del self._blocks[block.start]
                self._starts.remove(block.start)
                self.used -= block.nbytes

    def block_at(self, address: int) -> ArenaBlock | None:
        """The block that the address lies in, or is the end of; None: it is not the device's."""
        with self._lock:
            at = bisect.bisect_right(self._starts, address) - 1
            block = self._blocks[self._starts[at]] if at >= 0 else None
        return block if block is not None and address <= block.end else None

    def _full(self, nbytes: int, free: str = "") -> Exception:
        largest = sorted((b.nbytes for b in self._blocks.values()), reverse=True)[:3]
        return user_error(
            MemoryError, "the emulated device is out of memory",
            cure="work on smaller arrays, or in parts",
            values=[("asked for", f"{nbytes} bytes"),
                    ("free", free or f"{self.limit - self.used} bytes"),
                    ("largest blocks", ", ".join(map(str, largest)) or "none")])
