"""Lists and dicts stay the objects they are where two ways through a program join.

What lies in one that both ways have is a variable by itself; of one that data chooses the program
sees a copy, which is read and not changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import optree

from ..facts.trees import NAMESPACE
from ..guards.container_changes import KINDS, items_in, may_be_held, put_content
from ..values.trace import Trace
from .optional import UNBOUND, Optional
from .perhaps import Perhaps, Tail


class Contents:
    """What is in the lists and dicts whose items are variables, at the end of a side of a branch:
    what the side assigned to them is taken back when the other one is traced."""

    def __init__(self, trace: Trace | None = None) -> None:
        places = trace.world.outer_names.places.values() if trace is not None else ()
        scopes = {id(p.scope): p.scope for p in places
                  if may_be_held(p.scope) and type(p) is not Tail}
        self._found = {key: copy.copy(scope) for key, scope in scopes.items()}

    def of(self, x: Any) -> Any:
        """``x`` with copies in the place of these containers, which hold what was in them then."""
        if not self._found:
            return x
        return optree.tree_map(self._copied, x, is_leaf=may_be_held, none_is_leaf=True,
                               namespace=NAMESPACE)

    def _copied(self, x: Any) -> Any:
        if not may_be_held(x):
            return x
        content = self._found.get(id(x), x)
        items = [(key, self.of(item)) for key, item in items_in(content)]
        if content is x and all(new is x[key] for key, new in items):
            return x
        made = copy.copy(content)
        put_content(made, items)
        return made


def relinked(trace: Trace, a: Any, b: Any, new: Any, is_older: Callable[[Any], bool]) -> Any:
    """``new``, the merger of ``a`` and ``b``, with the containers that are in both at their place.

    ``is_older``: whether a container was there before the ways parted.
    """
    def inner(x: Any, y: Any, z: Any) -> Any:
        return relinked(trace, x, y, z, is_older)

    if a is b and may_be_held(a):
        return a
    if type(new) is Optional:
        return Optional(new.absent, _held(trace, a, b, new, is_older), new.name)
    if not type(a) is type(b) is type(new):
        return new
    if type(new) is tuple:
        return tuple(map(inner, a, b, new))
    if type(new) in KINDS:
        for key, item in list(items_in(new)):
            new[key] = inner(a[key], b[key], item)
        older = [x for x in (a, b) if is_older(x)]
        if older:
            trace.note_chosen(new, *older)
    return new


def _held(trace: Trace, a: Any, b: Any, new: Optional, is_older: Callable[[Any], bool]) -> Any:
    """What an optional value is where it is there: of one side, or chosen of both."""
    parts = [x.held if type(x) is Optional else x for x in (a, b)]
    there = [x for x in parts if x is not None and x is not UNBOUND]
    if len(there) == 2:
        return relinked(trace, there[0], there[1], new.held, is_older)
    return kept(there[0], new.held, is_older) if there else new.held


def kept(value: Any, new: Any, is_older: Callable[[Any], bool]) -> Any:
    """``new``, a copy of ``value``, with the containers that were there before themselves."""
    if may_be_held(value) and is_older(value):
        return value
    if type(value) is not type(new):
        return new
    if type(new) is Optional:
        return Optional(new.absent, kept(value.held, new.held, is_older), new.name)
    if type(new) is Perhaps:
        return Perhaps(new.absent, kept(value.item, new.item, is_older))
    if type(new) is tuple:
        return tuple(kept(x, y, is_older) for x, y in zip(value, new, strict=True))
    if type(new) in KINDS:
        for key, item in list(items_in(new)):
            new[key] = kept(value[key], item, is_older)
    return new
