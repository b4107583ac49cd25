"""The user's local variables as control flow sees them: the cells that converted parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CellType
from typing import Any

from ..choice.choice import UNBOUND
from ..choice.tails import Tail
from ..rewrite.definitions import SETTER
from .attributes import Attributes


class Variables:
    """Cells by name, read and written as a whole, and with them the attributes that are assigned,
    by names of the form ``Class.attribute``, and outer names, ``global name``."""

    def __init__(
        self, attributes: Attributes, names: Iterable[str], *functions: Callable[..., Any]
    ) -> None:
        self.attributes, self.outer = attributes, attributes.trace.world.outer_names
        found: dict[str, CellType] = {}
        for function in functions:
            code: Any = function.__code__
            closure = function.__closure__ or ()
            found.update(zip(code.co_freevars, closure, strict=True))
        self.cells = {name: found[name] for name in names
                      if name in found and not self.outer.is_cell(found[name])}

    def read(self) -> dict[str, Any]:
        """What every variable holds."""
        cells = {name: contents(cell) for name, cell in self.cells.items()}
        return cells | self.outer.read() | self.attributes.current

    def differ_from(self, values: Mapping[str, Any]) -> bool:
        """Whether a variable was bound since `read` gave these values."""
        return any(value is not values.get(name, UNBOUND) for name, value in self.read().items())

    def restore(self, values: Mapping[str, Any]) -> None:
        """Bind everything as it was when `read` gave these values."""
        self.write({name: value for name, value in values.items() if name in self.cells})
        self.outer.restore(values, [id(cell) for cell in self.cells.values()])
        self.attributes.restore({n: v for n, v in values.items() if n not in self.cells})

    def needed(self, names: Iterable[str]) -> list[str]:
        """Of some names, and all attributes and outer names, those that are variables here."""
        return [*(n for n in self.cells if n in set(names)), *self.others]

    @property
    def others(self) -> list[str]:
        """Those that anything may read later: attributes and outer names."""
        return [*self.outer.places, *self.attributes.current]

    def is_tail(self, name: str) -> bool:
        """Whether it is what a list gets that is only appended to."""
        return type(self.outer.places.get(name)) is Tail

    def left_by(self, held: Mapping[str, Any], name: str) -> Any:
        """What a variable holds at the end of a side of a branch, which may not have met it."""
        if name in held:
            return held[name]
        if name in self.attributes.initial:
            return self.attributes.initial[name]
        place = self.outer.places.get(name)
        own = [n for n, cell in self.cells.items() if place is not None and cell is place.scope]
        return held[own[0]] if own else self.outer.initial.get(name, UNBOUND)

    def write(self, values: Mapping[str, Any]) -> None:
        """Bind every variable that ``values`` names; `UNBOUND` unbinds."""
        for name, value in values.items():
            if name in self.cells:
                put(self.cells[name], value)
            elif name in self.outer.places:
                self.outer.places[name].value = value
            else:
                self.attributes.current[name] = value


def bound_by(function: Callable[..., Any]) -> list[str]:
    """Names that a converted part may bind: all it shares with the user's function."""
    return list(function.__code__.co_freevars)


def setters_of(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions that bind a name for an expression in this one, by that name."""
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name.removeprefix(SETTER): cell.cell_contents for name, cell in closure
            if name.startswith(SETTER)}


def put(cell: CellType, value: Any) -> None:
    """Bind a variable; `UNBOUND` unbinds it."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif contents(cell) is not UNBOUND:
        del cell.cell_contents


def contents(cell: CellType) -> Any:
    """What a variable holds; `UNBOUND` for nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND
