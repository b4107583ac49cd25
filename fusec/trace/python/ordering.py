"""``sorted`` of a few traced numbers, as a network of exchanges."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from fusec.errors import UnsupportedError

from ..objects.tracing_hooks import TracingHooks
from ..operands.operands import as_traced
from ..ufuncs.ufunc_calls import call_ufunc
from ..values.array import TracedArray
from ..values.handlers import TABLE
from .builtin_functions import chosen

MOST_NUMBERS = 16  # that are exchanged in pairs


def _sorted(
    hooks: TracingHooks, iterable: Any, /, *, key: Any = None, reverse: Any = False
) -> list[Any]:
    items = list(hooks.iterate(hooks.where, iterable))
    if key is None and type(reverse) is bool and _are_numbers(items):
        _check_ordered(hooks, items)
        return _in_order(hooks, items[::-1] if reverse else items)[::-1 if reverse else 1]
    options = {} if key is None else {"key": hooks.wrap(key)}
    return sorted(items, reverse=reverse, **options)


def _sort(
    hooks: TracingHooks, items: list[Any], /, *, key: Any = None, reverse: Any = False
) -> None:
    """``list.sort``"""
    if key is None and type(reverse) is bool and _are_numbers(items):
        items[:] = _sorted(hooks, items, reverse=reverse)
        return
    options = {} if key is None else {"key": hooks.wrap(key)}
    items.sort(reverse=reverse, **options)


def _are_numbers(items: list[Any]) -> bool:
    """Whether they are real numbers of one type, some of which data decides."""
    if len(items) > MOST_NUMBERS or not any(type(x) is TracedArray for x in items):
        return False
    if not all(type(x) is TracedArray and not x.is_array for x in items):
        return False
    types = {(x.type.dtype, x.type.is_weak) for x in items}
    return len(types) == 1 and items[0].dtype.kind in "biuf"


def _check_ordered(hooks: TracingHooks, items: list[Any]) -> None:
    """NaN is neither smaller nor larger: what Python makes of it depends on how it goes on."""
    trace = hooks.trace
    for x in items:
        value = x.value
        if value.dtype.kind == "f":
            trace.check(trace.emit("Equal", value, value), UnsupportedError(
                "sorted() of numbers with NaN in them is not supported inside a fusec.jit "
                "function: sort an array, with np.sort"))


def _in_order(hooks: TracingHooks, items: list[Any]) -> list[Any]:
    """Neighbours exchanged until all are in order; equal ones stay in theirs."""
    items = list(items)
    for last in range(len(items) - 1, 0, -1):
        for j in range(last):
            a, b = (as_traced(hooks.trace, x) for x in items[j:j + 2])
            swap = call_ufunc(hooks.trace, np.less, "__call__", (b, a), {}, True)
            items[j:j + 2] = chosen(hooks.trace, swap, b, a), chosen(hooks.trace, swap, a, b)
    return items


TABLE.register(builtins.sorted, _sorted)
TABLE.register(list.sort, _sort)
