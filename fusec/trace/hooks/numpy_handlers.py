"""Functions of NumPy that do not ask traced values: those that make arrays, or go through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.code_roles import ON_BEHALF

from ..library.failures import guarded
from ..numpy.functions import CREATION, call_function
from ..values.array import TracedArray
from ..values.handlers import TABLE, any_traced, when_called
from .attributes import AttributeHooks

FUSEC_ROLE = ON_BEHALF

_ALWAYS_TRACED = (np.zeros, np.ones, np.empty, np.full, np.empty_like)


def _creation(function: Callable[..., Any], handler: Callable[..., Any]) -> None:
    always = function in _ALWAYS_TRACED

    def call(hooks: AttributeHooks, *args: Any, **kwargs: Any) -> Any:
        if always and hooks.trace.active and args:
            args = (hooks.as_index(args[0]), *args[1:])
        if hooks.trace.active and (always or any_traced(args, kwargs)):
            return guarded(hooks.trace, f"np.{function.__name__}", handler, function, args, kwargs,
                           (hooks.trace,))
        return function(*args, **kwargs)

    TABLE.register(function, call)


def _iterated(function: Callable[..., Any]) -> None:
    """NumPy's dispatcher goes through the elements of the argument."""
    @when_called(function)
    def call(hooks: AttributeHooks, *args: Any, **kwargs: Any) -> Any:
        return call_function(hooks.trace, function, args, kwargs)


_iterated(np.poly)
_iterated(np.roots)


def _seen_through_dlpack(hooks: AttributeHooks, x: Any, /, **options: Any) -> Any:
    """A view whose base says what memory it shows, as that of a capsule does not."""
    if type(x) is TracedArray:
        return call_function(hooks.trace, np.from_dlpack, (x,), options)
    found = np.from_dlpack(x, **options)
    if type(x) is not np.ndarray or not np.may_share_memory(x, found):
        return found
    shown = x[...]
    shown.flags.writeable = found.flags.writeable
    return shown


for _function, _handler in CREATION.items():
    _creation(_function, _handler)
TABLE.register(np.from_dlpack, _seen_through_dlpack)
