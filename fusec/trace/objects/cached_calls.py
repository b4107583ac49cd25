"""Functions behind ``functools.lru_cache``: called as they are, once for equal arguments.

Only Python knows the cache's entry for given arguments, so it is asked at each call: an array
that it gives is an input of the graph, everything else a constant under a guard.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.symbolic_sizes import plain

from ..facts.constant_values import constant_value
from ..facts.refusals import is_compiled
from ..guards.guard import Guard
from ..guards.measures import LayoutMeasure
from ..guards.places import Places
from ..places.outside_memory import captured
from ..values.array import TracedArray
from ..values.trace import untraced
from .object_reads import instances
from .tracing_hooks import TracingHooks

_CACHED: type = type(functools.lru_cache(len))
_NUMBERS = (int, float, complex, str, bytes, np.generic)


def cached_behind(fn: Any) -> Any:
    """The cached function that ``fn`` is, or whose bound method it is; None for all others."""
    function = fn.__func__ if type(fn) is MethodType else fn
    return function if type(function) is _CACHED else None


def call_cached(hooks: TracingHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The cache's entry for these arguments.

    Raises ``TypeError`` for arrays, as hashing them does, and `ConcreteValueError` for numbers that
    only the run knows.
    """
    trace, function = hooks.trace, cached_behind(fn)
    if type(fn) is MethodType:
        args = (fn.__self__, *args)
    if any(id(x) in trace.local.objects for x in instances((args, kwargs))):
        # The object is a new one at each call, which no cache knows.
        return hooks.call(hooks.where, function.__wrapped__, *args, **kwargs)
    name = getattr(function, "__qualname__", "a cached function")
    args = tuple(_key(name, x) for x in args)
    kwargs = {k: _key(name, x) for k, x in kwargs.items()}
    _check_unassigned(hooks, name, (args, kwargs))

    def read() -> Any:
        with untraced():
            return function(*args, **kwargs)

    marks = [_mark(x) for x in (*args, *kwargs.items())]
    return _result(hooks, f"{name}(...)", (id(function), repr(marks)), read)


def _mark(x: Any) -> Any:
    """Tells arguments apart that a cache does; which stay alive in the guard."""
    if type(x) is tuple:
        return tuple(map(_mark, x))
    return (type(x).__name__, repr(x) if isinstance(x, _NUMBERS) else id(x))


def _key(name: str, x: Any) -> Any:
    """An argument as the cache compares it."""
    if type(x) in (list, tuple):
        return type(x)(_key(name, item) for item in x)
    if type(x) is not TracedArray or x.is_array:
        return plain(x) if type(x) is not TracedArray else hash(x)  # which raises
    constant = constant_value(x.value)
    return x.concrete(f"a number that the cache of {name} looks up", "call it before the call, and "
                      "pass the result") if constant is None else constant


def _check_unassigned(hooks: TracingHooks, name: str, args: Any) -> None:
    """The function would see objects as before the call."""
    for obj in instances(args):
        for place in hooks.trace.part(Places).attributes_of(obj):
            raise unsupported(
                f"calling {name}, whose results are cached, with an object whose attribute "
                f"{place.name!r} the program assigns", loc=hooks.loc,
                cure=f"call {name} first, or without its cache: {name}.__wrapped__")


def _result(hooks: TracingHooks, title: str, key: tuple[int, str], read: Callable[[], Any]) -> Any:
    value, trace = read(), hooks.trace
    is_array = type(value) is np.ndarray and is_compiled(value.dtype)
    if key not in trace.world.guards:
        measure = LayoutMeasure(value) if is_array else None
        trace.world.guards[key] = Guard(title, title, read, measure)
    if not is_array:
        return value
    trace.feeds.readers.setdefault(id(value), read)
    return captured(trace, value, read, title)
