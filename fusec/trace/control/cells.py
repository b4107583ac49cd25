"""The user's local variables as control flow sees them: the cells that converted parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CellType
from typing import Any


class _Unbound:
    """What a variable holds that has no value."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND: Any = _Unbound()


class Variables:
    """Cells by name, read and written as a whole."""

    def __init__(self, names: Iterable[str], *functions: Callable[..., Any]) -> None:
        found: dict[str, CellType] = {}
        for function in functions:
            code: Any = function.__code__
            closure = function.__closure__ or ()
            found.update(zip(code.co_freevars, closure, strict=True))
        self.cells = {name: found[name] for name in names if name in found}

    def read(self) -> dict[str, Any]:
        """What every variable holds."""
        return {name: _contents(cell) for name, cell in self.cells.items()}

    def write(self, values: Mapping[str, Any]) -> None:
        """Bind every variable that ``values`` names; `UNBOUND` unbinds."""
        for name, value in values.items():
            cell = self.cells[name]
            if value is not UNBOUND:
                cell.cell_contents = value
            elif _contents(cell) is not UNBOUND:
                del cell.cell_contents


def bound_by(function: Callable[..., Any]) -> list[str]:
    """Names that a converted part may bind: all it shares with the user's function."""
    return list(function.__code__.co_freevars)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND
