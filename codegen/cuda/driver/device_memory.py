"""The memory of one call of a nest: the places of its buffers on the device, and borrowed blocks.

Arrays that the host holds are copied there and back: cells, which are the scalars of a plan, and in
tests all arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field

from .driver import Driver


@dataclass
class Staged:
    """Bytes of the host, from one address to another, and where their copy is."""

    low: int
    high: int
    device: int = 0
    buffers: set[int] = field(default_factory=set)

    def bytes_of(self) -> np.ndarray:
        """The host's memory itself."""
        return np.asarray(_Span({
            "data": (self.low, False), "shape": (self.high - self.low,), "typestr": "|u1",
            "version": 3}))


class _Span:
    """Memory as NumPy takes it over."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


class DeviceMemory:
    """See the module docstring."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._owned: list[int] = []
        self._staged: list[Staged] = []

    def fresh(self, nbytes: int) -> int:
        """Memory until `release`."""
        address = self.driver.allocate(max(nbytes, 1))
        self._owned.append(address)
        return address

    def zeros(self, nbytes: int) -> int:
        address = self.fresh(nbytes)
        self.driver.copy_in(address, np.zeros(nbytes, np.uint8))
        return address

    def addresses_of(self, buffers: Sequence[Any]) -> list[int]:
        """The device's address of the first element of each; those of the host are copied."""
        found = [self.driver.address_of(b) for b in buffers]
        hosts = {n: b for n, (b, at) in enumerate(zip(buffers, found, strict=True)) if at is None}
        self._staged = joined_spans(hosts)
        for part in self._staged:
            part.device = self.fresh(part.high - part.low)
            self.driver.copy_in(part.device, part.bytes_of())
        return [self._staged_address(n, buffers[n]) if at is None else at
                for n, at in enumerate(found)]

    def _staged_address(self, number: int, array: np.ndarray) -> int:
        for part in self._staged:
            if number in part.buffers:
                return part.device + int(array.ctypes.data) - part.low
        return 0  # it is empty

    def copy_back(self, written: Collection[int]) -> None:
        """Copy results of kernels back to the host's arrays."""
        for part in self._staged:
            if part.buffers & set(written):
                self.driver.copy_out(part.bytes_of(), part.device)

    def word(self, address: int) -> int:
        """An integer of the device's."""
        value = np.zeros(2, np.int64)
        self.driver.copy_out(value, address)
        return int(value[0])

    def release(self) -> None:
        """Give back the borrowed blocks."""
        for address in self._owned:
            self.driver.free(address)
        self._owned.clear()


def joined_spans(arrays: dict[int, np.ndarray]) -> list[Staged]:
    """The bytes that arrays span; those that share memory, together."""
    spans: list[Staged] = []
    for number, array in arrays.items():
        if array.size:
            low, high = np.lib.array_utils.byte_bounds(array)
            whole = Staged(low, high, buffers={number})
            for other in [s for s in spans if s.low < high and low < s.high]:
                spans.remove(other)
                whole.low, whole.high = min(whole.low, other.low), max(whole.high, other.high)
                whole.buffers |= other.buffers
                low, high = whole.low, whole.high
            spans.append(whole)
    return spans
