"""Exceptions that the program catches: ``try``, `contextlib.suppress` and managers like it.

Exceptions raised while tracing, Python's handlers catch as ever, but not refusals of fusec's own,
that the program cannot be traced.  Those of compiled code leave the compiled function, and no
handler inside sees them; so nodes made under a handler know it by their place (`CaughtLoc`), and an
exception that it would have caught says so (`fusec.errors.located`).
"""

from __future__ import annotations

import contextlib
import dis
from collections.abc import Callable, Iterator
from types import FunctionType, TracebackType
from typing import Any

from fusec import errors
from fusec.core.locations import CaughtLoc
from fusec.core.tracers import MadeErrors, listening
from fusec.ir.graph import Loc, Value
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.walks import nodes_behind

from ..facts.trees import leaves_in
from ..source.errors import SourceUnavailable
from .assigned_names import AssignedLater

# Not the program's: no handler of its own may catch them.
REFUSALS = (errors.UnsupportedError, errors.ConcreteValueError, errors.InternalError,
            errors.TraceError, SourceUnavailable, UndecidedSizeError, AssignedLater)
Classes = tuple[type[BaseException], ...]
_RAISE = dis.opmap["RAISE_VARARGS"]
Handlers = list[tuple[Classes, Loc]]  # around what is traced, the innermost last


@contextlib.contextmanager
def leaving_refusals() -> Iterator[None]:
    """Refusals leave the block also where code of the program's that Python runs as it is, a
    ``finally`` that is left, or a library, catches them.

    An attempt at a loop that is given up counts, too: the next one may not come there.
    """
    outer, listening.made = listening.made, MadeErrors()
    try:
        yield
        _raise_kept(listening.made)
    except REFUSALS as error:
        if outer is not None:
            outer.note(error)
        raise
    except Exception:
        _raise_kept(listening.made)
        raise
    finally:
        listening.made = outer


def _raise_kept(made: MadeErrors) -> None:
    for error in made.kept():
        if isinstance(error, REFUSALS):
            raise error from None


@contextlib.contextmanager
def catching(trace: Any, classes: Classes, loc: Loc) -> Iterator[None]:
    """Nodes made inside are under a handler of these exceptions."""
    trace.handlers.append((classes, loc))
    try:
        yield
    except Exception as error:
        check_caused(trace, error)
        raise
    finally:
        trace.handlers.pop()


def check_caused(trace: Any, error: BaseException) -> None:
    """Refuse an exception of the program's that a symbolic number may have caused, which is no int
    to NumPy's C code: a trace for the call's own sizes says whether there is one."""
    is_certain = isinstance(error, REFUSALS) or (
        is_raised_there(error) and not isinstance(error, errors.FusecError)) or (
        str(error) in _OF_PLAIN)
    if trace.builder.is_symbolic and not is_certain:
        raise errors.unsupported(
            "an exception in a trace for several sizes", loc=trace.loc) from error


# Of a symbol Python gives another name, or says the same.
_OF_PLAIN = frozenset((
    "'int' object is not iterable", "object of type 'int' has no len()",
    "issubclass() arg 1 must be a class"))


def check_decided(trace: Any, error: BaseException, *values: Value) -> None:
    """Refuse an exception of the run under a handler for it where sizes or ints of the call alone
    decide ``values``: in a trace that knows those it is raised while tracing, and caught."""
    if not any(isinstance(error, classes) for classes, _ in trace.handlers):
        return
    kinds = {_kind_of(trace, node.outputs[0]) for node in nodes_behind(values)
             if node.op == "Input"}
    if kinds <= {_INT, _MADE} and (_INT in kinds or trace.builder.is_symbolic):
        raise errors.unsupported(f"catching {type(error).__name__}, which sizes decide",
                                 loc=trace.loc, cure="test for it before it happens")


_INT, _MADE, _DATA = range(3)


def _kind_of(trace: Any, given: Value) -> int:
    """Whether an input is an int argument, which may be known, or an array made of such."""
    feeds = trace.feeds
    at = next((i for i, x in enumerate(feeds.inputs) if x == given), None)
    if at is None:  # what a branch or loop is given
        return _DATA
    if at not in feeds.outside:
        return _INT if given.type.kind != "array" and given.dtype.kind == "i" else _DATA
    storage, first = feeds.storages[at], len(feeds.inputs) - len(feeds.captured)
    is_constant = storage is not None and storage.is_constant
    return _MADE if is_constant or type(feeds.captured[at - first]) is Computed else _DATA


def is_raised_there(error: BaseException) -> bool:
    """Whether a ``raise`` made it, or ``sys.exit``."""
    where = raised_at(error)
    return where is not None and (
        isinstance(error, SystemExit) or where.tb_frame.f_code.co_code[where.tb_lasti] == _RAISE)


def raised_at(error: BaseException) -> TracebackType | None:
    """The innermost part of its traceback."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    return where


def classes_of(caught: Callable[[], Any] | None) -> Classes:
    """The classes that ``except X`` names; Python looks at it when raising, here it is before."""
    try:
        classes = (BaseException,) if caught is None else caught()
    except Exception:
        return (BaseException,)
    flat = tuple(leaves_in(classes, (tuple,), with_derived=True))
    return flat if all(issubclass(kind, BaseException) for kind in flat) else ()


def under_handlers(handlers: Handlers, loc: Loc | None) -> Loc | None:
    """The place, with the handlers around it."""
    if loc is None or not handlers:
        return loc
    place = CaughtLoc(*loc)
    place.handlers = tuple(reversed(handlers))
    return place


class Suppressing:
    """`contextlib.suppress` as a program enters it."""

    def __init__(self, trace: Any, found: contextlib.suppress, loc: Loc) -> None:
        classes: Any = vars(found)["_exceptions"]
        self.found, self.handler = found, catching(trace, classes, loc)

    def __enter__(self) -> Any:
        self.handler.__enter__()
        return self.found.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool | None:
        self.handler.__exit__(kind, error, traceback)
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
