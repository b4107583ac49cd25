"""What plans ask of the guards of their trace, made once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.ir.lazy_values import lazy

from .guard import Guard, check_of
from .relations import SameCode


class Checks:
    """Of some guards, which stay the same objects."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = guards

    @lazy
    def every(self) -> Callable[[], bool]:
        """Whether all of them hold."""
        return check_of(self.guards) if self.guards else lambda: True

    @lazy
    def watched(self) -> Callable[[], bool] | None:
        """Whether those hold that the launcher does not check itself; None where it checks all."""
        watched = [g for g in self.guards if not g.is_native]
        return check_of(watched) if watched else None

    @lazy
    def is_once(self) -> bool:
        """Whether no other call can use the trace: it changed containers that outlive it."""
        return any(g.is_once for g in self.guards)

    @lazy
    def code(self) -> tuple[tuple[Any, Any], ...]:
        """Functions that the launcher looks at, and the code that they must go on to have."""
        return tuple((g.read(), g.measure.code) for g in self.guards
                     if type(g.measure) is SameCode and g.is_native)


__all__ = ["Checks"]
