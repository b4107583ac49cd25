"""A NumPy function with another module in NumPy's place."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def with_numpy(
    f: Callable[..., Any], xp: Any, wrap: Callable[[Any], Any] = lambda g: g, **replaced: Any
) -> Callable[..., Any]:
    """``f`` with ``np`` standing for ``xp`` in it and in its module's functions it calls.

    ``wrap`` is applied to each of those functions (a compiler's decorator, say); ``replaced``
    puts other functions in the place of those of that name.
    """
    assert isinstance(f, FunctionType), f"internal error: {f!r} is no Python function"
    scope = dict(f.__globals__)
    scope["np"] = xp
    for key, value in f.__globals__.items():
        if isinstance(value, FunctionType) and value.__module__ == f.__module__:
            copy = FunctionType(value.__code__, scope, key, value.__defaults__, value.__closure__)
            scope[key] = wrap(copy)
    scope.update(replaced)
    return scope[f.__name__]
