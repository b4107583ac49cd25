"""Arrays for tracing a function, which takes their shapes alone: they take no memory."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux's number, where Python has no name


def unwritten(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array that nothing was written to, whose pages exist when they are touched."""
    count = math.prod(shape)
    size = count * dtype.itemsize
    if size < mmap.PAGESIZE or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    memory: Any = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    return np.frombuffer(memory, dtype, count).reshape(shape)
