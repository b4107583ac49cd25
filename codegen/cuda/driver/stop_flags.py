"""Words of the host's that kernels of a GPU read while they run: whether they are to end.

They are pinned memory, which the GPU reads over the bus whenever it looks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core import locks

from .driver import Flag, GpuDriver

_COUNT, _BYTES = 64, 64  # of a piece of pinned memory: words, and what lies between two


class PinnedFlag:
    """See `Flag`."""

    def __init__(self, flags: StopFlags, address: int, word: np.ndarray) -> None:
        self._flags, self.address, self._word = flags, address, word

    def raise_it(self) -> None:
        self._word[0] = 1

    def lower(self) -> None:
        self._word[0] = 0

    def give_back(self) -> None:
        self.lower()
        self._flags.free.append(self)


class Unseen:
    """A flag that cannot be raised, where the system has no pinned memory: who interrupts a kernel
    waits for its end."""

    def __init__(self, driver: Any) -> None:
        self._driver, self.address = driver, driver.allocate(_BYTES)
        driver.copy_in(self.address, np.zeros(_BYTES, np.uint8))

    def raise_it(self) -> None:
        pass

    lower = raise_it

    def give_back(self) -> None:
        self._driver.free(self.address)


class StopFlags:
    """Those of a GPU; ``free`` are nobody's."""

    def __init__(self, driver: GpuDriver) -> None:
        self._driver, self._lock = driver, locks.Lock()
        self._kept: list[Any] = []
        self.free: list[PinnedFlag] = []

    def take(self) -> Flag:
        with self._lock:
            if not self.free and not self._add():
                return Unseen(self._driver)
            return self.free.pop()

    def _add(self) -> bool:
        """More of them, where there is memory."""
        cuda = self._driver.cupy.cuda
        try:
            with self._driver.device:
                pointer = cuda.alloc_pinned_memory(_COUNT * _BYTES)
        except cuda.runtime.CUDARuntimeError:
            return False
        self._kept.append(pointer)
        words = np.frombuffer(pointer, np.uint32, _COUNT * _BYTES // 4)
        words[:] = 0
        step = _BYTES // 4
        self.free += [PinnedFlag(self, int(pointer.ptr) + n * _BYTES, words[n * step:])
                      for n in range(_COUNT)]
        return True
