"""Long lists of items that loops made, as the arrays that these are parts of."""

from __future__ import annotations

from typing import Any

from fusec.ir.sizes.dims import is_static

from ..control.unrolling import UNROLL
from ..lists.appended_items import restacked
from ..operands.python_numbers import weak
from ..values.array import TracedArray, from_value
from ..values.trace import Trace

_LISTS = (list, tuple)


def are_pythons(items: Any) -> bool:
    """Whether those of a list are Python's numbers, which in an array would be NumPy's."""
    return type(items) in _LISTS and type(items[0]) is TracedArray and (
        not items[0].is_array and items[0].type.is_weak)


def python_number(items: TracedArray, k: Any) -> TracedArray:
    """An element as such a number."""
    item: Any = items[k]
    return from_value(items.trace, weak(items.trace, item.value, item.dtype))


def _are_alike(items: Any) -> bool:
    """Whether all traced numbers are Python's, or all NumPy's."""
    return len({x.type.is_weak for x in items if type(x) is TracedArray}) == 1


def many(trace: Trace, items: Any, are_rows: bool = False) -> TracedArray | None:
    """The elements of a long list as an array; None for others, and for arrays unless
    ``are_rows``."""
    if type(items) in _LISTS and len(items) > UNROLL:
        items = restacked(trace, items) if _are_alike(items) else None
    is_long = type(items) is TracedArray and (items.ndim == 1 or (are_rows and items.ndim)) and (
        not is_static(items.shape) or items.shape[0] > UNROLL)
    return items if is_long else None
