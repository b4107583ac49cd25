"""Errors of code that is called as it is, and of Python's operators, in the user's terms.

Such code sees traced values, of which it knows nothing: a question that only the run can answer
is refused with the name of the callee.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

from fusec.errors import (
    ConcreteValueError,
    FusecError,
    UnsupportedError,
    innermost_line,
    unsupported,
)
from fusec.ir.graph import Loc

from ..convert.properties import class_attribute
from ..facts.policy import stays_plain
from ..values.array import TracedArray
from ..values.trace import Trace

_KNOWN = ("numpy", "builtins", "fusec", "_operator", "operator")
_OURS = re.compile(r"'?\bTracedArray\b'?")
_NUMPYS = {"TracedArray": "numpy.ndarray", "TracedGenerator": "Generator"}


def in_numpys_words(text: str) -> str:
    """Python's message about an operand's type, with the type that the user knows."""
    return re.sub(r"\bTraced(Array|Generator)\b", lambda name: _NUMPYS[name[0]], text)


def callee_name(fn: Any) -> str:
    """``scipy.stats.zscore``: modules that users do not name are left out."""
    while isinstance(getattr(fn, "func", None), FunctionType):  # of a partial
        fn = fn.func
    owner = getattr(fn, "__self__", None)
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    module = getattr(fn, "__module__", None) or type(owner if owner is not None else fn).__module__
    parts = [p for p in str(module).split(".") if not p.startswith("_")]
    if parts[:1] == ["numpy"]:
        parts[0] = "np"
    return ".".join([*parts, name] if parts != ["builtins"] else [name])


def check_uncompiled(trace: Trace, fn: Any) -> None:
    """Raise for a function that Numba compiled, which is called with traced values."""
    if str(type(fn).__module__).partition(".")[0] == "numba" and hasattr(fn, "py_func"):
        raise unsupported(
            f"{callee_name(fn)}, which Numba compiled,", loc=trace.loc,
            cure="call the Python function that it was made of: f.py_func")


def runs_as_it_is(fn: Any) -> bool:
    """Whether no converted code runs for ``fn``: it is a library's, or written in C."""
    function = fn.__func__ if type(fn) is MethodType else fn
    if type(function) is FunctionType:
        return stays_plain(function)
    method = class_attribute(type(fn), "__call__")
    return isinstance(fn, type) or type(method) is not FunctionType


def _root(fn: Any) -> str:
    home = getattr(fn, "__module__", None) or type(getattr(fn, "__self__", fn)).__module__
    return str(home).partition(".")[0]


def _is_pythons(fn: Any) -> bool:
    """Whether the user's line says all: an operation of Python's, or of the traced value."""
    return type(fn) is TracedArray or _root(fn) in ("builtins", "fusec", "_operator", "operator")


def named(trace: Trace, fn: Any, error: Exception, where: Loc) -> Exception:
    """The error with the name of the callee that it was raised in; ``where`` it is called."""
    _move_out(fn, error, where)
    if getattr(error, "_fusec_is_named", False):
        return error
    error._fusec_is_named = True  # type: ignore[attr-defined]
    if not runs_as_it_is(fn) or _is_pythons(fn):
        return error
    if isinstance(error, (ConcreteValueError, UnsupportedError)):
        _name(error, callee_name(fn), _inside(error, trace))
        error.diagnostic = replace(error.diagnostic, cure=_cure(fn, error.diagnostic.cure))
    elif type(error) is TypeError and _OURS.search(str(error)) and _root(fn) != "numpy":
        return _refused(trace, fn, error)
    return error


def _cure(fn: Any, cure: str) -> str:
    """The cure where it is ``fn`` that needs a value, and its code is not the program's."""
    if isinstance(fn, type) and issubclass(fn, BaseException):
        return (f"have {fn.__name__}.__init__ keep what it is given, and make the text in "
                f"{fn.__name__}.__str__, with {{value}} and no format: it shows the expression")
    is_numbers = _root(fn) == "scipy" and cure.startswith(_OF_NUMBERS)
    return _outside(fn) if is_numbers or _root(fn) == "jax" else cure


def _outside(fn: Any) -> str:
    """The cure where a library's own code meets a value that only the run knows."""
    return (f"call {callee_name(fn)} before or after the compiled function, and pass its result as "
            "an argument; fusec.jit(f, fallback=\"eager\") runs all of f uncompiled")


def behind(
    trace: Trace, fn: Any, error: Exception, before: Exception | None
) -> Exception:
    """The cause of a library's own error: that a value is known only when the code runs, which
    its C code was refused since ``before`` and did not pass on."""
    asked, home = trace.record.asked, _root(fn)
    if asked is None or asked is before or isinstance(error, FusecError) or home in _KNOWN:
        return error
    line = innermost_line(error)
    inside = line is not None and f"{os.sep}{home}{os.sep}" in line.file
    return asked if inside and isinstance(asked, ConcreteValueError) else error


def _move_out(fn: Any, error: Exception, users: Loc) -> None:
    """An error in SciPy's source, which was converted, is shown where the program calls it."""
    if _root(fn) != "scipy" or _is_scipys(users.file) or not isinstance(error, FusecError):
        return
    inner = error.diagnostic.loc
    if inner is not None and _is_scipys(inner.file):
        called = ("called", f"{callee_name(fn)} ({inner.file}:{inner.line})")
        error.diagnostic = replace(
            error.diagnostic, loc=users, values=(*error.diagnostic.values, called),
            cure=_outside(fn))


# How cures begin that are the program's to apply, where a library asks.
_OF_NUMBERS = ("select with", "stay in the graph")


def _is_scipys(file: str) -> bool:
    return f"{os.sep}scipy{os.sep}" in file


def _name(error: FusecError, name: str, place: str) -> None:
    diagnostic, title = error.diagnostic, error.diagnostic.title
    wanted, separator, rest = title.partition(" is needed while ")
    if name in title:
        return
    called = (("called", name + (f" ({place})" if place else "")),)
    if separator:
        error.diagnostic = replace(
            diagnostic, title=f"{name} needs {wanted} while {rest}", values=(
                *diagnostic.values, *(called if place else ())),
            cure=diagnostic.cure.replace("the library", name))
    elif place:
        error.diagnostic = replace(diagnostic, values=(*diagnostic.values, *called))


def _inside(error: Exception, trace: Trace) -> str:
    """The line of the callee's code, where it is Python's."""
    loc, users = innermost_line(error), trace.loc
    if loc is None or (users is not None and loc.file == users.file):
        return ""
    return str(loc)


def _refused(trace: Trace, fn: Any, error: TypeError) -> UnsupportedError:
    name = callee_name(fn)
    refusal = unsupported(
        name, loc=trace.loc, cure=f"call {name} before or after the compiled function, and pass "
        f"its result as an argument", values=[("it says", _OURS.sub("traced array", str(error)))],
        notes=("it is not compiled, and takes no traced values",))
    refusal.__cause__ = error
    return refusal
