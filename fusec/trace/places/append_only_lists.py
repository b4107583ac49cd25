"""Lists from outside that the program only appends to: ``self.history.append(loss)``.

Their items do not matter to the trace, so their length may change from call to call; each call
appends its own values.
"""

from __future__ import annotations

import dis
import functools
from collections import Counter, deque
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

from ..facts.code_names import names_in
from ..guards.places import Cell
from ..rewrite.transformer import Where

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
_METHODS = ("append", "extend")
_BEGIN = 4  # of a place: file, line, column, function


class Uses:
    """How often lists were found in attributes and other containers, and appended to at once."""

    def __init__(self) -> None:
        self._found: Counter[int] = Counter()
        self._at: dict[int, Where] = {}
        self._methods: Counter[int] = Counter()
        self._appended: Counter[int] = Counter()

    def note_found(self, value: Any, where: Where) -> None:
        if type(value) in (list, deque):
            self._found[id(value)] += 1
            self._at[id(value)] = where

    def note_method(self, value: Any, name: str, where: Where) -> None:
        """``value.name`` is read; of ``self.history.append`` both parts begin at one place."""
        if type(value) in (list, deque) and name in _METHODS:
            earlier = self._at.pop(id(value), None)
            self._methods[id(value)] += earlier is not None and earlier[:_BEGIN] == where[:_BEGIN]

    def note_call(self, fn: Any) -> None:
        owner = getattr(fn, "__self__", None)
        if type(owner) in (list, deque) and fn.__name__ in _METHODS:
            self._appended[id(owner)] += 1

    def only_appends(
        self, container: Any, before: list[Any], functions: Iterable[FunctionType]
    ) -> bool:
        """Whether all that the program did with a list is to append to it; ``before``: its items
        when the trace began.

        Each time it was found something was appended there and then; where a name holds it, every
        use of that name in the functions that were called is such a call.
        """
        if type(container) not in (list, deque) or len(container) < len(before) or any(
                a is not b for a, b in zip(container, before, strict=False)):
            return False
        count = self._found[id(container)]
        uses = [_only_appends(code, name) for code, name in _named(container, functions)]
        if uses:
            return count == 0 and all(uses)
        return count == self._methods[id(container)] == self._appended[id(container)] > 0


def _named(container: Any, functions: Iterable[FunctionType]) -> Iterable[tuple[CodeType, str]]:
    """The names that hold it in functions."""
    for fn in functions:
        for name in names_in(fn.__code__):
            if fn.__globals__.get(name) is container:
                yield fn.__code__, name
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
            if Cell(cell, name)() is container:
                yield fn.__code__, name
        for value in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            if value is container:
                yield fn.__code__, ""


@functools.lru_cache(1000)
def _only_appends(code: CodeType, name: str) -> bool:
    """Whether code, or code inside it, does nothing with a variable but append to its list."""
    instructions = list(dis.get_instructions(code))
    for load, following in zip(instructions, [*instructions[1:], None], strict=True):
        if not name or (load.argval == name and load.opname not in ("LOAD_CLOSURE",
                                                                    "COPY_FREE_VARS")):
            is_call = load.opname in _LOADS and following is not None and (
                following.opname in ("LOAD_METHOD", "LOAD_ATTR")) and following.argval in _METHODS
            if not is_call:
                return False
    return all(_only_appends(c, name) for c in code.co_consts if isinstance(c, CodeType))
