"""The device scope that a context is in: a thread outside of traces, or a task of asyncio.

A trace begins with the scope around the call, and keeps those inside of it in its builder.  This
module imports little, so that making a Variable does not import placement.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from fusec.ir.device_names import DeviceName

DEFAULT = str(DeviceName().whole())  # where a Variable is that is made in no scope


class Entered(NamedTuple):
    """A scope (see `fusec.placement.device_scopes`; None: no scope), who entered it, and the one
    around it."""

    scope: Any
    by: object
    around: Entered | None


# Called when a scope is entered: until then all calls are in none.
listeners: list[Callable[[], None]] = []
_OUTSIDE = Entered(None, None, None)
_entered: ContextVar[Entered] = ContextVar("device_scope", default=_OUTSIDE)
entered = _entered.get


def enter(scope: Any, by: object) -> None:
    """Be in a scope from now on, in this context."""
    for listener in listeners:
        listener()
    _entered.set(Entered(scope, by, entered()))


def leave(by: object) -> None:
    """Be where one was before ``by`` entered, within which others may be open still.

    A context in which it did not enter (a generator may be closed in another thread than the one
    that began it) is in no scope of its making: nothing is left there.
    """
    found: Entered | None = entered()
    while found is not None and found.by is not by:
        found = found.around
    if found is not None and found.around is not None:
        _entered.set(found.around)


def device_of_variable(trace: Any, name: str) -> str:
    """The whole name of the device that a Variable is on which is made now."""
    scope = entered().scope if trace is None else trace.builder.devices
    if scope is None:
        return DEFAULT
    constraint: str = scope.device_of("Variable", name, (), None if trace is None else trace.loc)
    return str(DeviceName.parse(parts_of(constraint)[0]).whole())


def parts_of(constraint: str) -> tuple[str, str]:
    """The device's name in a constraint, and that of the node that it is together with."""
    name, _, anchor = constraint.partition("~")[0].partition("@")
    return name, anchor
