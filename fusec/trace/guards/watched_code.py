"""Side effects and reads of code that runs unconverted during a trace, found in its bytecode."""

from __future__ import annotations

import dis
import functools
import weakref
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from fusec.core.records import dataclass

from ..convert.cache import is_converted
from ..facts.code_names import HEAP_TYPE, names_in, with_inner
from ..facts.policy import is_plain_code, stays_plain
from .places import Cell

_ASSIGNING = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"})
_OF_CELLS = frozenset({"STORE_DEREF", "DELETE_DEREF"})
_OF_ITEMS = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"})
_MAKING = ("__init__", "__new__", "__post_init__", "__setstate__")
_MAKING_OR_SHOWING = frozenset({*_MAKING, "__repr__", "__str__"})
_LOADS = ("LOAD_ATTR", "LOAD_METHOD")
_OF_ARRAYS = frozenset({"shape", "ndim", "size", "dtype", "T"})
_SETTING = frozenset({"setattr", "delattr", "__setattr__", "__delattr__"})
_CHANGING = frozenset({
    "append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove",
    "clear", "update", "setdefault", "add", "discard", "sort", "reverse", "fill", "put"})
# Hooks answer for these wherever the program itself uses them.
_ROUTED = frozenset({
    "__init__", "__new__", "__call__", "__post_init__", "__init_subclass__", "__set_name__",
    "__class_getitem__", "__setitem__", "__delitem__", "__setattr__", "__delattr__", "__enter__",
    "__exit__", "__repr__", "__str__", "__format__", "__set__", "__delete__", "__get__",
    "__setstate__", "__array_finalize__",
    *(f"__{way}{op}__" for way in ("", "r", "i") for op in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift",
        "and", "or", "xor"))})


# C calls these without a hook: to store a key, and to find, count or group elements.
_HASHING = frozenset({"__hash__"})
_COMPARING = _HASHING | {f"__{op}__" for op in ("eq", "ne", "lt", "le", "gt", "ge")}


@dataclass(frozen=True)
class Verdict:
    """The effects of a code object: ``assigns`` names an attribute or outer variable; ``changes``:
    whether it changes items of containers."""

    code: CodeType
    is_users: bool
    assigns: str = ""
    changes: bool = False


_verdicts: dict[int, Verdict] = {}


def verdict(code: CodeType, module_globals: dict[str, Any]) -> Verdict:
    """The verdict on code that is about to run, cached."""
    cached = _verdicts.get(id(code))
    if cached is None or cached.code is not code:
        is_users = not is_converted(code) and not is_plain_code(code, module_globals)
        cached = Verdict(code, is_users, *(
            (assigned_in(code), changes_items(code)) if is_users else ()))
        if len(_verdicts) > 10_000:
            _verdicts.clear()
        _verdicts[id(code)] = cached
    return cached


@functools.lru_cache(1000)
def assigned_in(code: CodeType) -> str:
    """An attribute, or variable of an outer scope, that the code itself assigns; "" for none.
    Attributes of the object that a constructor makes are no effect."""
    own_object = code.co_varnames[:1] if code.co_name in _MAKING else ()
    before: Any = None
    for i in dis.get_instructions(code):
        target = before[-1] if isinstance(before, tuple) and before else before
        if i.opname in _ASSIGNING and not (i.opname == "STORE_ATTR" and target in own_object):
            return str(i.argval)
        if i.opname in _OF_CELLS and i.argval in code.co_freevars:
            return str(i.argval)
        if i.opname != "CACHE":
            before = i.argval
    if not own_object:
        return next((name for name in code.co_names if name in _SETTING), "")
    return ""


@functools.lru_cache(1000)
def changes_items(code: CodeType) -> bool:
    """Whether it assigns items, or calls methods that change containers."""
    return not _CHANGING.isdisjoint(code.co_names) or any(
        i.opname in _OF_ITEMS for i in dis.get_instructions(code))


# -------------------------------------------------------------------------------- what may matter


def may_matter(fn: FunctionType, kind: type | None = None) -> bool:
    """Whether a call of ``fn``, a method of ``kind``, may have side effects or read mutable state
    other than the attributes of its arguments."""
    return _may_matter(fn, kind, set())


def _may_matter(fn: FunctionType, kind: type | None, visited: set[CodeType]) -> bool:
    if fn.__code__ in visited:
        return False
    visited.add(fn.__code__)
    for code in with_inner(fn.__code__):
        if assigned_in(code) or changes_items(code) or _reads_far(code):
            return True
    return any(_is_unsure(value, kind, visited) for value in _named(fn, kind))


def _reads_far(code: CodeType) -> bool:
    """Whether it reads an attribute of an attribute."""
    before = ""
    for i in dis.get_instructions(code):
        if i.opname in _LOADS and before in _LOADS and i.argval not in _OF_ARRAYS:
            return True
        before = i.opname
    return False


def _named(fn: FunctionType, kind: type | None) -> Iterator[Any]:
    """The function's objects by names: free variables, globals and methods of its class."""
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        if name != "__class__":
            yield Cell(cell, name)()
    for name in names_in(fn.__code__):
        if name in fn.__globals__:
            yield fn.__globals__[name]
        elif kind is not None and hasattr(kind, name):
            yield getattr(kind, name)


def _is_unsure(value: Any, kind: type | None, visited: set[CodeType]) -> bool:
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, MethodType):
        value = value.__func__
    if type(value) is FunctionType:
        return not stays_plain(value) and _may_matter(value, kind, visited)
    return not isinstance(value, ModuleType | type | BuiltinFunctionType) and not (
        type(value).__module__ == "builtins" and callable(value))


_flagged: dict[int, tuple[weakref.ref[type], tuple[bool, bool]]] = {}


def runs_code(kind: type) -> tuple[bool, bool]:
    """Whether Python itself may run code of the class that matters (see `may_matter`): anywhere in
    a program, and where one of its objects is passed to a library.

    A ``__hash__`` that reads attributes of its object matters anywhere, for displays of sets and
    dicts call it; a comparison that does, where the object is passed to code that may compare.
    """
    if not kind.__flags__ & HEAP_TYPE:
        return False, False
    cached = _flagged.get(id(kind))
    if cached is None or cached[0]() is not kind:
        mattering = {name for name, fn in users_methods(kind) if may_matter(fn, kind)}
        reading = {name for name, fn in users_methods(kind) if name in _COMPARING and any(
            i.opname in _LOADS for i in dis.get_instructions(fn))}
        # Of what matters only special methods run anywhere: programs read properties themselves.
        special = {n for n in mattering if n.startswith("__")} - _ROUTED | reading & _HASHING
        cached = _flagged[id(kind)] = weakref.ref(kind), (bool(special), bool(mattering or reading))
    return cached[1]


def answers(kind: type) -> bool:
    """Whether the class has special methods of the user's that C may call."""
    return bool(kind.__flags__ & HEAP_TYPE) and any(
        name.startswith("__") and name not in _MAKING_OR_SHOWING for name, _ in users_methods(kind))


def users_methods(kind: type) -> Iterator[tuple[str, FunctionType]]:
    """The user's own methods and properties; those that `dataclasses` makes for a frozen class read
    fields that nothing assigns."""
    is_frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
    for base in kind.__mro__:
        for name, member in list(vars(base).items()) if base.__flags__ & HEAP_TYPE else ():
            fn = getattr(member, "__func__", member)
            if isinstance(member, property):
                fn = member.fget
            if type(fn) is FunctionType and not stays_plain(fn) and not (
                    is_frozen and _is_generated(fn)):
                yield name, fn


def _is_generated(fn: Any) -> bool:
    behind = getattr(fn, "__wrapped__", fn)
    return bool(behind.__code__.co_qualname.startswith("__create_fn__."))
