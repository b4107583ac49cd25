"""Short-circuit evaluation in hooks: ``and``, ``or``, ``a < b < c``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..rewrite.transformer import Where


class Deciding(Protocol):
    """Hooks, as far as logic needs them."""

    def operand(self, where: Where, value: Any) -> Any: ...

    def asked_truth(self, test: Any) -> Any: ...

    def decide(self, test: Any) -> bool | None: ...

    def undecided(
        self, where: Where, role: str, going: bool, value: Any, truth: Any,
        thunks: tuple[Callable[[], Any], ...],
    ) -> Any: ...

    def and_(
        self, where: Where, role: str, value: Any, *thunks: Callable[[], Any]
    ) -> Any: ...

    def chain(
        self, where: Where, role: str, ops: tuple[str, ...], left: Any, right: Any,
        *thunks: Callable[[], Any],
    ) -> Any: ...

    def link(self, where: Where, op: str, left: Any, right: Any) -> Any: ...


class Tested:
    """An operand of ``and`` or ``or`` whose truth is known: Python tests it once."""

    __slots__ = ("truth", "value")

    def __init__(self, value: Any, truth: bool) -> None:
        self.value, self.truth = value, truth


def tested(value: Any, truth: bool) -> Tested:
    """``value`` with its truth."""
    return value if type(value) is Tested else Tested(value, truth)


def untested(value: Any) -> Any:
    """The value without its truth."""
    return value.value if type(value) is Tested else value


def short_circuit(
    hooks: Deciding, where: Where, role: str, going: bool, value: Any,
    thunks: tuple[Callable[[], Any], ...],
) -> Any:
    """``and`` (``going`` is True) or ``or``: the first operand with another truth, or the last."""
    for position, thunk in enumerate(thunks):
        truth = hooks.asked_truth(hooks.operand(where, value))
        is_true = hooks.decide(truth)
        if is_true is None:
            return hooks.undecided(where, role, going, value, truth, thunks[position:])
        if is_true is not going:
            return untested(value) if role == "value" else tested(value, is_true)
        value = thunk()
    return value


def comparison_chain(
    hooks: Deciding, where: Where, role: str, ops: tuple[str, ...], left: Any, right: Any,
    thunks: tuple[Callable[[], Any], ...],
) -> Any:
    """``left op right op …``, as comparisons joined by ``and``."""
    result = hooks.link(where, ops[0], left, right)
    if not thunks:
        return result

    def rest() -> Any:
        return hooks.chain(where, role, ops[1:], right, thunks[0](), *thunks[1:])

    return hooks.and_(where, role, result, rest)
