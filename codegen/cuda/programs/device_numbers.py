"""Numbers in a device's memory: kernels write and read them while the host goes on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..driver.device_memory import DeviceMemory
from ..driver.driver import Driver
from .launch_queue import LaunchQueue

WORD = 16  # bytes of a complex128, and its alignment
_CHUNK = 64  # words that are allocated at once
_OF_THE_HOST = -1  # in the place of a register
_REMEMBERED = 64  # numbers of the host's whose copies are kept


class DeviceNumber:
    """A number in a word of the device's; once nothing refers to it the word is the next number's
    of the same ``free`` words."""

    __slots__ = ("_free", "_numbers", "_value", "address", "dtype")

    def __init__(
        self, numbers: DeviceNumbers, address: int, dtype: np.dtype, free: list[int]
    ) -> None:
        self._numbers, self._free, self.address, self.dtype = numbers, free, address, dtype
        self._value: Any = None

    def __del__(self) -> None:
        self._free.append(self.address)

    def value(self) -> Any:
        """The number on the host, which waits for the device the first time."""
        if self._value is None:
            self._value = self._numbers.fetched(self.address, self.dtype)
        return self._value


class DeviceNumbers:
    """The words of one call, those of each register apart: an iteration comes to the same ones as
    the last but one.

    Work on a device is done in the order in which it is asked for: a word that is given back may be
    written anew at once, after what was asked to read it.
    """

    def __init__(self, driver: Driver, memory: DeviceMemory, queue: LaunchQueue) -> None:
        self.driver, self.memory, self.queue = driver, memory, queue
        self._free: dict[int, list[int]] = {}
        self._unused = range(0)
        self._copies: dict[tuple[str, bytes], DeviceNumber] = {}

    def new(self, dtype: np.dtype, register: int) -> DeviceNumber:
        """A word for a kernel to write, one of the register's."""
        free = self._free.setdefault(register, [])
        return DeviceNumber(self, free.pop() if free else self._word(), dtype, free)

    def _word(self) -> int:
        if not self._unused:
            first = self.memory.fresh(WORD * _CHUNK)
            self._unused = range(first, first + WORD * _CHUNK, WORD)
        word, self._unused = self._unused[0], self._unused[1:]
        return word

    def there(self, number: Any, dtype: np.dtype) -> DeviceNumber:
        """The number on the device: where it is, or a copy of the host's."""
        if type(number) is DeviceNumber:
            return number
        bits = np.asarray(number, dtype)
        key = dtype.str, bits.tobytes()
        known = self._copies.get(key)
        if known is None:
            if len(self._copies) >= _REMEMBERED:
                del self._copies[next(iter(self._copies))]
            known = self._copies[key] = self.new(dtype, _OF_THE_HOST)
            self.queue.flush()
            self.driver.copy_in(known.address, bits.reshape(1))
        return known

    def fetched(self, address: int, dtype: np.dtype) -> Any:
        """What a word holds, when all has been done that was asked for."""
        self.queue.flush()
        array = np.empty(1, dtype)
        self.driver.copy_out(array, address)
        return host_number(array[0], dtype)


def host_number(value: Any, dtype: np.dtype) -> Any:
    """A number as the text of a program has it: int64 and booleans as Python's, others as NumPy's.
    """
    if dtype == np.int64:
        return int(value)
    return bool(value) if dtype == np.bool_ else dtype.type(value)


def on_host(number: Any) -> Any:
    """A number, wherever it is, as the text of a program computes with it."""
    return number.value() if type(number) is DeviceNumber else number
