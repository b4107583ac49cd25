"""Objects of the user's of which data chose one: operations that are refused on them.

A new object stands for the one that was chosen.  Where another name may be that of the same object
a write to one of them would have to be seen in both, and which object it is has no answer.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from fusec.errors import unsupported

from ..choice.records import is_users_class
from ..facts.static_values import is_transparent
from ..values.trace import Trace

_KEEPING = ("append", "appendleft", "extend", "extendleft", "insert")  # what they are given
_KEYED = (dict, set, frozenset)


def check_write(trace: Trace, obj: Any, what: str) -> None:
    """Raise where data chose the object among several, or this one perhaps for another name."""
    if id(obj) in trace.local.chosen:
        kind = type(obj).__name__
        raise unsupported(
            f"{what} of a {kind} that data chooses, or of one that it may have chosen",
            loc=trace.loc, cure=f"make a new {kind} instead, or assign it in each branch itself")


def is_of_choice(trace: Trace, a: Any, b: Any) -> bool:
    """Whether data may have made the two names of one thing: an object that is new is another one.
    """
    known = [id(x) in trace.local.chosen for x in (a, b)]
    return all(known) or (any(known) and not is_transparent(a))


def check_which(trace: Trace, what: str, *values: Any) -> None:
    """Raise where it matters which object one of these is: compared without a method, as a key."""
    for x in values if trace.local.chosen else ():
        keys = x if type(x) is tuple or isinstance(x, _KEYED) else (x,)
        for key in keys:
            kind = type(key)
            if id(key) in trace.local.chosen and is_users_class(kind) and is_transparent(key) and (
                    what == "id" or kind.__eq__ is object.__eq__):
                raise unsupported(
                    f"{what!r}, by identity, of a {kind.__name__} that data chooses, or of one "
                    "that it may have chosen,", loc=trace.loc,
                    cure=f"compare attributes (give {kind.__name__} an __eq__), or what the "
                    "branches depend on")


def check_call(trace: Trace, fn: Any, args: tuple[Any, ...]) -> None:
    """The same of the arguments of ``fn``, which is called as it is."""
    owner, name = getattr(fn, "__self__", None), getattr(fn, "__name__", "")
    if fn is id or fn is hash:
        check_which(trace, name, *args)
    elif isinstance(owner, (*_KEYED, list, tuple, deque)) and name not in _KEEPING:
        check_which(trace, f"{type(owner).__name__}.{name}", *args)
    elif isinstance(fn, type) and issubclass(fn, (set, frozenset)):
        check_which(trace, name, *map(_items, args))
    else:
        check_which(trace, name, *(x for x in args if isinstance(x, _KEYED)))


def _items(x: Any) -> Any:
    return tuple(x) if type(x) in (list, deque) else x
