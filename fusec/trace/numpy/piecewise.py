"""``np.piecewise`` with functions, and ``np.average`` with weights: NumPy's own code asks the data
for what a graph computes for all elements, or checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.trace import Trace

_SUM_IS_ZERO = "Weights sum to zero, can't be normalized"


def piecewise(
    trace: Trace, x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any
) -> Any:
    """Functions are called with the elements selected, which may be none."""
    if not any(map(callable, funclist)):
        return _source(np.piecewise)(trace, x, condlist, funclist, *args, **options)
    array = as_traced(trace, x)
    if not array.ndim:
        return _of_one(trace, array, condlist, funclist, args, options)
    conditions = _conditions(trace, array, condlist, funclist)
    result: Any = np.zeros_like(array)
    for condition, function in zip(conditions, funclist, strict=True):
        result[condition] = _value(trace, function, array[condition], args, options)
    return result


def _of_one(
    trace: Trace, x: TracedArray, condlist: Any, funclist: Any, args: Any, options: Any
) -> Any:
    """Of a number: an array of rank 0."""
    row = x.reshape(1)
    conditions = [c.reshape(1) for c in _conditions(trace, x, condlist, funclist)]
    result: Any = np.zeros_like(row)
    for condition, function in zip(conditions, funclist, strict=True):
        values = _value(trace, function, row, args, options)
        result[...] = np.where(condition, values, result)
    return result.reshape(())


def _value(trace: Trace, function: Any, selected: Any, args: Any, options: Any) -> Any:
    if not callable(function):
        return function
    hooks: Any = trace.hooks
    return hooks.call(hooks.where, function, selected, *args, **options)


def _conditions(trace: Trace, x: TracedArray, condlist: Any, funclist: Any) -> list[Any]:
    """One for each function; a function more is for where none of them holds."""
    is_one = type(condlist) in (TracedArray, np.ndarray) and condlist.ndim == x.ndim
    given = [condlist] if is_one or not np.iterable(condlist) else list(condlist)
    found: list[Any] = [as_traced(trace, c).astype(bool) for c in given]
    if len(found) == len(funclist) - 1:
        some = found[0]
        for other in found[1:]:
            some = np.logical_or(some, other)
        found.append(np.logical_not(some))
    if len(found) != len(funclist):
        raise trace.error(ValueError(
            f"with {len(given)} condition(s), either {len(given)} or {len(given) + 1} functions "
            f"are expected"), [x.value])
    return found


def _source(function: Callable[..., Any], assume: bool | None = None) -> Callable[..., Any]:
    from .more_functions import traced_source

    return traced_source(function, assume)


def average(
    trace: Trace, a: Any, axis: Any = None, weights: Any = None, returned: bool = False,
    **options: Any,
) -> Any:
    """NumPy's own, with its check of the sum of the weights."""
    result = _source(np.average, False)(trace, a, axis, weights, returned, **options)
    if weights is not None:
        w, x = as_traced(trace, weights), as_traced(trace, a)
        total: Any = np.sum(w, axis=axis) if w.shape == x.shape else np.sum(w)
        holds: Any = np.all(np.not_equal(total, 0))
        trace.check(holds.value, ZeroDivisionError(_SUM_IS_ZERO))
    return result


__all__ = ["average", "piecewise"]
