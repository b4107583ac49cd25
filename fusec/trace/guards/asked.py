"""State of the process that a program asks for: asked again at each call, and compared.

Context variables, NumPy's error state and print options, the environment, and the functions that
the program uses of libraries, which may be replaced.
"""

from __future__ import annotations

import builtins
import dis
import functools
import locale
import os
import sys
import weakref
from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    ValuesView,
)
from contextvars import ContextVar
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..source.source import HOOKS_NAME
from .guard import MISSING, Guard
from .measures import ANY

if TYPE_CHECKING:
    from ..values.trace import Trace

_ASKING: frozenset[Any] = frozenset({
    np.geterr, np.get_printoptions, np.getbufsize, sys.getrecursionlimit, sys.getswitchinterval,
    os.getenv, os.getcwd, locale.getlocale, locale.localeconv})
ENVIRONMENT = type(os.environ)
_READING = frozenset({"get", "__getitem__", "__contains__", "keys", "values", "items", "copy"})


def is_of_decimals(x: Any) -> bool:
    """Whether it is a decimal, or a function or class that makes one or says how they are made."""
    return "decimal" in (type(x).__module__, getattr(x, "__module__", None))


def is_asking(fn: Any) -> bool:
    """Whether a call asks for state of the process that can be compared."""
    owner = getattr(fn, "__self__", None)
    if type(fn) is weakref.ref:
        return True
    if type(owner) is ContextVar:
        return bool(fn.__name__ == "get")
    if type(owner) is ENVIRONMENT:
        return getattr(fn, "__name__", "") in _READING
    return isinstance(fn, FunctionType | type(len)) and fn in _ASKING


def asked(trace: Trace, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``fn`` says now; raises what it raises."""
    owner = getattr(fn, "__self__", None)
    name = owner.name if type(owner) is ContextVar else getattr(fn, "__qualname__", str(fn))
    title = f"{name}({', '.join(map(repr, args))})"
    key = id(fn) if owner is None else id(owner), f"{title} {kwargs}"
    if key not in trace.world.guards:
        trace.world.guards[key] = Guard(title, title, partial(_answer, fn, args, kwargs))
    return fn(*args, **kwargs)


def _answer(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        found = fn(*args, **kwargs)
    except (LookupError, ValueError) as error:
        return type(error)
    return list(found) if isinstance(found, KeysView | ValuesView | ItemsView) else found


# -------------------------------------------------------------------------------- what is replaced


def note_decimals(trace: Trace) -> None:
    """Decimals are computed: their precision and rounding must be the same at each call."""
    if (0, "decimal") not in trace.world.guards:
        what = "the decimal context"
        trace.world.guards[0, "decimal"] = Guard(what, what, _context)


def _context() -> tuple[Any, ...]:
    found = sys.modules["decimal"].getcontext()
    traps = tuple(found.traps.values())
    return (found.prec, found.rounding, found.Emin, found.Emax, found.capitals, found.clamp, *traps)


class OwnGuard(Guard):
    """Something that hardly ever changes, of which reports need not tell."""

    __slots__ = ()


def note_library(trace: Trace, module: ModuleType, name: str) -> None:
    """The program uses something of a library, in whose place tests put something else."""
    key = id(module), name
    if trace.active and name in vars(module) and key not in trace.world.guards:
        place = Entry(vars(module), name)
        title = f"{module.__name__}.{name}"
        trace.world.guards[key] = OwnGuard(title, title, place)


class Entry:
    """A name in a namespace; called, it gives what is there."""

    __slots__ = ("name", "scope")

    def __init__(self, scope: dict[str, Any], name: str) -> None:
        self.scope, self.name = scope, name

    def __call__(self) -> Any:
        return self.scope.get(self.name, MISSING)

    def expression(self, bind: Callable[[Any], str]) -> str:
        """The same as text."""
        return f"{bind(self.scope.get)}({self.name!r}, {bind(MISSING)})"


def builtin_guards(functions: Iterable[FunctionType]) -> Iterator[Guard]:
    """The builtins that functions use must go on to be these, under their names."""
    known: set[tuple[int, str]] = set()
    for fn in functions:
        scope = fn.__globals__
        for name in _globals_in(fn.__code__):
            if name in scope or (id(scope), name) in known or not hasattr(builtins, name):
                continue
            known.add((id(scope), name))
            yield OwnGuard(name, f"{name}, which is no global", Entry(scope, name))
            if (0, name) not in known:
                known.add((0, name))
                yield OwnGuard(name, f"the builtin {name}", Entry(vars(builtins), name))


@functools.lru_cache(1000)
def _globals_in(code: CodeType) -> tuple[str, ...]:
    names = {i.argval: None for i in dis.get_instructions(code)
             if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names.update(dict.fromkeys(_globals_in(inner)))
    return tuple(names)


class CodeGuard(OwnGuard):
    """A function whose code must not be replaced."""

    __slots__ = ("code", "function")

    def __init__(self, fn: FunctionType) -> None:
        self.function, self.code = weakref.ref(fn), fn.__code__
        super().__init__(fn.__name__, f"the code of {fn.__name__}", self.function, ANY)

    def holds(self) -> bool:
        fn = self.function()
        return fn is None or fn.__code__ is self.code

    def expression(self, bind: Callable[[Any], str]) -> str:
        fn = bind(None)
        return (f"(({fn} := {bind(self.function)}()) is None or {fn}.__code__ is "
                f"{bind(self.code)})")


def code_guards(
    functions: Iterable[FunctionType], entry: Collection[FunctionType]
) -> Iterator[CodeGuard]:
    """For functions of the program, less those that it makes itself; for that of the ``entry`` the
    launcher does it."""
    for fn in dict.fromkeys(functions):
        if HOOKS_NAME not in fn.__code__.co_freevars:
            guard = CodeGuard(fn)
            guard.is_native = fn in entry
            yield guard


__all__ = ["ENVIRONMENT", "CodeGuard", "OwnGuard", "asked", "builtin_guards", "code_guards",
           "is_asking", "note_library"]
