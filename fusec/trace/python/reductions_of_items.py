"""``sum``, ``max`` and ``min`` of traced items."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType, GeneratorType
from typing import Any

import numpy as np

from fusec.errors import UnsupportedError, unsupported, user_error

from ..choice.merge import check_holds, of_other_dtypes
from ..control.attempts import nothing_done
from ..control.iterators import Enumerate, Map, NdEnumerate, Product, Reversed, Zip
from ..control.ranges import VIEWS, sequence
from ..control.unrolling import UNROLL
from ..convert import in_python
from ..guards.places import UNBOUND
from ..objects.object_reads import are_compared_by_users
from ..objects.tracing_hooks import TracingHooks
from ..objects.user_methods import method_of
from ..operands.operands import as_traced, cast
from ..operands.text_uses import check_inside
from ..ufuncs.ufunc_calls import call_ufunc
from ..values.array import TracedArray, from_value
from ..values.handlers import TABLE, any_traced
from ..values.rows import elements
from ..values.trace import Trace
from .long_lists import are_pythons, many, python_number

_ITERATORS = (GeneratorType, map, filter, zip, enumerate, Zip, Enumerate, Reversed, Product,
              Map, NdEnumerate)


def _of_items(function: Callable[..., Any], by_hand: Callable[..., Any]) -> Callable[..., Any]:
    """Registers for calls on a single iterable, the items of which may be traced; ``by_hand`` is a
    loop over an array of them."""
    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        def call(hooks: TracingHooks, *args: Any, **kwargs: Any) -> Any:
            if args and type(args[0]) in _ITERATORS:
                args = (hooks.call(hooks.where, list, args[0]), *args[1:])
            elif args and type(args[0]) in VIEWS:
                args = (tuple(args[0]), *args[1:])
            if function is not sum and len(args) == 1 and type(args[0]) in (list, tuple) and (
                    args[0]):
                kwargs.pop("default", None)
            if not any_traced(args, kwargs) and not _may_be_traced(hooks, function, args, kwargs):
                return function(*args, **kwargs)
            is_of_items = not kwargs and (function is sum or len(args) == 1)
            items = many(hooks.trace, args[0], function is sum) if is_of_items else None
            if items is not None and are_pythons(args[0]):
                return hooks.call(hooks.where, in_python.OF[function],
                                  partial(python_number, items), items.shape[0], *args[1:])
            if items is not None:
                return hooks.call(hooks.where, by_hand, items, *args[1:])
            return handler(hooks, *args, **kwargs)

        TABLE.register(function, call)
        return handler

    return decorate


def _may_be_traced(
    hooks: TracingHooks, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether a method or a key that is a function of the program gives a value of the run."""
    if function is builtins.sum:
        return _are_users(args)
    if "key" not in kwargs and are_compared_by_users(args):
        return True
    is_there = len(args) == 1 and type(args[0]) in (list, tuple, range)
    return is_there and "key" in kwargs and kwargs["key"] is not None


def _are_users(args: tuple[Any, ...]) -> bool:
    """Whether the first of the items is an object of the program's that adds by itself."""
    first = args[0][0] if isinstance(args[0], (list, tuple)) and args[0] else None
    return any(method_of(first, name) for name in ("__add__", "__radd__"))


def _extremum(function: Callable[..., Any], better: np.ufunc, by_hand: Callable[..., Any]) -> None:
    @_of_items(function, by_hand)
    def call(hooks: TracingHooks, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        items = list(elements(args[0]) or args[0]) if len(args) == 1 else list(args)
        if not items and not kwargs:
            return function(items)  # which raises
        if key is not None and items:
            with _read_once(hooks, args[0]):
                return _best_by(hooks, function, items, key)
        if kwargs or not items:
            raise unsupported(f"{function.__name__} with these arguments on traced values",
                              loc=hooks.loc, cure=f"x.{function.__name__}() if len(x) else default")
        if any(type(item) in (tuple, list) for item in items):
            return _of_sequences(hooks, function, by_hand, items)
        if are_compared_by_users(args):
            return hooks.call(hooks.where, by_hand, items)
        best = items[0]
        for item in items[1:]:
            x, y = as_traced(hooks.trace, best), as_traced(hooks.trace, item)
            if x.ndim or y.ndim:
                raise hooks.trace.error(ValueError(
                    "The truth value of an array with more than one element is ambiguous. "
                    "Use np.minimum or np.maximum"), [x.value, y.value])
            is_better = call_ufunc(hooks.trace, better, "__call__", (y, x), {}, True)
            best = chosen(hooks.trace, is_better, y, x)
        return best


def _of_sequences(
    hooks: TracingHooks, function: Callable[..., Any], by_hand: Callable[..., Any], items: list[Any]
) -> Any:
    try:
        return hooks.call(hooks.where, by_hand, items)
    except TypeError as error:
        lengths = {len(item) for item in items if type(item) in (tuple, list)}
        if len(lengths) < 2:
            raise
        raise unsupported(
            f"{function.__name__} of sequences of {min(lengths)} and of {max(lengths)} items, of "
            "which data chooses one", loc=hooks.loc,
            cure="compare sequences of one length, or the items that decide") from error


@contextmanager
def _read_once(hooks: TracingHooks, array: Any) -> Iterator[None]:
    """The elements of a vector are read before the first key, and Python reads them one by one."""
    is_vector = type(array) is TracedArray and array.ndim == 1
    before = array.value if is_vector else None
    yield
    if is_vector and array.value is not before:
        raise unsupported(
            "a key= that writes into the array of which it orders the elements", loc=hooks.loc,
            cure="write the loop, or order a copy: x.copy()")


def _best_by(
    hooks: TracingHooks, function: Callable[..., Any], items: list[Any], key: Callable[..., Any],
) -> Any:
    """``max(items, key=key)``: each key is asked for once, in order."""
    first = hooks.call(hooks.where, key, items[0])
    found = _best_in_loop(hooks, function, items, key, first) if len(items) > UNROLL and (
        any_traced((first,), {})) else UNBOUND
    if found is not UNBOUND:
        return found
    keys = [first, *(hooks.call(hooks.where, key, item) for item in items[1:])]
    check_inside(hooks.trace, keys)
    if not any_traced(tuple(keys), {}):
        return items[function(range(len(items)), key=keys.__getitem__)]
    return hooks.call(hooks.where, in_python.BY_KEY[function], keys, items)


def _best_in_loop(
    hooks: TracingHooks, function: Callable[..., Any], items: list[Any], key: Callable[..., Any],
    first: Any,
) -> Any:
    """The same by a loop of the graph, ``first`` the first key; `UNBOUND` where that is refused."""
    counted = sequence(hooks.trace, items)
    if counted is None:
        return UNBOUND
    written = hooks.trace.local.memory.written_now()
    try:
        functions = [key] if type(key) is FunctionType else []
        with nothing_done(hooks.trace, hooks.variables((), *functions)):
            return hooks.call(hooks.where, in_python.BEST_OF[function], key, counted.item,
                              counted.count, first)
    except UnsupportedError:
        hooks.trace.local.memory.restore(written)
        return UNBOUND


def chosen(trace: Trace, condition: Any, a: TracedArray, b: TracedArray) -> Any:
    """``a if condition else b`` for scalars, in the dtype NumPy promotes them to."""
    is_weak = a.type.is_weak and b.type.is_weak
    dtype = np.result_type(*[
        v.dtype.type(0).item() if v.type.is_weak else v.dtype for v in (a, b)])
    kind = "weak" if is_weak else None
    if of_other_dtypes(a.type, b.type, True):
        raise user_error(
            TypeError, f"one of two numbers whose dtype data decides: {a.dtype} or {b.dtype}",
            trace.loc, "convert both to one dtype")
    for number in (a, b):
        if number.type.is_weak and not is_weak:
            check_holds(trace, number.value, dtype)
    values = [cast(trace, v.value, dtype, kind) for v in (a, b)]
    result = trace.emit("Where", condition.value, *values, kind="weak" if is_weak else "scalar")
    return from_value(trace, result)


_extremum(builtins.min, np.less, in_python.smallest)
_extremum(builtins.max, np.greater, in_python.largest)


@_of_items(builtins.sum, in_python.total)
def _sum(hooks: TracingHooks, iterable: Any, /, start: Any = 0) -> Any:
    total = start
    for item in iterable:
        total = hooks.binop(hooks.where, "add", total, item)
    return total
