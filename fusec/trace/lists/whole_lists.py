"""Lists that only calls read, which take all of their items at once: ``np.array([f(row) for row in
x])``.  Such a list is as long as the array that it stands for, whatever sizes arguments have.

Which lists calls alone read is said by the program's text (`rewrite.whole_lists`); which calls look
at no item by itself, here.  Any other has the trace serve lists of this length only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..values.rows import Pending, all_pending, whole
from ..values.trace import Trace
from .appended_items import ReadWhole


def _by_identity(*functions: Any) -> dict[int, Any]:
    return {id(fn): fn for fn in functions}


_JOINING = _by_identity(
    len, np.array, np.asarray, np.asanyarray, np.stack, np.vstack, np.hstack, np.concatenate,
    np.column_stack)
_COMPARING = _by_identity(sum, max, min)
# What begins with `np.asarray`.
_OF_ARRAYS = _by_identity(
    np.sum, np.prod, np.mean, np.median, np.std, np.var, np.max, np.min, np.ptp, np.argmax,
    np.argmin, np.any, np.all, np.sort, np.argsort, np.cumsum, np.cumprod, np.diff, np.percentile,
    np.quantile, np.unique, np.histogram, np.count_nonzero, np.linalg.norm, np.nanmean, np.nansum,
    np.nanmax, np.nanmin, np.nanstd)


def pending_of_whole(trace: Trace, items: Any) -> Pending:
    """The pending part of a list that is all of one array, or of an array for each place of its
    tuples; of any other nothing is from here on."""
    if not trace.part(ReadWhole):
        return Pending()
    pending = all_pending(items)
    if pending and _is_whole(trace, items):
        return pending[-1]
    for one in pending:
        one.settle()
    return Pending()


def _is_whole(trace: Trace, items: list[Any]) -> bool:
    if whole(trace, items) is not None:
        return True
    return all(type(x) is tuple and len(x) == len(items[0]) for x in items) and all(
        whole(trace, column) is not None for column in zip(*items, strict=True))


def length_of(trace: Trace, items: Any) -> Any:
    """How many items a list has, for any sizes of the arguments."""
    return pending_of_whole(trace, items).get(0, len(items))


def settle(trace: Trace, items: Any) -> None:
    """Python goes over the items: the trace serves lists of this length."""
    if trace.part(ReadWhole):
        for one in all_pending(items):
            one.settle()


def settled(trace: Trace, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call is to get an array in the place of a list.  Lists that it may look at one
    item of have as many as now from here on."""
    if not trace.builder.is_symbolic:
        return False
    pending = [pending_of_whole(trace, arg) for arg in args]
    if not any(pending) or id(fn) in _JOINING:
        return False
    if id(fn) in _OF_ARRAYS and pending[0] and not any(pending[1:]):
        return True
    if id(fn) not in _COMPARING or kwargs or (fn is not sum and len(args) > 1):
        for arg in args:
            settle(trace, arg)
    return False
