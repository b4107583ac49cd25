"""Values of Variables in the memory of a device, for plans that run there.

A copy is brought once and read until somebody writes the Variable.  An assignment by a plan whose
arguments and results are a device's stays there: the Variable's own memory has an old value then,
and whoever wants to read it there, by a `Hold`, fetches the new one first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fusec.core.occupancy import VERSION, Occupancy
from fusec.core.records import dataclass
from fusec.runtime.call_spec import CallSpec


@dataclass
class DeviceValue:
    """A value there.  Work that makes it was asked of the ``stream``, whose work alone may rely on
    that; ``buffer`` is the Variable's own memory."""

    array: Any
    version: int
    arrays: Any
    stream: Any
    buffer: np.ndarray

    @property
    def address(self) -> int:
        """Where it is on the device."""
        return int(self.array.ctypes.data)

    def of_version(self, version: int) -> DeviceValue:
        """The same, which a newer version of the Variable has, too."""
        self.version = version
        return self

    def fetch(self) -> None:
        """See `fusec.core.occupancy.Away`."""
        if self.stream is not None:
            self.arrays.wait_for(self.stream)
        np.copyto(self.buffer, self.arrays.fetch(self.array))


class VariableArrays:
    """`DeviceArrays` of one memory that know the Variables of a plan; the rest is as it was."""

    def __init__(self, arrays: Any, variables: Mapping[int, Occupancy]) -> None:
        """``variables``: by the ids of their buffers."""
        self._arrays, self._variables = arrays, variables

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arrays, name)

    def bring(self, array: np.ndarray) -> Any:
        """A copy there, of a Variable's buffer that of its value; by who holds the Variable."""
        occupancy = self._variables.get(id(array))
        if occupancy is None:
            return self._arrays.bring(array)
        value = self.known(occupancy)
        if value is None:
            occupancy.come_home()  # it is on another stream
            value = self._value(self._arrays.bring(array), array, occupancy)
        return value.array

    def known(self, occupancy: Occupancy) -> DeviceValue | None:
        """The value that is there, for work on the stream of now; None: there is none."""
        return current_value(occupancy, self._key)

    def assign(self, buffer: np.ndarray, value: Any) -> None:
        """Let this be a Variable's value, which nothing else writes; by who holds it to write."""
        occupancy = self._variables[id(buffer)]
        occupancy.copies.clear()
        if self._arrays.is_there(value):
            occupancy.leave_home(self._value(value, buffer, occupancy))
        else:  # a number, which kernels have on the host
            np.copyto(buffer, value)
            occupancy.stay_home()

    @property
    def _stream(self) -> Any:
        return getattr(self._arrays, "stream", None)

    @property
    def _key(self) -> tuple[Any, int]:
        """By stream: freed memory may be used again by the stream's later work, not by others."""
        stream = self._stream
        return self._arrays, 0 if stream is None else stream.ptr

    def _value(self, array: Any, buffer: np.ndarray, occupancy: Occupancy) -> DeviceValue:
        version = int(occupancy.facts[VERSION])
        value = DeviceValue(array, version, self._arrays, self._stream, buffer)
        if any(known.version != version for known in occupancy.copies.values()):
            occupancy.copies.clear()  # nobody reads them any more
        occupancy.copies[self._key] = value
        return value


def current_value(occupancy: Occupancy, key: tuple[Any, Any]) -> Any:
    """The copy that has the value of now."""
    found, newest = occupancy.copies.get(key), occupancy.away
    if newest is not None:
        return found if found is newest else None
    return found if found is not None and found.version == occupancy.facts[VERSION] else None


def knowing(arrays: Any, spec: CallSpec) -> Any:
    """These arrays where a plan has Variables; as they are where it has none, or None."""
    if arrays is None or not spec.variables:
        return arrays
    return VariableArrays(arrays, {
        id(spec.captured[number - spec.first_captured]): occupancy
        for number, occupancy in spec.variables})
