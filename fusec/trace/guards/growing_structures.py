"""Tuples, lists and dicts that hold the same parts over and over: ``c = (c, c)``, forty times.

Python keeps each part once.  A trace goes over structures leaf by leaf, to the places of which
there are 2**40; it says so before it tries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from fusec.errors import unsupported
from fusec.ir.graph import Loc

MOST_LEAVES = 1 << 16  # in so many places; going over them takes about a second
_REPEATED = 16  # so many places for each item that is in memory; tables of a few rows have less
_FEW = 8  # after so many iterations only every eighth is looked at, until something grows
_BRACKETS: dict[type, tuple[str, str]] = {tuple: ("(", ")"), list: ("[", "]"), dict: ("{", "}")}
_CONTAINERS = tuple(_BRACKETS)


class Growth:
    """The values of one loop's variables, from iteration to iteration."""

    def __init__(self) -> None:
        self._done = 0
        self._grows = False

    def after_iteration(self, read: Callable[[], Mapping[str, Any]], trace: Any) -> None:
        """One more is done.  Raises `UnsupportedError` for a variable that has got too large.

        ``read`` gives the variables' values, and makes the loop the place that the trace is at.
        """
        self._done = done = self._done + 1
        if not self._grows and done & (done - 1 if done < _FEW else _FEW - 1):
            return
        for name, value in read().items():
            if type(value) in _CONTAINERS:
                places, items = places_and_items(value)
                self._grows = self._grows or places > 2 * items
                if is_too_large(places, items):
                    raise _refusal(f"a loop whose variable {name}", f"{done} iterations",
                                   value, places, trace.loc)


def checked_result(result: Any, loc: Loc | None) -> Any:
    """The result.  Raises `UnsupportedError` where it has too many leaves."""
    if type(result) in _CONTAINERS:
        places, items = places_and_items(result)
        if is_too_large(places, items):
            raise _refusal("a result that", "the call", result, places, loc)
    return result


def is_too_large(places: int, items: int) -> bool:
    return places >= MOST_LEAVES and places >= _REPEATED * items


def places_and_items(structure: Any) -> tuple[int, int]:
    """The leaves of a structure, those of a part as often as it lies in it; and how many items the
    containers have that are in memory."""
    places: dict[int, int] = {}  # of the containers that have been gone over
    met: set[int] = set()
    todo, items = [structure], 0
    while todo:
        container = todo.pop()
        parts = _parts(container)
        if id(container) not in met:  # its parts come first
            met.add(id(container))
            inner = [x for x in parts if type(x) in _CONTAINERS and id(x) not in met]
            todo += [container, *inner]
            items += len(parts)
        elif id(container) not in places:
            places[id(container)] = sum(
                places.get(id(x), 1) if type(x) in _CONTAINERS else 1 for x in parts)
    return places[id(structure)], items


def _parts(container: Any) -> Collection[Any]:
    return container.values() if type(container) is dict else container


def _refusal(what: str, after: str, value: Any, places: int, loc: Loc | None) -> Exception:
    return unsupported(
        f"{what} holds the same parts over and over", loc=loc,
        cure="keep what grows in an array, or in one list that the loop appends to",
        values=[(f"after {after}", f"{places:,} leaves"), ("structure", outline(value))])


def outline(structure: Any, depth: int = 3) -> str:
    """Its outer parts as text: ``((., .), (., .))``."""
    if type(structure) not in _CONTAINERS:
        return "."
    if not depth:
        return "..."
    inner = ", ".join(outline(x, depth - 1) for x in list(_parts(structure))[:3])
    more = ", ..." if len(structure) > 3 else ""
    opening, closing = _BRACKETS[type(structure)]
    return f"{opening}{inner}{more}{closing}"


__all__ = ["Growth", "checked_result"]
