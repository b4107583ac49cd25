"""Converts functions, once per code object, and binds them to the hooks of one trace."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Protocol

from fusec.errors import Diagnostic

from ..facts.policy import is_numeric_stack
from ..rewrite.control_flow import convert_tree
from ..source.errors import SourceUnavailable
from ..source.source import HOOKS_NAME, compile_function, find_source
from ..source.super_calls import write_out
from .constructs import GENERATOR, check_supported

# By identity, not equality: hashing a code object costs more than the look-up.  The key dies with
# the code object.  A refusal is remembered too.
_codes: dict[int, tuple[weakref.ref[CodeType], CodeType | Diagnostic]] = {}
_made: weakref.WeakValueDictionary[int, CodeType] = weakref.WeakValueDictionary()


class Bound(Protocol):
    """Hooks, which converted code finds in a cell."""

    cell: CellType


def convert(fn: Callable[..., Any], hooks: Bound) -> Callable[..., Any]:
    """``fn`` (function, lambda or bound method) rewritten to call ``hooks``.

    The result shares globals, closure cells, defaults and ``self`` with ``fn``.  Raises
    ``SourceUnavailable`` and ``UnsupportedConstruct``.
    """
    if isinstance(fn, MethodType):
        return MethodType(convert(fn.__func__, hooks), fn.__self__)
    if not isinstance(fn, FunctionType):
        raise SourceUnavailable(f"{fn!r} is not a Python function: it has no source to convert")
    if HOOKS_NAME in fn.__code__.co_freevars:  # defined inside a converted function
        index = fn.__code__.co_freevars.index(HOOKS_NAME)
        own = (fn.__closure__ or ())[index].cell_contents is hooks
        return fn if own else _rebuild(fn, fn.__code__, hooks)
    return _rebuild(fn, converted_code(fn.__code__, fn.__globals__), hooks)


def converted_code(code: CodeType, module_globals: dict[str, Any] | None = None) -> CodeType:
    """The converted form of ``code``, from the cache when it was converted before."""
    known = _codes.get(id(code))
    if known is None or known[0]() is not code:
        known = _remember(code, _convert_or_reason(code, module_globals))
    if isinstance(known[1], Diagnostic):
        raise SourceUnavailable(known[1])
    return known[1]


def _remember(
    code: CodeType, result: CodeType | Diagnostic
) -> tuple[weakref.ref[CodeType], CodeType | Diagnostic]:
    key = id(code)

    # The dict as a default: at the end of the process this module may be cleared before the code.
    def forget(_: object, codes: dict[int, Any] = _codes) -> None:
        codes.pop(key, None)

    entry = weakref.ref(code, forget), result
    _codes[key] = entry
    return entry


def _convert_or_reason(
    code: CodeType, module_globals: dict[str, Any] | None
) -> CodeType | Diagnostic:
    check_supported(code)
    try:
        source = find_source(code, module_globals)
    except SourceUnavailable as error:
        return error.diagnostic
    # NumPy's own functions decide on shapes and dtypes, never on data.
    # Nor does the control flow of generators leave Python: a part of it cannot be another function.
    structured = not is_numeric_stack(module_globals) and not code.co_flags & GENERATOR
    write_out(source)
    tree = convert_tree(source, structured=structured)
    made = compile_function(dataclasses.replace(source, node=tree), (HOOKS_NAME,))
    made = _requalified(made, made.co_qualname, code.co_qualname)
    _note_made(made)
    return made


def _note_made(code: CodeType) -> None:
    _made[id(code)] = code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _note_made(inner)


def is_converted(code: CodeType) -> bool:
    """Whether the code is of a converted function, or of one inside it."""
    return _made.get(id(code)) is code


def _requalified(code: CodeType, old: str, new: str) -> CodeType:
    """``code`` and all code in it with the qualified names the original has."""
    consts = tuple(
        _requalified(c, old, new) if isinstance(c, CodeType) else c for c in code.co_consts
    )
    name = code.co_qualname
    name = new + name[len(old) :] if name.startswith(old) else name
    return code.replace(co_consts=consts, co_qualname=name)


def _rebuild(fn: FunctionType, code: CodeType, hooks: Bound) -> FunctionType:
    """A function like ``fn`` that runs ``code``: the same globals, the same cells, the hooks."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells[HOOKS_NAME] = hooks.cell
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__qualname__, made.__module__ = fn.__qualname__, fn.__module__
    made.__doc__ = fn.__doc__
    made.__dict__.update(fn.__dict__)
    return made
