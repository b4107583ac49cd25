"""Constructs that cannot be traced, recognised by the flags of code objects."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

from fusec.ir.graph import Loc

from ..source.errors import UnsupportedConstruct

_COROUTINE, _ASYNC_GENERATOR, GENERATOR = 0x80, 0x200, 0x20  # inspect.CO_…


def check_supported(fn: Callable[..., Any] | CodeType) -> None:
    """Raises ``UnsupportedConstruct`` for ``async`` in ``fn``, and for a function (not its code)
    that is itself a generator: one that it calls runs in Python.

    Reads only flags of code objects (microseconds), as it runs when a function is decorated.
    """
    code = fn if isinstance(fn, CodeType) else getattr(fn, "__code__", None)
    if code is None:
        return
    if code is not fn and code.co_flags & GENERATOR:
        raise UnsupportedConstruct("'yield'", _loc_of(code, "'yield'"))
    stack = [code]
    while stack:
        inner = stack.pop()
        construct = _refused_construct(inner)
        if construct:
            raise UnsupportedConstruct(construct, _loc_of(inner, construct))
        stack.extend(c for c in inner.co_consts if isinstance(c, CodeType))


def _refused_construct(code: CodeType) -> str:
    if code.co_flags & (_COROUTINE | _ASYNC_GENERATOR):
        return "'async'" if code.co_name.startswith("<") else "'async def'"
    return ""


def _loc_of(code: CodeType, construct: str) -> Loc:
    """Where the construct stands: the line of the ``yield``, else of the definition."""
    if construct == "'yield'":
        for instruction in dis.get_instructions(code):
            at = instruction.positions
            if instruction.opname == "YIELD_VALUE" and at and at.lineno:
                end = at.end_col_offset if at.end_lineno == at.lineno else None
                columns = _column(at.col_offset), _column(end)
                return Loc(code.co_filename, at.lineno, columns[0], code.co_name, columns[1])
    return Loc(code.co_filename, code.co_firstlineno, -1, code.co_name)


def _column(value: int | None) -> int:
    return -1 if value is None else value
