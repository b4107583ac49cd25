"""Blocks of numbers between a call and its kernels, on CuPy's current stream: operands and
results, and NumPy's arrays from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .cupy_driver import CupyDriver

MOST = 16  # blocks of given numbers that are kept
# Bytes of an array that are compared with those that the GPU has: that takes some us, a copy more.
# More bytes are copied each time, since comparing takes as long as the host's part of a copy.
MOST_COMPARED = 1 << 16
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


class ArrayFromOutside:
    """``array_there(array)``: CuPy's pointer to a copy of the elements that it has now, to be held
    until kernels have been asked for.

    Whoever has NumPy's array may change it at any time, so nothing but its bytes says that the last
    copy is still good.  Copies are of one stream, as blocks of numbers are.
    """

    def __init__(
        self, driver: CupyDriver, bring: Callable[[np.ndarray], Any], is_packed: bool
    ) -> None:
        """``bring`` copies one to the GPU, as CuPy's array; ``is_packed``: it has no gaps."""
        self.driver, self._bring, self._is_packed = driver, bring, is_packed
        self._last: dict[int, tuple[bytes, Any]] = {}

    def __call__(self, array: np.ndarray) -> Any:
        if array.nbytes > MOST_COMPARED or not self._is_packed:
            return self._brought(array)
        array = array.copy(order="K")  # another thread may change it before it is brought
        stream, now = self.driver.current_stream().ptr, array.tobytes("A")
        known = self._last.get(stream)
        if known is not None and known[0] == now:
            return known[1]
        if len(self._last) >= MOST:
            self._last.clear()
        pointer = self._brought(array)
        self._last[stream] = now, pointer
        return pointer

    def _brought(self, array: np.ndarray) -> Any:
        with self.driver.on_current_stream():
            return self._bring(array).data


class ConstantArray:
    """The same of an array that nobody changes: it is copied once for each stream."""

    def __init__(
        self, driver: CupyDriver, bring: Callable[[np.ndarray], Any], array: np.ndarray
    ) -> None:
        self.driver, self._bring, self.array = driver, bring, array
        self._of_stream: dict[int, Any] = {}

    def __call__(self) -> Any:
        """CuPy's array, on the stream where work goes now."""
        stream = self.driver.stream.ptr
        known = self._of_stream.get(stream)
        if known is None:
            if len(self._of_stream) >= MOST:
                self._of_stream.clear()
            known = self._of_stream[stream] = self._bring(self.array)
        return known
