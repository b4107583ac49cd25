"""Exceptions that the program catches: ``try``, `contextlib.suppress` and managers like it.

What is raised while tracing, Python's handlers catch as ever, but not what fusec raises on its own
account: that the program cannot be traced.  What compiled code raises leaves the compiled function,
and no handler inside sees it; so nodes made under a handler know it by their place (`CaughtLoc`),
and an exception that it would have caught says so (`fusec.errors.located`).
"""

from __future__ import annotations

import contextlib
import dis
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from fusec.errors import ConcreteValueError, InternalError, TraceError, UnsupportedError
from fusec.ir.dims import UndecidedSizeError
from fusec.ir.graph import CaughtLoc, Loc

from ..facts.trees import leaves_in
from ..source.errors import SourceUnavailable
from .assigned_names import AssignedLater

# Not the program's: no handler of its own may catch them.
REFUSALS = (UnsupportedError, ConcreteValueError, InternalError, TraceError, SourceUnavailable,
            UndecidedSizeError, AssignedLater)
Classes = tuple[type[BaseException], ...]
Handlers = list[tuple[Classes, Loc]]  # around what is traced, the innermost last


@contextlib.contextmanager
def catching(handlers: Handlers, classes: Classes, loc: Loc) -> Iterator[None]:
    """Nodes made inside are under a handler of these exceptions."""
    handlers.append((classes, loc))
    try:
        yield
    finally:
        handlers.pop()


def classes_of(caught: Callable[[], Any] | None) -> Classes:
    """What ``except X`` names; Python looks at it when something is raised, here it is before."""
    try:
        found = (BaseException,) if caught is None else caught()
    except Exception:
        return (BaseException,)
    flat = tuple(leaves_in(found, (tuple,), with_derived=True))
    return flat if all(issubclass(kind, BaseException) for kind in flat) else ()


def under_handlers(handlers: Handlers, loc: Loc | None) -> Loc | None:
    """The place, with the handlers around it."""
    if loc is None or not handlers:
        return loc
    made = CaughtLoc(*loc)
    made.handlers = tuple(reversed(handlers))
    return made


class Suppressing:
    """`contextlib.suppress` as a program enters it."""

    def __init__(self, handlers: Handlers, found: contextlib.suppress, loc: Loc) -> None:
        classes: Any = vars(found)["_exceptions"]
        self.found, self.handler = found, catching(handlers, classes, loc)

    def __enter__(self) -> Any:
        self.handler.__enter__()
        return self.found.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool | None:
        self.handler.__exit__(None, None, None)
        if isinstance(error, REFUSALS):
            return False
        return self.found.__exit__(kind, error, traceback)


def may_suppress(method: Any) -> bool:
    """Whether this ``__exit__`` returns anything but None and False."""
    function = getattr(method, "__func__", method)
    if not isinstance(function, FunctionType):
        return False
    before = None
    for step in dis.get_instructions(function):
        if step.opname == "RETURN_CONST" and step.argval not in (None, False):
            return True
        if step.opname == "RETURN_VALUE" and not (
                before is not None and before.opname == "LOAD_CONST"
                and before.argval in (None, False)):
            return True
        before = step
    return False
