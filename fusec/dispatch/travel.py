"""Jitted functions in other processes.

A function is pickled by its qualified name.  One that no name finds elsewhere (of ``__main__``,
which workers need not run; lambdas and closures) goes by value, as cloudpickle writes it, with the
text that it was compiled from.  Where it arrives equal bytes are one function, so that a worker
traces it once, however many tasks bring it.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fusec.core import locks
from fusec.signature.jitted_methods import Jitted, method_name
from fusec.trace.facts.code_names import names_in
from fusec.trace.source.errors import SourceUnavailable
from fusec.trace.source.source import find_source
from fusec.trace.source.texts import remember

_MADE_BY = "__fusec_made_by__"  # of what is traced for a derivative: what makes it, and of what
_MAIN = ("__main__", "__mp_main__")
_MOST_KEPT = 256
_MOST_TEXT = 1 << 20  # characters of source that travel with a function
_kept: OrderedDict[bytes, Jitted] = OrderedDict()
_lock = locks.Lock()


class _Open(threading.local):
    """The functions that are being written or read by value: one that names itself lies in its own
    bytes, as the number of those around it."""

    def __init__(self) -> None:
        self.written: list[Jitted] = []
        self.lowest = 0  # of those that the bytes so far name
        self.read: list[Jitted] = []
        self.marked: set[int] = set()


_open = _Open()


# ----------------------------------------------------------------------------------------- writing


def reduced(function: Jitted) -> tuple[Any, ...]:
    """A function's reduction for `pickle`; raises ``pickle.PicklingError`` where it cannot go."""
    if function._receiver is not None:
        return _function_of, (function._receiver(), method_name(function))
    fn = function._fn
    made_by: tuple[Any, ...] | None = getattr(fn, _MADE_BY, None)
    if made_by is not None:  # a derivative, which is made of its function where that arrives
        return _made_again, (*made_by, function.options)
    module, name = str(getattr(fn, "__module__", "")), str(getattr(fn, "__qualname__", ""))
    is_named = _target_of(module, name) is function
    if is_named and module not in _MAIN:
        return _named, (module, name)
    if any(function is f for f in _open.written):
        position = next(k for k, f in enumerate(_open.written) if f is function)
        _open.lowest = min(_open.lowest, position)
        return _being_read, (position,)
    by_value = _by_value(function)
    if by_value is None and is_named:
        return _named, (module, name)
    if by_value is None:
        raise pickle.PicklingError(
            f"{function!r} cannot be pickled by name: define it at the top level of a module, or "
            f"install cloudpickle, with which it goes by value")
    home = (module, name, code_mark(fn)) if is_named else None
    return _arrived, (type(function), home, *by_value)


def _made_again(make: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    made = make(*args)
    return made if made.options == options else type(made)(made.python_function, **options)


def _by_value(function: Jitted) -> tuple[bytes, bool] | None:
    """Its bytes, and whether they are all of it: it names none that is being written around it."""
    try:
        import cloudpickle
    except ModuleNotFoundError:
        return None
    position, before = len(_open.written), _open.lowest
    _open.written.append(function)
    _open.lowest = position
    try:
        texts = dict(_texts(function._fn, set()))
        state = function._fn, function.options, function.__name__, function.__qualname__
        data = cloudpickle.dumps((texts, state))
        return data, _open.lowest == position
    finally:
        _open.written.pop()
        _open.lowest = min(before, _open.lowest)


def _texts(fn: Any, seen: set[int]) -> Iterator[tuple[str, list[str]]]:
    """The texts that a function, and those it names in its own module, were compiled from."""
    function = getattr(fn, "__func__", fn)
    function = getattr(function, "_fn", function)
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    try:
        lines = find_source(function.__code__, function.__globals__).lines
    except SourceUnavailable:
        lines = []
    if lines and sum(map(len, lines)) <= _MOST_TEXT:
        yield function.__code__.co_filename, lines
    for value in _values(function):
        inner = getattr(value, "_fn", value)
        if getattr(inner, "__module__", None) == function.__module__:
            yield from _texts(inner, seen)


def _values(fn: FunctionType) -> Iterator[Any]:
    """The values of a function's closure and of the globals that it names."""
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # empty: assigned later
            continue
    for name in names_in(fn.__code__):
        if name in fn.__globals__:
            yield fn.__globals__[name]


# ----------------------------------------------------------------------------------------- reading


def _target_of(module: str, name: str) -> Any:
    """The object of a qualified name in this process; None where it is nothing."""
    target: Any = sys.modules.get(module)
    for part in name.split("."):
        target = getattr(target, part, None)
    return target


def _named(module: str, name: str) -> Any:
    importlib.import_module(module)
    target = _target_of(module, name)
    if target is None:
        raise AttributeError(f"module {module!r} has no {name!r} here")
    return target


def _function_of(instance: Any, name: str) -> Any:
    return getattr(instance, name).function


def _being_read(position: int) -> Any:
    return _open.read[position]


def _arrived(
    kind: type[Jitted], home: tuple[str, str, str] | None, data: bytes, is_whole: bool
) -> Any:
    """The function of these bytes: the one of that name here, one that came before, or a new one.
    """
    if home is not None:
        target = _target_of(*home[:2])
        if type(target) is kind and code_mark(target._fn) == home[2]:
            return target
    if not is_whole:
        return _read(kind, data)
    key = hashlib.sha256(data).digest()
    with _lock:
        if key not in _kept:
            _kept[key] = _read(kind, data)
        _kept.move_to_end(key)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
        return _kept[key]


def _read(kind: type[Jitted], data: bytes) -> Jitted:
    function = object.__new__(kind)  # which its own globals may name
    _open.read.append(function)
    try:
        texts, (fn, options, name, qualname) = pickle.loads(data)
    finally:
        _open.read.pop()
    for file, lines in texts.items():
        remember(file, lines)
    function.__init__(fn, **options)  # type: ignore[misc]
    function.__name__, function.__qualname__ = name, qualname
    return function


# ------------------------------------------------------------------------------------------- marks


def code_mark(fn: Any) -> str:
    """Tells programs apart; the same in every process."""
    function = getattr(fn, "__func__", fn)
    code = getattr(function, "__code__", None)
    return hashlib.sha256(repr(_parts(code)).encode()).hexdigest() if code is not None else ""


def _parts(code: CodeType) -> Any:
    constants = [_parts(c) if isinstance(c, CodeType) else sorted(map(repr, c)) if isinstance(
        c, frozenset) else repr(c) for c in code.co_consts]
    return (code.co_qualname, code.co_code, code.co_names, code.co_varnames, code.co_freevars,
            code.co_cellvars, code.co_flags, constants)


def tokenized(function: Jitted) -> Any:
    """The data of `dask.base.tokenize`'s token: equal for the same function in any process."""
    token = _token_of(function)
    dask = sys.modules.get("dask.base")  # which takes the texts of what is in a tuple
    return token if dask is None else dask.normalize_token(token)


def _token_of(function: Jitted) -> Any:
    fn: Any = function.python_function
    options = repr(sorted(function.options.items()))
    made_by = getattr(fn, _MADE_BY, None)
    if made_by is not None:
        return made_by[0].__qualname__, options, *map(_token, made_by[1])
    plain = getattr(fn, "__func__", fn)
    if not isinstance(plain, FunctionType):
        return "fusec.jit", options, plain
    return "fusec.jit", *_of_code(plain, function), options, getattr(fn, "__self__", None)


def _of_code(plain: FunctionType, named: Any) -> Any:
    """``named`` is what has the function's name: itself, or the jitted one."""
    head = f"{plain.__module__}.{plain.__qualname__}", code_mark(plain)
    if id(named) in _open.marked:
        return head
    _open.marked.add(id(named))
    try:
        is_of_module = plain.__module__ not in _MAIN and (
            _target_of(plain.__module__, plain.__qualname__) is named)
        constants = [] if is_of_module else [_token(v) for v in _values(plain)]
        return (*head, plain.__defaults__, plain.__kwdefaults__, constants)
    finally:
        _open.marked.discard(id(named))


def _token(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, FunctionType):
        return _of_code(value, value)
    nested: Callable[[], Any] | None = getattr(type(value), "__dask_tokenize__", None)
    return value if nested is None else value.__dask_tokenize__()


__all__ = ["code_mark", "reduced", "tokenized"]
