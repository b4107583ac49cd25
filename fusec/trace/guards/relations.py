"""Measures of more than one value: relations that must hold of the values a guard reads."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Protocol


class ReadGuard(Protocol):
    """A guard, as far as its measure needs it."""

    read: Callable[[], Any]

    def holds(self) -> bool: ...


class Relation:
    """Found by asking; changes of the program while it is traced do not change it."""

    __slots__ = ()

    is_of_start = True

    def expression(self, guard: ReadGuard, bind: Callable[[Any], str]) -> str:
        """Whether it holds, as text."""
        return f"{bind(guard.holds)}()"


class Never(Relation):
    """The trace changed a container that outlives it, which only tracing does: it serves once."""

    __slots__ = ()

    def matches(self, value: Any) -> bool:
        return False

    def text(self) -> str:
        return ""


class SameCode(Relation):
    """A function whose code must not be replaced."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def matches(self, value: FunctionType | None) -> bool:
        return value is None or value.__code__ is self.code

    def text(self) -> str:
        return "the same code"

    def expression(self, guard: ReadGuard, bind: Callable[[Any], str]) -> str:
        function = bind(None)
        return (f"(({function} := {bind(guard.read)}()) is None or {function}.__code__ is "
                f"{bind(self.code)})")
