"""Values of Variables as arrays of the device's library: read and made by calls with such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.occupancy import VERSION, Occupancy
from fusec.runtime.devices.variable_copies import DeviceValue, current_value


class OwnValue(DeviceValue):
    """One that a call has made in an array of the device's library: plans get it as theirs."""

    def __init__(
        self, own: Any, version: int, arrays: Any, stream: Any, buffer: np.ndarray
    ) -> None:
        self.own, self.version, self.arrays = own, version, arrays
        self.stream, self.buffer = stream, buffer

    @property
    def array(self) -> Any:
        return self.arrays.lent(self.own)

    @property
    def address(self) -> int:
        return int(self.own.data.ptr)


def reader(
    arrays: Any, occupancy: Occupancy, stream: Callable[[], Any]
) -> Callable[[], DeviceValue | None]:
    """A function that gives the value that work on the stream of then may read, or None.

    Nobody need hold the Variable: a value is never written, another one takes its place.  Who
    reads several asks for all of them again, and has those of one moment if they are the same.
    """
    return lambda: current_value(occupancy, (arrays, stream().ptr))


def writer(
    arrays: Any, occupancy: Occupancy, buffer: np.ndarray, stream: Callable[[], Any]
) -> Callable[[Any], None]:
    """A function that makes an array of the device's library, which nobody else has, the value of
    a Variable; for who holds it to write."""
    def write(own: Any) -> None:
        now = stream()
        value = OwnValue(own, int(occupancy.facts[VERSION]), arrays, now, buffer)
        occupancy.copies.clear()
        occupancy.copies[arrays, now.ptr] = value
        occupancy.leave_home(value)

    return write
