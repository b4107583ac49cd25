"""Where `Function.__call__` looks first: the recent plans of one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

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
