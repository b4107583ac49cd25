"""Handlers for calls with a traced argument; all other calls run as they would without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fusec.code_roles import ON_BEHALF

from ..convert.call_table import CallTable
from ..convert.callbacks import CALLS
from .array import TracedArray

FUSEC_ROLE = ON_BEHALF

TABLE = CallTable(CALLS)  # what converted code calls in place of what knows no traced values


def is_traced_inside(items: Any) -> bool:
    if isinstance(items, (list, tuple)) and type(items) is not TracedArray:
        return any(is_traced_inside(i) for i in items)
    if type(items) is slice:
        return any(type(bound) is TracedArray for bound in (items.start, items.stop, items.step))
    return type(items) is TracedArray


def any_traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is traced, or a sequence that holds a traced value."""
    return is_traced_inside(args) or is_traced_inside(tuple(kwargs.values()))


def when_traced(table: CallTable, function: Any) -> Callable[..., Any]:
    """Registers ``handler(hooks, *args, **kwargs)`` in ``table``, as a decorator.

    Calls without a traced argument go to the handler that stood there, or to ``function``.
    """
    previous = table.find(function)

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        def call(hooks: Any, *args: Any, **kwargs: Any) -> Any:
            if any_traced(args, kwargs):
                return handler(hooks, *args, **kwargs)
            if previous is not None:
                return previous[0](hooks, *previous[1], *args, **kwargs)
            return function(*args, **kwargs)

        table.register(function, call)
        return handler

    return decorate


def everywhere(function: Any) -> Callable[..., Any]:
    """Registers for all calls, those without traced arguments too."""
    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.register(function, handler)
        return handler

    return decorate


when_called = partial(when_traced, TABLE)

__all__ = ["TABLE", "any_traced", "everywhere", "when_called", "when_traced"]
