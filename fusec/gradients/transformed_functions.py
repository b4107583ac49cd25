"""Functions made of functions: `grad` and its like give a jitted function of its own."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import numpy as np

from fusec import config
from fusec.dispatch.function import Function, Method
from fusec.errors import user_error, users_own
from fusec.trace.values.trace import Trace, current

Run = Callable[[Trace, tuple[Any, ...], dict[str, Any]], Any]
_KEPT = "__fusec_derivatives__"


class Transformed:
    """The function traced in the place of ``f``: ``run`` of the trace and a call's arguments.

    ``__fusec_made_by__``: a function and its arguments that make the jitted function again.
    """

    __fusec_made_by__: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    def __init__(self, name: str, f: Callable[..., Any], run: Run, signature: Any = None) -> None:
        python = f.python_function if isinstance(f, Function | Method) else f
        self.run = run
        self.__name__ = self.__qualname__ = f"{name}_{getattr(python, '__name__', 'function')}"
        self.__doc__ = f"The {name} of {getattr(python, '__qualname__', python)}."
        self.__signature__ = signature or _signature(python)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None:
            raise user_error(
                TypeError, f"{self.__name__} has no version that NumPy runs, to compare with", None,
                "measure the function itself, fusec.benchmark(f, ...), or time calls of its "
                "derivative; python -m fusec bench --suite gradients compares with JAX")
        return self.run(trace, args, kwargs)


def _signature(python: Callable[..., Any]) -> inspect.Signature:
    if not isinstance(python, np.ufunc):  # whose parameters with defaults exclude each other
        with suppress(TypeError, ValueError):  # of other functions in C nothing is known
            return inspect.signature(python)
    return inspect.signature(lambda *args, **kwargs: None)


def check_callable(name: str, f: Any) -> None:
    """Raise ``TypeError`` for objects that cannot be called, and so not differentiated."""
    if not callable(f):
        raise users_own(TypeError(f"fusec.{name} needs a function, got {type(f).__name__}"))


def check_sequences(name: str, **given: Any) -> None:
    """Raise ``TypeError`` where a sequence of one value for each argument is a value itself."""
    for what, values in given.items():
        if not isinstance(values, (tuple, list)):
            raise user_error(
                TypeError, f"fusec.{name}: {what} must be a tuple, one for each argument", None,
                f"put the one {what[:-1]} into a tuple: (x,)",
                values=[(what, type(values).__name__)])


def transformed(
    name: str, f: Callable[..., Any], run: Run, key: Hashable, signature: Any = None,
    made_by: tuple[Callable[..., Any], tuple[Any, ...]] | None = None,
    kind: type[Function] = Function,
) -> Function:
    """The jitted function that does ``run`` where ``f`` would be called.

    The same one for the same ``f`` and ``key``, as long as ``f`` lives: `grad` in a loop of Python
    compiles once.  It takes over the options of an ``f`` that is jitted.  Pickled, it is the call
    ``made_by``.
    """
    table, key = _table(f), (key, config.gradient_memory)
    function: Function | None = table.get((name, key))
    if function is None:
        options: dict[str, Any] = {}
        jitted = f.function if isinstance(f, Method) else f
        if isinstance(jitted, Function) and signature is None:
            options = {k: v for k, v in jitted.options.items() if k not in ("fallback", "like")}
        elif isinstance(jitted, Function):
            options = {"fp": jitted.fp, "check_indices": jitted.check_indices,
                       "device": jitted.device}
        python = Transformed(name, f, run, signature)
        python.__fusec_made_by__ = made_by
        function = table[name, key] = kind(python, **options)
    return function


class _Kept:
    """The functions made of ``f``, an attribute of it.

    Attributes of a function are copied to its wrappers, and travel with it where it is pickled by
    value: there nothing has been made yet.
    """

    def __init__(self, f: Callable[..., Any] | None = None) -> None:
        self.f = None if f is None else weakref.ref(f)
        self.table: dict[Any, Function] = {}

    def is_of(self, f: Callable[..., Any]) -> bool:
        return self.f is not None and self.f() is f

    def __reduce__(self) -> tuple[Any, ...]:
        return _Kept, ()


def _table(f: Callable[..., Any]) -> dict[Any, Function]:
    """The functions made of ``f``, kept with it: nothing that is not collected with it."""
    kept: Any = getattr(f, _KEPT, None)
    if isinstance(kept, _Kept) and kept.is_of(f):
        return kept.table
    with suppress(AttributeError, TypeError):  # methods, NumPy's functions: made each time
        kept = _Kept(f)
        setattr(f, _KEPT, kept)
        return kept.table
    return {}
