"""Variables that a branch binds on one side only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.ir import Value

from ..context import Trace
from .cells import UNBOUND


def check_bound(
    trace: Trace, test: Value, sides: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> None:
    """Raise as Python does where the side that leaves a variable unbound is taken."""
    for name in names:
        unbound = [side.get(name, UNBOUND) is UNBOUND for side in sides]
        if unbound[0] != unbound[1]:
            error = UnboundLocalError(
                f"cannot access local variable {name!r} where it is not associated with a value")
            holds = trace.emit("LogicalNot", test) if unbound[0] else test
            trace.check(holds, error)
