"""The names that code may read from outside, and which classes are the user's."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType

HEAP_TYPE = 1 << 9  # of ``type.__flags__``: made by a ``class`` statement


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """The code, and all code in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from with_inner(inner)


@functools.lru_cache(1000)
def names_in(code: CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in code, and in code inside it."""
    names = dict.fromkeys(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names.update(dict.fromkeys(names_in(inner)))
    return tuple(names)


@functools.lru_cache(1000)
def globals_in(code: CodeType, *more: str) -> tuple[str, ...]:
    """The names that code, and code inside it, looks up, or does ``more`` with, in its globals."""
    return tuple(dict.fromkeys(
        i.argval for inner in with_inner(code) for i in dis.get_instructions(inner)
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", *more)))
