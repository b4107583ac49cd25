"""Jitted methods: each instance's plans are its own, and freed with it."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Function = TypeVar("Function")
MAX_STRONG = 16  # instances that cannot be referenced weakly, whose traces are kept


class Target(NamedTuple):
    """The Python function that is compiled; for a method with a getter of the instance."""

    fn: Callable[..., Any]
    receiver: Callable[[], Any] | None
    name: str

    @property
    def python_function(self) -> Callable[..., Any]:
        """The function as written; for a method, bound to its instance.

        Raises ``ReferenceError`` where that is gone.
        """
        if self.receiver is None:
            return self.fn
        instance = self.receiver()
        if instance is None:
            raise ReferenceError(f"the instance whose method {self.fn.__qualname__} this is, "
                                 f"is gone")
        method: Callable[..., Any] = self.fn.__get__(instance, type(instance))
        return method

    @property
    def line(self) -> str | None:
        """Where it is defined, if it has a source."""
        code = getattr(self.fn, "__code__", None)
        return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


class Jitted(Protocol):
    """A function that `jit` made."""

    __name__: str
    __qualname__: str
    _fn: Callable[..., Any]
    _receiver: Callable[[], Any] | None

    @property
    def python_function(self) -> Callable[..., Any]: ...
    @property
    def options(self) -> dict[str, Any]: ...
    def __init__(self, fn: Callable[..., Any], **options: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


def method_name(function: Jitted) -> str:
    """The name of a method's function in the instance's class, for `pickle`.

    Raises ``pickle.PicklingError`` where that is another function.
    """
    owner, name = type(function._receiver()), function.__name__  # type: ignore[misc]
    if getattr(getattr(owner, name, None), "_fn", None) is not function._fn:
        raise pickle.PicklingError(f"{function!r} cannot be pickled: {owner.__name__}.{name} is "
                                   f"another function")
    return name


class Method:
    """A jitted method bound to an instance, which it keeps alive; otherwise its `Function`."""

    __slots__ = ("__self__", "function")

    def __init__(self, function: Jitted, instance: Any) -> None:
        self.function = function
        self.__self__ = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """In other processes it is the method of the instance, which goes as it goes by itself."""
        return getattr, (self.__self__, method_name(self.function))

    def __copy__(self) -> Method:
        return self

    def __repr__(self) -> str:
        return f"<bound {self.function!r}>"


class Kin:
    """State that the functions of one method's instances share: traces, without the instances that
    they were made for, and ints that traces need.  See `fusec.compiled.instances.kin`."""

    __slots__ = ("by_key", "open", "pinned")

    def __init__(self) -> None:
        self.by_key: dict[Any, list[Any]] = {}
        self.open: list[Any] = []
        self.pinned: frozenset[str] = frozenset()

    def clear(self) -> None:
        """Forget every trace."""
        self.by_key, self.open = {}, []

    def kept(self) -> list[Any]:
        """The traces, oldest first."""
        return [kept for group in [*self.by_key.values(), self.open] for kept in reversed(group)]


class BoundFunctions(Generic[Function]):
    """The `Function` of one method for each instance that it was looked up on."""

    __slots__ = ("_functions",)

    def __init__(self) -> None:
        self._functions: dict[int, tuple[Callable[[], Any], Function]] = {}

    def of(self, instance: Any, make: Callable[[Callable[[], Any]], Function]) -> Function:
        """The one of this instance; ``make`` gives it for a receiver, which returns the instance.
        """
        entry = self._functions.get(id(instance))
        if entry is None or entry[0]() is not instance:
            receiver = self._reference(instance)
            entry = self._functions[id(instance)] = (receiver, make(receiver))
        return entry[1]

    def every(self) -> list[Function]:
        """Those of the instances that are alive."""
        return [function for _, function in list(self._functions.values())]

    def function_of(self, instance: Any) -> Function | None:
        """The one of this instance, if it was looked up."""
        receiver, function = self._functions.get(id(instance), (None, None))
        return function if receiver is not None and receiver() is instance else None

    def _reference(self, instance: Any) -> Callable[[], Any]:
        """A weak reference that drops the instance's traces with it; strong where it must be."""
        key, entries = id(instance), self._functions
        try:
            return weakref.ref(instance, lambda _: entries.pop(key, None))
        except TypeError:  # instances with __slots__ and no __weakref__
            strong = [k for k, (r, _) in entries.items() if not isinstance(r, weakref.ref)]
            for old in strong[: max(0, len(strong) - MAX_STRONG + 1)]:
                del entries[old]
            return lambda: instance
