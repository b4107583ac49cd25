"""A value on its way between devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusec.codegen.backend import DeviceArrays

Arrays = Mapping[str, DeviceArrays]  # of memories that are not the host's, by their names


class Sent(NamedTuple):
    """The message of a send: no value where it only says that something has run.

    ``is_cut``: the upper halves of float32 numbers.  ``after``: when in the work of their device
    the values are there; its later work need not be waited for.
    """

    values: tuple[Any, ...]
    is_cut: bool
    memory: str
    after: Any = None

    @classmethod
    def of(cls, values: Sequence[Any], is_lossy: bool, memory: str, arrays: Arrays) -> Sent:
        """A value as it is sent; lossy, as bfloat16: float32 whose lower 16 bits are cut.

        After section 5.5 of the TensorFlow paper.  A NaN stays one.
        """
        if is_lossy:
            return cls(tuple(_cut(_on_host(v, memory, arrays)) for v in values), True, memory)
        nbytes = sum(getattr(v, "nbytes", 0) for v in values) if memory in arrays else 0
        return cls(tuple(values), False, memory,
                   arrays[memory].moment(nbytes) if nbytes else None)

    def is_there(self, memory: str) -> bool:
        """Whether it need not be copied to be read in this memory."""
        return not self.is_cut and (self.memory == memory or not any(map(_is_array, self.values)))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def unpacked(sent: Sent, memory: str, arrays: Arrays) -> tuple[Any, ...]:
    """The values as a receive in this memory gives them."""
    if sent.is_there(memory):
        return sent.values
    if sent.is_cut:
        return tuple(_brought(_whole(value), memory, arrays) for value in sent.values)
    return tuple(_copied(value, sent, memory, arrays) for value in sent.values)


def _copied(value: Any, sent: Sent, target: str, arrays: Arrays) -> Any:
    if not _is_array(value):
        return value
    fetched = _on_host(value, sent.memory, arrays, sent.after)
    brought = _brought(fetched, target, arrays)
    return value.copy(order="K") if brought is value else brought


def _on_host(value: Any, memory: str, arrays: Arrays, after: Any = None) -> Any:
    is_there = memory in arrays and _is_array(value)
    return arrays[memory].fetch(value, after) if is_there else value


def _brought(value: Any, memory: str, arrays: Arrays) -> Any:
    return arrays[memory].bring(value) if memory in arrays and _is_array(value) else value


def _cut(value: Any) -> np.ndarray:
    bits = np.asarray(value, np.float32, order="C").view(np.uint32)
    quiet = np.isnan(value) * np.uint32(1 << 22)  # a NaN of the lower bits alone would be infinite
    return ((bits | quiet) >> np.uint32(16)).astype(np.uint16)


def _whole(halves: np.ndarray) -> Any:
    numbers = (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return numbers if numbers.ndim else numbers[()]
