"""Operands of ``and`` and ``or``, and those whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Thunk = Callable[[], Any]  # an operand, a test or a block of statements that is perhaps not run


class Tested:
    """An operand of ``and`` or ``or`` whose truth is known: Python tests it once."""

    __slots__ = ("truth", "value")

    def __init__(self, value: Any, truth: bool) -> None:
        self.value, self.truth = value, truth


def untested(value: Any) -> Any:
    """The value without its truth."""
    return value.value if type(value) is Tested else value
