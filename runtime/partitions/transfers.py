"""A value on its way between devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Sent(NamedTuple):
    """What a send hands over: no value where it only says that something has run.

    ``is_cut``: the upper halves of float32 numbers.
    """

    values: tuple[Any, ...]
    is_cut: bool
    memory: str

    @classmethod
    def of(cls, values: Sequence[Any], is_lossy: bool, memory: str) -> Sent:
        """A value as it is sent; lossy, as bfloat16: float32 whose lower 16 bits are cut.

        After section 5.5 of the TensorFlow paper.  A NaN stays one.
        """
        if is_lossy:
            return cls(tuple(map(_cut, values)), True, memory)
        return cls(tuple(values), False, memory)

    def is_there(self, memory: str) -> bool:
        """Whether it need not be copied to be read in this memory."""
        return not self.is_cut and (self.memory == memory or not any(
            isinstance(value, np.ndarray) for value in self.values))


def unpacked(sent: Sent, memory: str) -> tuple[Any, ...]:
    """The values as a receive in this memory gives them."""
    if sent.is_cut:
        return tuple(map(_whole, sent.values))
    return sent.values if sent.is_there(memory) else tuple(
        value.copy(order="K") if isinstance(value, np.ndarray) else value for value in sent.values)


def _cut(value: Any) -> np.ndarray:
    bits = np.asarray(value, np.float32, order="C").view(np.uint32)
    quiet = np.isnan(value) * np.uint32(1 << 22)  # a NaN of the lower bits alone would be infinite
    return ((bits | quiet) >> np.uint32(16)).astype(np.uint16)


def _whole(halves: np.ndarray) -> Any:
    numbers = (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return numbers if numbers.ndim else numbers[()]
