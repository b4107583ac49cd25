"""Names that another thread binds anew while a function is traced.

The program reads a name whenever it comes by, its guard compares the name's value at the end: a
trace of two moments would answer for a third.  It is made again, and where names do not come to
rest it serves its own call alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..facts.dict_versions import Rebindings
from ..guards.container_changes import ContainerChanges
from ..guards.guard import Guard
from ..guards.relations import Never

ATTEMPTS = 4
LOOKS, PAUSE = 30, 2e-4  # at names, after attempts that all met a change of their namespace


class OfAMoment(Protocol):
    """A trace, as far as this module needs it."""

    guards: list[Any]
    rebindings: Rebindings
    container_changes: ContainerChanges

    @property
    def created(self) -> Any: ...


Made = TypeVar("Made", bound=OfAMoment)


def of_one_moment(trace: Callable[[], Made]) -> Made:
    """A trace during which no other thread has bound a name; else the last attempt, which serves
    no other call where a name that it reads was among them."""
    is_of_name = False
    for attempt in range(ATTEMPTS):
        traced = trace()
        is_rebound = traced.rebindings.any
        is_of_name = is_of_name or traced.rebindings.is_of_name
        if not is_rebound or not _may_be_repeated(traced):
            return traced
        if attempt < ATTEMPTS - 1:
            traced.container_changes.take_back()
    if is_of_name or not _rest(traced.guards):
        title = "names that another thread binds anew while it is traced"
        traced.guards.append(Guard(title, title, lambda: None, Never()))
    return traced


def _may_be_repeated(traced: OfAMoment) -> bool:
    """Whether to trace again does nothing twice: Variables are created once, and objects of
    libraries that the program changes are changed by each trace."""
    return not (traced.created or traced.rebindings.is_acting
                or any(guard.is_once for guard in traced.guards))


def _rest(guards: list[Any]) -> bool:
    """Whether it is other names of the namespace that are bound anew again and again, as a loop of
    the main module does."""
    for _ in range(LOOKS):
        if not all(guard.holds() for guard in guards):
            return False
        time.sleep(PAUSE)
    return True
