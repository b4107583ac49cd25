"""What else may show the memory that a variable leaves a loop with.

With no iteration, or one that does not bind it, a variable is after the loop what it was before, or
what another one was.  Its value is the loop's result; whether it shares memory with an older array
matters only when one of the two is written, and if another name can still see it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

from fusec.code_roles import is_ours

from ..guards.places import Attribute, Places
from ..values.array import TracedArray
from ..values.selected import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace, current

_DEPTH = 3  # of containers and objects that are looked into


def shown_elsewhere(storage: Storage, names: Collection[str]) -> bool:
    """Whether an array of this memory outlives the binding anew of ``names``, as an argument or
    under another name in the functions that are being traced."""
    return any(isinstance(root, Copied) or root.origin is not None or _is_held(root, names)
               or (root.stands_for is not None and shown_elsewhere(root.stands_for, names))
               for root in roots(storage))


def _is_held(root: Storage, names: Collection[str]) -> bool:
    owner_found = False
    for frame in _user_frames():
        for name, value in frame.f_locals.items():
            if (owner_found or name not in names) and _shows(value, root, _DEPTH):
                return True
        owner_found = owner_found or not _is_part(frame)
    trace = current()
    return trace is not None and any(_shows(value, root, 0) for value in _assigned(trace))


def _assigned(trace: Trace) -> Iterator[Any]:
    """What attributes hold that the program assigns: all that have the object may see it."""
    places = trace.part(Places)
    for place in places.of_kind(Attribute):
        yield from (place.now(), places.initial[place.title])


def _user_frames() -> Iterator[FrameType]:
    """The functions being traced, innermost first, and what conversion made of their parts."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_globals):
            yield frame
        elif frame.f_code.co_name == "trace_function":
            return
        frame = frame.f_back


def _is_part(frame: FrameType) -> bool:
    """Whether the frame is a piece of a converted function, made to be called by a hook."""
    return frame.f_code.co_name.startswith(("_fusec", "<"))


def _shows(value: Any, root: Storage, depth: int) -> bool:
    if type(value) is TracedArray:
        return value.storage is not None and root in roots(value.storage)
    if depth == 0 or isinstance(value, (ModuleType, FunctionType, type)):
        return False
    if isinstance(value, (list, tuple, set)):
        return any(_shows(item, root, depth - 1) for item in value)
    inside = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    return isinstance(inside, dict) and any(
        _shows(item, root, depth - 1) for item in list(inside.values()))
