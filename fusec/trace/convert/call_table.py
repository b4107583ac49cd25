"""Which callables the tracer handles itself, found by identity."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinMethodType, MethodType, MethodWrapperType, ModuleType
from typing import Any

# Called instead of a callable: ``handler(hooks, *args, **kwargs)``; for a method, with ``self``.
Handler = Callable[..., Any]


class CallTable:
    """Callables and their handlers.  Keys need not be hashable; they are kept alive.

    A method is registered through its class: ``np.ndarray.sum`` answers for ``x.sum`` with
    ``x`` as the first argument.
    """

    def __init__(self, parent: CallTable | None = None) -> None:
        """A table that falls back on ``parent``, also for its later handlers."""
        self._parent = parent
        self._entries: dict[int, tuple[Any, Handler]] = dict(parent._entries) if parent else {}

    def register(self, fn: Any, handler: Handler) -> None:
        """``handler`` is called for ``fn`` from now on, instead of an earlier one."""
        self._entries[id(fn)] = (fn, handler)

    def handles(self, *fns: Any) -> Callable[[Handler], Handler]:
        """`register` as a decorator, for one or several callables."""

        def decorate(handler: Handler) -> Handler:
            for fn in fns:
                self.register(fn, handler)
            return handler

        return decorate

    def _entry(self, fn: Any) -> tuple[Any, Handler] | None:
        table: CallTable | None = self
        while table is not None:
            if (entry := table._entries.get(id(fn))) is not None:
                return entry
            table = table._parent
        return None

    def __contains__(self, fn: Any) -> bool:
        return self.find(fn) is not None

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, fn: Any) -> tuple[Handler, tuple[Any, ...]] | None:
        """The handler, and its arguments before the call's: nothing, or ``self``."""
        entry = self._entry(fn)
        if entry is not None:
            return entry[1], ()
        kind = type(fn)
        if kind is MethodType:
            entry, receiver = self._entry(fn.__func__), fn.__self__
        elif kind is BuiltinMethodType or kind is MethodWrapperType:
            receiver = fn.__self__
            if receiver is None or isinstance(receiver, ModuleType):
                return None
            entry = self._entry(getattr(type(receiver), fn.__name__, None))
        return None if entry is None else (entry[1], (receiver,))
