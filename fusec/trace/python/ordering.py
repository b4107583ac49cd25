"""``sorted`` of traced numbers, or tuples of them: of a few as a network of exchanges, of many, and
by keys, as NumPy sorts their array."""

from __future__ import annotations

import builtins
import heapq
from typing import Any

import numpy as np

from fusec.errors import unsupported

from ..control.sequences import PythonIterator
from ..convert import in_python
from ..objects.tracing_hooks import TracingHooks
from ..operands.operands import as_traced
from ..ufuncs.ufunc_calls import call_ufunc
from ..values.array import TracedArray
from ..values.handlers import TABLE, any_traced
from .reductions_of_items import chosen
from .sorted_arrays import check_no_nan, in_order_of

MOST_NUMBERS = 16  # that are exchanged in pairs


def _sorted(
    hooks: TracingHooks, iterable: Any, /, *, key: Any = None, reverse: Any = False
) -> list[Any]:
    items = _listed(hooks, iterable)
    if key is None and type(reverse) is bool and _are_ordered(items):
        _check_ordered(hooks, items)
        return _in_order(hooks, items[::-1] if reverse else items)[::-1 if reverse else 1]
    is_reversed = hooks.decide(reverse)
    if is_reversed is None:
        raise unsupported("an order (reverse=) that data decides", loc=hooks.loc,
                          cure="sort in both orders, and choose with if")
    return _by_keys(hooks, items, key, is_reversed)


def _listed(hooks: TracingHooks, iterable: Any) -> list[Any]:
    is_taken = isinstance(iterable, PythonIterator) or type(iterable) is TracedArray
    items: list[Any] = hooks.call(hooks.where, list, iterable) if is_taken else [
        *hooks.iterate(hooks.where, iterable)]
    return items


def _sort(
    hooks: TracingHooks, items: list[Any], /, *, key: Any = None, reverse: Any = False
) -> None:
    """``list.sort``"""
    items[:] = _sorted(hooks, items, key=key, reverse=reverse)


def _by_keys(hooks: TracingHooks, items: list[Any], key: Any, reverse: bool) -> list[Any]:
    """Sorted by the results of ``key``: an array of it where data decides."""
    keys = items if key is None else _keys(hooks, items, hooks.wrap_key(key))
    if any_traced((keys,), {}):
        found = in_order_of(hooks, items, keys, reverse)
        if found is not None:
            return found
    if key is None:
        return sorted(items, reverse=reverse)
    return [items[k] for k in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]


def _keys(hooks: TracingHooks, items: list[Any], key: Any) -> list[Any]:
    return hooks.list_of(hooks.where, items, key, None, lambda over: [*map(key, over)])


def _are_ordered(items: list[Any]) -> bool:
    return _are_numbers(items) or _are_tuples(items)


def _are_tuples(items: list[Any]) -> bool:
    """Whether they are tuples of numbers, some of which data decides."""
    if len(items) > MOST_NUMBERS or not all(type(x) is tuple for x in items):
        return False
    numbers = [x for item in items for x in item]
    return any(type(x) is TracedArray for x in numbers) and all(
        not x.is_array if type(x) is TracedArray else type(x) in (int, float, bool)
        for x in numbers) and len({len(item) for item in items}) == 1


def _are_numbers(items: list[Any]) -> bool:
    """Whether they are real numbers of one type, some of which data decides."""
    if len(items) > MOST_NUMBERS or not any(type(x) is TracedArray for x in items):
        return False
    if not all(type(x) is TracedArray and not x.is_array for x in items):
        return False
    types = {(x.type.dtype, x.type.is_weak) for x in items}
    return len(types) == 1 and items[0].dtype.kind in "biuf"


def _check_ordered(hooks: TracingHooks, items: list[Any]) -> None:
    for x in (x for item in items for x in (item if type(item) is tuple else (item,))):
        check_no_nan(hooks.trace, as_traced(hooks.trace, x))


def _in_order(hooks: TracingHooks, items: list[Any]) -> list[Any]:
    """Neighbours exchanged until all are in order; equal ones stay in theirs."""
    items = list(items)
    for last in range(len(items) - 1, 0, -1):
        for j in range(last):
            items[j:j + 2] = _exchanged(hooks, *items[j:j + 2])
    return items


def _exchanged(hooks: TracingHooks, a: Any, b: Any) -> Any:
    if type(a) is tuple:
        return hooks.call(hooks.where, in_python.exchanged, a, b)
    a, b = (as_traced(hooks.trace, x) for x in (a, b))
    swap = call_ufunc(hooks.trace, np.less, "__call__", (b, a), {}, True)
    return chosen(hooks.trace, swap, b, a), chosen(hooks.trace, swap, a, b)


def _of_smallest(function: Any, reverse: bool) -> None:
    """``heapq.nsmallest`` and ``nlargest`` of a few numbers, or tuples of them."""
    def call(hooks: TracingHooks, n: Any, iterable: Any, key: Any = None) -> Any:
        items = _listed(hooks, iterable)
        if type(n) is int and any_traced((items,), {}):
            return _sorted(hooks, items, key=key, reverse=reverse)[:max(n, 0)]
        return function(n, items, **({} if key is None else {"key": hooks.wrap_key(key)}))

    TABLE.register(function, call)


TABLE.register(builtins.sorted, _sorted)
TABLE.register(list.sort, _sort)
_of_smallest(heapq.nsmallest, False)
_of_smallest(heapq.nlargest, True)
