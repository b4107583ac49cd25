"""Converts functions, once per code object, and binds them to the hooks of one trace."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import Any, Protocol

from fusec.core.code_roles import note_converted
from fusec.core.display import progress
from fusec.errors import Diagnostic

from ..facts.policy import is_numeric_stack
from ..rewrite.control_flow import convert_tree
from ..source.errors import SourceUnavailable
from ..source.source import HOOKS_NAME, compile_function, find_source
from ..source.super_calls import write_out
from .constructs import GENERATOR, check_supported

LONG = 50_000  # bytes of code, some hundreds of lines: rewriting them takes more than a second
_IMPORT_DEPTH = 64  # frames below an import that are still its own: recursion costs linear time
# By id: hashing a code object costs more than the look-up.  An entry dies with its code object.
# A refusal is cached too.
_codes: dict[int, tuple[weakref.ref[CodeType], CodeType | Diagnostic]] = {}
_converted: weakref.WeakValueDictionary[int, CodeType] = weakref.WeakValueDictionary()


class Bound(Protocol):
    """Hooks, with the closure cell through which converted code reads them."""

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
        is_bound = (fn.__closure__ or ())[index].cell_contents is hooks
        return fn if is_bound else with_code(fn, fn.__code__, hooks)
    return with_code(fn, converted_code(fn.__code__, fn.__globals__), hooks)


def converted_code(code: CodeType, module_globals: dict[str, Any] | None = None) -> CodeType:
    """The converted form of ``code``, from the cache when it was converted before."""
    entry = _codes.get(id(code))
    if entry is None or entry[0]() is not code:
        entry = _remember(code, _convert_or_refusal(code, module_globals))
    if isinstance(entry[1], Diagnostic):
        raise SourceUnavailable(entry[1])
    return entry[1]


def _remember(
    code: CodeType, result: CodeType | Diagnostic
) -> tuple[weakref.ref[CodeType], CodeType | Diagnostic]:
    key = id(code)

    # The dict as a default: when the process ends this module may be cleared before the code is.
    def forget(_: object, codes: dict[int, Any] = _codes) -> None:
        codes.pop(key, None)

    entry = weakref.ref(code, forget), result
    _codes[key] = entry
    return entry


def _convert_or_refusal(
    code: CodeType, module_globals: dict[str, Any] | None
) -> CodeType | Diagnostic:
    check_supported(code)
    progress.stage(f"reading {code.co_qualname}", is_long=len(code.co_code) > LONG)
    try:
        source = find_source(code, module_globals)
    except SourceUnavailable as error:
        return error.diagnostic
    # Control flow stays Python's in NumPy's own functions, which branch on shapes and dtypes only,
    # and in generators, of which no part can be another function.
    structured = not is_numeric_stack(module_globals) and not code.co_flags & GENERATOR
    write_out(source)
    note_converted(module_globals or {}, source.file)
    tree = convert_tree(source, structured=structured)
    converted = compile_function(dataclasses.replace(source, node=tree), (HOOKS_NAME,))
    converted = _requalified(converted, converted.co_qualname, code.co_qualname)
    note_code(converted)
    progress.stage("tracing")
    return converted


def note_code(code: CodeType) -> None:
    _converted[id(code)] = code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            note_code(inner)


def is_converted(code: CodeType) -> bool:
    """Whether it is the code of a converted function, or nested in one."""
    return _converted.get(id(code)) is code


def is_imported(frame: FrameType) -> bool:
    """Whether a module is being imported, for fusec or for the program."""
    outer = frame.f_back
    for _ in range(_IMPORT_DEPTH):
        if outer is None or is_converted(outer.f_code):
            return False
        if outer.f_code.co_filename.startswith("<frozen importlib"):
            return True
        outer = outer.f_back
    return False


def _requalified(code: CodeType, old: str, new: str) -> CodeType:
    """``code`` and all nested code with the original's qualified names."""
    consts = tuple(
        _requalified(c, old, new) if isinstance(c, CodeType) else c for c in code.co_consts
    )
    name = code.co_qualname
    name = new + name[len(old) :] if name.startswith(old) else name
    return code.replace(co_consts=consts, co_qualname=name)


def with_code(fn: FunctionType, code: CodeType, hooks: Bound) -> FunctionType:
    """A function that runs ``code`` with the globals and cells of ``fn``, and the hooks."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells[HOOKS_NAME] = hooks.cell
    closure = tuple(cells[name] for name in code.co_freevars)
    function = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    function.__kwdefaults__ = fn.__kwdefaults__
    function.__qualname__, function.__module__ = fn.__qualname__, fn.__module__
    function.__doc__ = fn.__doc__
    function.__dict__.update(fn.__dict__)
    return function
