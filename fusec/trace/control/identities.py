"""Lists and dicts stay the objects they are where two ways through a program join.

What lies in one that both ways have is a variable by itself; of one that data chooses the program
sees a copy, which is read and not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..container_changes import KINDS, items_in, may_be_held
from ..context import Trace
from ..optional import Optional
from ..side_effects import is_outside


def relinked(trace: Trace, a: Any, b: Any, new: Any, is_older: Callable[[Any], bool]) -> Any:
    """``new``, the merger of ``a`` and ``b``, with the containers that are in both at their place.

    ``is_older``: whether a container was there before the ways parted.
    """
    def inner(x: Any, y: Any, z: Any) -> Any:
        return relinked(trace, x, y, z, is_older)

    if a is b and may_be_held(a):
        return a
    if not type(a) is type(b) is type(new):
        return new
    if type(new) is Optional:
        return Optional(new.absent, inner(a.held, b.held, new.held), new.name)
    if type(new) is tuple:
        return tuple(map(inner, a, b, new))
    if type(new) in KINDS:
        if new is a or new is b:
            new = type(new)(new)
        for key, item in list(items_in(new)):
            new[key] = inner(a[key], b[key], item)
        older = [x for x in (a, b) if is_older(x)]
        # A variable that one side binds to a new list was the only name of the older one, mostly.
        if len(older) == 2 or any(is_outside(trace, x) for x in older):
            trace.chosen.update((id(container), container) for container in (new, *older))
    return new
