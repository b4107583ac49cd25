"""Views whose place in the memory of an array is known before there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fusec.ir.regions import byte_extent

_MOST = 1 << 30  # bytes of address space that are asked for, and not touched


class NotStillError(Exception):
    """What a view shows is known at the call alone."""


class StillView(NamedTuple):
    """``offset`` is in bytes, from the first element of the array that it is a view of."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    offset: int


def still_view(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, views: Sequence[Any]
) -> StillView:
    """What the views, one after another, show of an array that lies so; raises `NotStillError`."""
    low, high = byte_extent(shape, strides, dtype.itemsize)
    if high - low > _MOST or 0 in shape:
        raise NotStillError("a result is a view of what is very large, or of nothing")
    array = whole = np.ndarray(shape, dtype, np.empty(high - low, np.uint8).data, -low, strides)
    try:
        for view in views:
            array = view(array, {})
    except (KeyError, AttributeError, TypeError) as error:
        raise NotStillError("a result is a view at what the call decides") from error
    if not isinstance(array, np.ndarray) or not np.may_share_memory(array, whole):
        raise NotStillError("a result is a copy of a part")
    return StillView(array.shape, array.strides, array.dtype,
                     array.ctypes.data - whole.ctypes.data)
