"""Lists, dicts and objects among a trace's results: in several places, or outliving the call.

Results and assigned values are put together anew after each call, each from its own tree.  A list
that the program put in two places is one list there too, and a list from outside is itself.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fusec.errors import unsupported

from ..choice.choice import Choice
from ..choice.records import ChosenOf, is_frozen
from ..facts.trees import Again, First
from ..guards.container_changes import items_in, may_be_held
from ..values.trace import Trace
from .made_objects import Made, attributes_of, is_made


def linked(trace: Trace, assigned: Sequence[Any], result: Any) -> tuple[list[Any], Any]:
    """Assigned values and the result, with these in the place of such containers."""
    places = _Places(trace)
    for value in (*assigned, result):
        places.count(value)
    places.check_chosen()
    held = trace.world.containers.held
    if not places.made and not places.outside and not any(
            n > 1 or key in held for key, n in places.counts.items()):
        return list(assigned), result
    links = _Links(trace, places)
    return [links.of(value) for value in assigned], links.of(result, is_result=True)


class _Places:
    """How often each container lies in the results, and the attributes of the objects
    there that the trace made."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.counts: dict[int, int] = {}
        self.made: dict[int, dict[str, Any]] = {}
        self.inside: set[int] = set()
        self.outside: dict[int, Callable[[], Any]] = {}  # how those from outside are found

    def count(self, value: Any) -> None:
        if type(value) is Choice:
            for side in (value.then, value.orelse):
                self.count(side)
        elif self._is_outside(value):
            return
        elif type(value) is tuple or may_be_held(value):
            if type(value) is tuple or self._is_new(value):
                for _, item in _items(value):
                    self.count(item)
        elif is_made(self.trace, value):
            self._count_object(value)

    def _is_outside(self, value: Any) -> bool:
        """Whether it is a container from outside that the program has not changed."""
        trace, key = self.trace, id(value)
        if key in self.outside:
            return True
        is_container = may_be_held(value) or type(value) in (set, bytearray)
        if not is_container or key not in trace.world.reachable.reached or (
                key in trace.local.chosen or trace.world.containers.is_held(value)):
            return False
        reader = trace.world.reachable.container_at(value)
        if reader is not None:
            self.outside[key] = reader
        return reader is not None

    def _is_new(self, value: Any) -> bool:
        self.counts[id(value)] = self.counts.get(id(value), 0) + 1
        return self.counts[id(value)] == 1

    def _count_object(self, value: Any) -> None:
        if id(value) in self.inside:
            raise unsupported(f"returning a {type(value).__name__} that holds itself",
                              loc=self.trace.entry_loc, cure="return its parts")
        if self._is_new(value):
            parts = self.made[id(value)] = attributes_of(self.trace, value)
            self.inside.add(id(value))
            for item in parts.values():
                self.count(item)
            self.inside.discard(id(value))

    def check_chosen(self) -> None:
        """Refuse stand-ins for objects that data chose where the caller could tell: one of them
        outlives the call, or leaves it under another name too."""
        table, own = self.trace.part(ChosenOf), self.trace.local.objects
        left = Counter(list(self.made))
        standing = [table[key] for key in self.made if key in table]
        standing = [(x, sources) for x, sources in standing if not is_frozen(x)]
        left.update(key for _, sources in standing for key in {id(x) for x in sources})
        for instance, sources in standing:
            if any(left[id(x)] > 1 or id(x) not in own for x in sources):
                raise unsupported(
                    f"returning a {type(instance).__name__} that data chooses, where it may be one "
                    "that outlives the call or that is returned in another place too",
                    loc=self.trace.entry_loc, cure="return copies: copy.copy(x)")


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    return enumerate(value) if type(value) is tuple else items_in(value)


class _Links:
    def __init__(self, trace: Trace, places: _Places) -> None:
        self.held, self.counts, self.made = trace.world.containers.held, places.counts, places.made
        self.outside = places.outside
        self.seen: dict[int, First] = {}

    def of(self, value: Any, is_result: bool = False) -> Any:
        if type(value) is tuple:
            return tuple(self.of(item, is_result) for item in value)
        if type(value) is Choice:
            return Choice(value.test, *(
                self.of(side, is_result) for side in (value.then, value.orelse)))
        if id(value) in self.outside:
            return Again(self.outside[id(value)])
        if not may_be_held(value) and id(value) not in self.made:
            return value
        key = id(value)
        if key in self.held and is_result:
            return Again(self.held[key].read)
        if key in self.seen:
            return Again(partial(getattr, self.seen[key], "made"))
        if self.counts[key] == 1:
            return self._content(value, is_result)
        first = self.seen[key] = First()
        first.content = self._content(value, is_result)
        return first

    def _content(self, value: Any, is_result: bool) -> Any:
        if id(value) in self.made:
            parts = self.made[id(value)]
            return Made(type(value), tuple(parts), [self.of(v, is_result) for v in parts.values()])
        content = copy.copy(value)
        for at, item in list(items_in(value)):
            content[at] = self.of(item, is_result)
        return content
