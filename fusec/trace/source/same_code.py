"""Whether two code objects do the same: the check that a text is the source of the bytecode.

They are compared instruction by instruction: operations, names, constants, targets of jumps, the
exception table, and nested code objects.  Ignored are positions in the file, and differences from
the rest of the module: the compiler calls a function of an imported module in another way.
"""

from __future__ import annotations

import dis
from bisect import bisect_left
from collections.abc import Iterator
from types import CodeType
from typing import Any

# ``m.f()`` loads an attribute where m is imported by the module, else a method.
_DROPPED = frozenset({
    "CACHE", "PUSH_NULL", "PRECALL", "NOP", "EXTENDED_ARG", "RESUME", "COPY_FREE_VARS"})
_SAME = {"LOAD_METHOD": "LOAD_ATTR"}
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_NAMED = frozenset((*dis.hasname, *dis.haslocal, *dis.hasfree))
_CONSTANT = frozenset(dis.hasconst)
# *args, **kwargs, generator, coroutine, iterable coroutine, asynchronous generator
_FLAGS = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
# A class in a function has a name with those of the functions around it, which its text lacks.
_NAMING = "STORE_NAME", "__qualname__"
_END = (0, "", None, False)
_COUNTS = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount")
_TABLES = (*_COUNTS, "co_name", "co_varnames", "co_freevars", "co_cellvars")


def same_code(a: CodeType, b: CodeType) -> bool:
    """Whether both do the same with the same names and constants."""
    if a.co_flags & _FLAGS != b.co_flags & _FLAGS or any(
            getattr(a, t) != getattr(b, t) for t in _TABLES):
        return False
    if a.co_code == b.co_code and a.co_names == b.co_names and (
            a.co_exceptiontable == b.co_exceptiontable) and (
            constant_key(a.co_consts) == constant_key(b.co_consts)):
        return True
    return list(_steps(a)) == list(_steps(b))


def constant_key(value: Any) -> Any:
    """A key that differs for constants that ``==`` takes for equal: 1, 1.0 and True; 0.0, -0.0."""
    if isinstance(value, CodeType):
        return _Code(value)
    if type(value) is tuple:
        return tuple, tuple(map(constant_key, value))
    if type(value) is frozenset:
        return frozenset, frozenset(map(constant_key, value))
    return type(value), repr(value)


class _Code:
    """A code object whose ``==`` is `same_code`."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and same_code(self.code, other.code)


def _steps(code: CodeType) -> Iterator[Any]:
    """Each instruction with its argument, then the entries of the exception table."""
    rows = [(i.offset, *part) for i in dis.get_instructions(code) if i.opname not in _DROPPED
             for part in _plain_instructions(i, code)]
    offsets = [offset for offset, *_ in rows]
    for (_, name, argument, is_jump), following in zip(rows, [*rows[1:], _END], strict=True):
        if following[1:3] == _NAMING:
            argument = _within(argument)
        yield name, bisect_left(offsets, argument) if is_jump else argument
    for part in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        ends = (bisect_left(offsets, at) for at in (part.start, part.end, part.target))
        yield *ends, part.depth, part.lasti


def _within(qualified: Any) -> Any:
    """The key of a name without the functions around."""
    kind, text = qualified
    return kind, text.rpartition("<locals>.")[2].strip("'")


def _plain_instructions(i: dis.Instruction, code: CodeType) -> Iterator[tuple[str, Any, bool]]:
    """The instruction in the common form; two for a superinstruction, which the compiler makes
    only of instructions of one line."""
    if i.opname.count("_FAST") == 2:
        verbs = i.opname.replace("_FAST", "").split("_")
        yield from ((f"{verb}_FAST", name, False)
                    for verb, name in zip(verbs, i.argval, strict=True))
    elif i.opcode in _CONSTANT:  # `dis` does not resolve all of these
        yield i.opname.replace("RETURN", "LOAD"), constant_key(code.co_consts[i.arg or 0]), False
        if i.opname == "RETURN_CONST":
            yield "RETURN_VALUE", None, False
    else:
        is_jump = i.opcode in _JUMPS
        argument = i.argval if is_jump or i.opcode in _NAMED else i.arg
        yield _SAME.get(i.opname, i.opname), argument, is_jump
