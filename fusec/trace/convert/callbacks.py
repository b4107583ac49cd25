"""Callbacks: ``map(f, …)``, ``sorted(key=f)``, ``reduce(f, …)`` call ``f`` through the hooks, which
convert or handle it as if the program had called it."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from .call_table import CallTable, Handler

CALLS = CallTable()


def _first_wrapped(fn: Any) -> Handler:
    """Calls ``fn`` with its first argument, a function (or None: ``filter``), wrapped."""

    def handler(hooks: Any, /, *args: Any, **kwargs: Any) -> Any:
        if args and args[0] is not None:
            args = (hooks.wrap(args[0]), *args[1:])
        return fn(*args, **kwargs)

    return handler


def _key_wrapped(fn: Any) -> Handler:
    """Calls ``fn`` with its ``key`` wrapped."""

    def handler(hooks: Any, /, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("key") is not None:
            kwargs["key"] = hooks.wrap_key(kwargs["key"])
        return fn(*args, **kwargs)

    return handler


_FUNCTION_FIRST: tuple[Any, ...] = (
    map, filter, functools.reduce, itertools.starmap, itertools.takewhile, itertools.dropwhile,
    itertools.filterfalse,
)
_FUNCTION_AS_KEY: tuple[Any, ...] = (sorted, min, max, list.sort)

for _fn in _FUNCTION_FIRST:
    CALLS.register(_fn, _first_wrapped(_fn))
for _fn in _FUNCTION_AS_KEY:
    CALLS.register(_fn, _key_wrapped(_fn))


@CALLS.handles(itertools.accumulate)
def _accumulate(hooks: Any, /, iterable: Any, func: Any = None, **kwargs: Any) -> Any:
    wrapped = None if func is None else hooks.wrap(func)
    return itertools.accumulate(iterable, wrapped, **kwargs)


@CALLS.handles(itertools.groupby)
def _groupby(hooks: Any, /, iterable: Any, key: Any = None) -> Any:
    return itertools.groupby(iterable, None if key is None else hooks.wrap_key(key))
