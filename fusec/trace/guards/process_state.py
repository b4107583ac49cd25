"""Guards on state of the process that a program reads: it is read again at each call.

Context variables, NumPy's error state and print options, the environment, and library functions
that the program uses, which tests may replace.
"""

from __future__ import annotations

import builtins
import locale
import os
import sys
import weakref
from collections.abc import (
    Collection,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    ValuesView,
)
from contextvars import ContextVar
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from fusec.core.code_roles import is_ours

from ..facts.code_names import globals_in
from ..source.source import HOOKS_NAME
from ..values.trace import Trace
from .guard import Guard
from .places import Global
from .relations import SameCode

_READERS: frozenset[Any] = frozenset({
    np.geterr, np.get_printoptions, np.getbufsize, sys.getrecursionlimit, sys.getswitchinterval,
    os.getenv, os.getcwd, locale.getlocale, locale.localeconv})
ENVIRONMENT = type(os.environ)
_READING = frozenset({"get", "__getitem__", "__contains__", "keys", "values", "items", "copy"})


def is_decimal(x: Any) -> bool:
    """Whether it is a decimal, or a function or class of module `decimal`."""
    if isinstance(x, ModuleType):  # which may have a `__getattr__` of its own
        return False
    return "decimal" in (type(x).__module__, getattr(x, "__module__", None))


def reads_state(fn: Any) -> bool:
    """Whether a call of ``fn`` reads state of the process that a guard can compare."""
    owner = getattr(fn, "__self__", None)
    if type(fn) is weakref.ref:
        return True
    if type(owner) is ContextVar:
        return bool(fn.__name__ == "get")
    if type(owner) is ENVIRONMENT:
        return getattr(fn, "__name__", "") in _READING
    return isinstance(fn, FunctionType | type(len)) and fn in _READERS


def guarded_call(trace: Trace, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``fn(*args, **kwargs)``, with a guard that the answer stays the same."""
    owner = getattr(fn, "__self__", None)
    name = owner.name if type(owner) is ContextVar else getattr(fn, "__qualname__", str(fn))
    title = f"{name}({', '.join(map(repr, args))})"
    key = id(fn) if owner is None else id(owner), f"{title} {kwargs}"
    if key not in trace.world.guards:
        trace.world.guards[key] = Guard(title, title, partial(_answer, fn, args, kwargs))
    return fn(*args, **kwargs)


def _answer(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        answer = fn(*args, **kwargs)
    except (LookupError, ValueError) as error:
        return type(error)
    return list(answer) if isinstance(answer, KeysView | ValuesView | ItemsView) else answer


# -------------------------------------------------------------------------------- what is replaced


def note_decimals(trace: Trace) -> None:
    """Guard the decimal context: decimals are computed with its precision and rounding."""
    if (0, "decimal") not in trace.world.guards:
        title = "the decimal context"
        trace.world.guards[0, "decimal"] = Guard(title, title, _context)


def _context() -> tuple[Any, ...]:
    context = sys.modules["decimal"].getcontext()
    traps = tuple(context.traps.values())
    return (context.prec, context.rounding, context.Emin, context.Emax, context.capitals,
            context.clamp, *traps)


def note_library(trace: Trace, module: ModuleType, name: str) -> None:
    """Guard a library's function that the program uses: tests may replace it, fusec's less so."""
    key = id(module), name
    if is_ours(vars(module)):
        return
    if trace.active and name in vars(module) and key not in trace.world.guards:
        title = f"{module.__name__}.{name}"
        trace.world.guards[key] = Guard(title, title, Global(vars(module), name), is_quiet=True)


def builtin_guards(functions: Iterable[FunctionType]) -> Iterator[Guard]:
    """Guards that builtins which the program's functions use are not replaced or shadowed by
    globals."""
    noted: set[tuple[int, str]] = set()
    for fn in functions:
        scope = fn.__globals__
        for name in () if is_ours(scope) else globals_in(fn.__code__):
            if name in scope or (id(scope), name) in noted or not hasattr(builtins, name):
                continue
            noted.add((id(scope), name))
            yield Guard(name, f"{name}, which is no global", Global(scope, name), is_quiet=True)
            if (0, name) not in noted:
                noted.add((0, name))
                yield Guard(name, f"the builtin {name}", Global(vars(builtins), name),
                            is_quiet=True)


def code_guards(
    functions: Iterable[FunctionType], entry: Collection[FunctionType]
) -> Iterator[Guard]:
    """Guards on the code of the program's functions, except those that it defines itself, and
    fusec's; those of the ``entry`` are compared by the launcher."""
    for fn in dict.fromkeys(functions):
        if HOOKS_NAME not in fn.__code__.co_freevars and not is_ours(fn.__globals__):
            yield Guard(fn.__name__, f"the code of {fn.__name__}", weakref.ref(fn),
                        SameCode(fn.__code__), is_native=fn in entry, is_quiet=True)
