"""Lists that only calls read, which take all of their items at once: ``np.array([f(row) for row in
x])``.  Such a list is as long as the array that it stands for, whatever sizes arguments have.

Which lists calls alone read is said by the program's text (`rewrite.whole_lists`); which calls look
at no item by itself, here.  Any other has the trace serve lists of this length only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..values.rows import pending_of
from ..values.trace import Trace


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


def settled(trace: Trace, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call is to get an array in the place of a list.  Lists that it may look at one
    item of have as many as now from here on."""
    pending = [p for p in map(pending_of, args) if p] if trace.builder.is_symbolic else []
    if not pending or id(fn) in _JOINING:
        return False
    if id(fn) in _OF_ARRAYS and pending_of(args[0]) is pending[-1]:
        return True
    if id(fn) not in _COMPARING or kwargs or (fn is not sum and len(args) > 1):
        for one in pending:
            one.settle()
    return False
