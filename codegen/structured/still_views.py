"""Views whose place in the memory of an array is known before there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fusec.ir.regions import byte_extent

from .memory import Memory, View

if TYPE_CHECKING:
    from ..plan.call_plan import CallPlan

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


class PlacesOfCall:
    """What views in a plan show, which library calls read, by the places that they are of."""

    def __init__(self, call_plan: CallPlan, layouts: Sequence[Any]) -> None:
        """``layouts`` are the strides of the plan's operands."""
        made = (place for step in call_plan.externs for place in step.results)
        self._whole = {p.key: p for p in (*made, *call_plan.temps, *call_plan.outputs)
                       if isinstance(p, View) and not p.views}
        inputs = call_plan.graph.inputs
        for number, (value, strides) in enumerate(zip(inputs, layouts, strict=True)):
            memory = Memory(-1, value.type.nbytes, value.dtype, "operand", number)
            self._whole[memory.key] = View(memory, value.shape, strides, value.dtype)

    def still(self, place: View) -> StillView:
        """Where in its memory a place is; raises `NotStillError`."""
        if not place.views:
            return StillView(place.shape, place.strides, place.dtype, 0)
        whole = self._whole.get(place.key)
        if whole is None:
            raise NotStillError("a view of what only the plan knows")
        return still_view(whole.shape, whole.strides, whole.dtype, place.views)
