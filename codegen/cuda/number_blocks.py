"""Numbers between a call and its kernels, on CuPy's current stream: given and computed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .cupy_driver import CupyDriver

MOST = 16  # blocks of given numbers that are kept
_TO_DEVICE, _TO_HOST = 1, 2  # cudaMemcpyKind


class NumberBlocks:
    """The blocks of one plan.

    Numbers that calls give are kept on the GPU, by their bytes: those of the next call are often
    the same, and nothing is copied then.  Memory goes back to where the stream's other memory does,
    so blocks are of one stream.
    """

    def __init__(self, driver: CupyDriver) -> None:
        self.driver = driver
        self._given: dict[tuple[int, bytes], Any] = {}

    def given(self, numbers: bytes) -> Any:
        """CuPy's pointer to these on the GPU, to be held until kernels have been asked for."""
        stream = self.driver.current_stream().ptr
        key = stream, numbers
        block = self._given.get(key)
        if block is None:
            block = self.driver.cupy.cuda.alloc(len(numbers))
            words = np.frombuffer(numbers, np.uint8)
            # From memory that is not pinned: it is read before this returns.
            self.driver.cupy.cuda.runtime.memcpyAsync(
                block.ptr, words.ctypes.data, words.nbytes, _TO_DEVICE, stream)
            if len(self._given) >= MOST:
                for oldest in [*self._given][:1]:
                    self._given.pop(oldest, None)  # another thread may have
            self._given[key] = block
        return block

    def clear(self, address: int, nbytes: int) -> None:
        """Set bytes to 0."""
        self.driver.cupy.cuda.runtime.memsetAsync(
            address, 0, nbytes, self.driver.current_stream().ptr)

    def computed(self, address: int, words: int) -> np.ndarray:
        """Words as bytes on the host, when all that was asked for has been done."""
        stream, found = self.driver.current_stream(), np.empty(8 * words, np.uint8)
        with self.driver.faults.of_waiting():
            self.driver.cupy.cuda.runtime.memcpyAsync(
                found.ctypes.data, address, found.nbytes, _TO_HOST, stream.ptr)
            stream.synchronize()
        return found
