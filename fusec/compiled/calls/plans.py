"""Where `Function.__call__` looks first: the recent plans of one function."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fusec.core import timeline
from fusec.runtime.launching.outcomes import BUSY, FAILED, MISS

from ..reports import history

if TYPE_CHECKING:
    from fusec.compiled.concrete_function import ConcreteFunction

Plan = tuple[Callable[..., Any], "ConcreteFunction"]  # answers for leaves, or MISS


class RecentPlans:
    """Tables of plans, empty until the first trace; `FastCalls` fills them."""

    __slots__ = ("positional", "shapes", "structured")

    def __init__(self) -> None:
        self.positional: list[Plan] = []
        self.structured: dict[Any, Any] = {}  # for arguments or results that are pytrees
        # By what is given by position and name: what makes leaves of that, and plans for these,
        # None: those of calls with all arguments by position.
        self.shapes: dict[tuple, tuple[Callable[..., Any], list[Plan] | None]] = {}


def answer(plans: Sequence[Plan], leaves: Sequence[Any], name: str) -> Any:
    """The answer of the first of these plans that fits the leaves; MISS where none does."""
    asked = None  # the plans of one trace ask the same
    for fast, concrete in plans:
        unchanged = concrete.unchanged
        if unchanged is not asked and unchanged is not None and not unchanged():
            continue
        asked = unchanged
        start = time.perf_counter() if history.on else 0.0
        result = fast(*leaves) if not timeline.on else concrete.recorded(*leaves)
        if result is MISS or result is BUSY or result is FAILED:
            continue
        if history.on:
            run_us = 1e6 * (time.perf_counter() - start)
            history.record_call(name, concrete, 0.0, run_us)
            if timeline.on:
                timeline.since("call", name, start, concrete.line)
        return result
    return MISS
