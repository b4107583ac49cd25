"""The user's local variables as control flow sees them: the cells that converted parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..guards.places import UNBOUND, Cell, OuterPlace, Places
from ..rewrite.definitions import SETTER
from ..values.trace import Trace


class CellVariables:
    """Cells by name, read and written as a whole, and with them the attributes that are assigned,
    by names of the form ``Class.attribute``, and outer names, ``global name``."""

    def __init__(self, trace: Trace, names: Iterable[str], *functions: Callable[..., Any]) -> None:
        self.places = trace.part(Places)
        cells: dict[str, Cell] = {}
        for function in functions:
            code: Any = function.__code__
            cells.update((name, Cell(cell, name)) for name, cell in zip(
                code.co_freevars, function.__closure__ or (), strict=True))
        self.cells = {name: cells[name] for name in names
                      if name in cells and cells[name] not in self.places}

    def read(self) -> dict[str, Any]:
        """The values of all variables."""
        return {name: cell() for name, cell in self.cells.items()} | self.places.read()

    def differ_from(self, values: Mapping[str, Any]) -> list[str]:
        """The variables that were bound since `read` gave these values, or since they were met."""
        first = self.places.initial
        return [name for name, value in self.read().items()
                if value is not values.get(name, first.get(name, UNBOUND))]

    def restore(self, values: Mapping[str, Any]) -> None:
        """Bind everything as it was when `read` gave these values."""
        self.write({name: value for name, value in values.items() if name in self.cells})
        self.places.restore(values, [id(cell.scope) for cell in self.cells.values()])

    def needed(self, names: Iterable[str]) -> list[str]:
        """Of some names, and all attributes and outer names, those that are variables here."""
        return [*(n for n in self.cells if n in set(names)), *self.others]

    @property
    def others(self) -> list[str]:
        """Those that anything may read later: attributes and outer names."""
        return self.places.titles

    def ids(self, names: Iterable[str]) -> set[int]:
        """Those of the cells of these names."""
        return {id(self.cells[name].scope) for name in names if name in self.cells}

    def kind(self, name: str) -> type[OuterPlace]:
        return type(self.cells.get(name) or self.places.by_title[name])

    def left_by(self, held: Mapping[str, Any], name: str) -> Any:
        """The value of a variable at the end of a side of a branch, which may not have met it."""
        if name in held:
            return held[name]
        place = self.places.by_title.get(name)
        own = [n for n, c in self.cells.items() if place is not None and c.scope is place.scope]
        return held[own[0]] if own else self.places.initial.get(name, UNBOUND)

    def write(self, values: Mapping[str, Any]) -> None:
        """Bind every variable that ``values`` names; `UNBOUND` unbinds."""
        for name, value in values.items():
            (self.cells.get(name) or self.places.by_title[name]).put(value)


def bound_by(function: Callable[..., Any]) -> list[str]:
    """Names that a converted part may bind: all it shares with the user's function."""
    return list(function.__code__.co_freevars)


def setters_of(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions that bind a name for an expression in this one, by that name."""
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name.removeprefix(SETTER): cell.cell_contents for name, cell in closure
            if name.startswith(SETTER)}
