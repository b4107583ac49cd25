"""Values of Variables in the memory of a device, for plans that run there.

A copy is brought once and read until somebody writes the Variable.  An assignment by a plan whose
arguments and results are a device's stays there: the Variable's own memory has an old value then,
and whoever wants to read it there, by a `Hold`, fetches the new one first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusec.core.occupancy import VERSION, Occupancy
from fusec.core.records import dataclass
from fusec.runtime.call_spec import CallSpec


@dataclass
class Value:
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

    def of_version(self, version: int) -> Value:
        """The same, which a newer version of the Variable has, too."""
        self.version = version
        return self

    def fetch(self) -> None:
        """See `fusec.core.occupancy.Away`."""
        if self.stream is not None:
            self.arrays.wait_for(self.stream)
        np.copyto(self.buffer, self.arrays.fetch(self.array))


class OwnValue(Value):
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

    def known(self, occupancy: Occupancy) -> Value | None:
        """The value that is there, for work on the stream of now; None: there is none."""
        return _current(occupancy, self._key)

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

    def _value(self, array: Any, buffer: np.ndarray, occupancy: Occupancy) -> Value:
        version = int(occupancy.facts[VERSION])
        value = Value(array, version, self._arrays, self._stream, buffer)
        if any(known.version != version for known in occupancy.copies.values()):
            occupancy.copies.clear()  # nobody reads them any more
        occupancy.copies[self._key] = value
        return value


def _current(occupancy: Occupancy, key: tuple[Any, int]) -> Any:
    """The copy that has the value of now."""
    found, newest = occupancy.copies.get(key), occupancy.away
    if newest is not None:
        return found if found is newest else None
    return found if found is not None and found.version == occupancy.facts[VERSION] else None


def reader(
    arrays: Any, occupancy: Occupancy, stream: Callable[[], Any]
) -> Callable[[], Value | None]:
    """A function that gives the value that work on the stream of then may read, or None.

    Nobody need hold the Variable: a value is never written, another one takes its place.  Who
    reads several asks for all of them again, and has those of one moment if they are the same.
    """
    return lambda: _current(occupancy, (arrays, stream().ptr))


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


def knowing(arrays: Any, spec: CallSpec) -> Any:
    """These arrays where a plan has Variables; as they are where it has none, or None."""
    if arrays is None or not spec.variables:
        return arrays
    return VariableArrays(arrays, {
        id(spec.captured[number - spec.first_captured]): occupancy
        for number, occupancy in spec.variables})
