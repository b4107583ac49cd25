"""Values that are computed at first use: attributes, and facts about one immutable object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
S = TypeVar("S")


class lazy(Generic[T]):
    """A property that is computed once: ``functools.cached_property`` of Python 3.12 and later.

    Python 3.11's holds a lock, which a forked child could find held for ever.  Two threads may both
    compute the value; both then get the one that was stored first.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> lazy[T] | T:
        if instance is None:
            return self
        value = self.function(instance)
        return instance.__dict__.setdefault(self.name, value)


def asked_once(function: Callable[[S], T]) -> Callable[[S], T]:
    """A function of an immutable object, called once: the object's ``__dict__`` keeps the answer.

    For facts that the object's class cannot know, as its module may not import their functions.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def ask(x: S) -> T:
        cached = x.__dict__
        if name not in cached:
            cached.setdefault(name, function(x))
        return cached[name]

    return ask
