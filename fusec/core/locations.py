"""Places in the user's source."""

from __future__ import annotations

from typing import NamedTuple


class Loc(NamedTuple):
    """A place in the user's source: file, line (from 1), column (from 0, -1 unknown), function."""

    file: str
    line: int
    col: int = -1
    function: str = ""
    end_col: int = -1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class CaughtLoc(Loc):
    """A place inside ``try`` blocks: the classes that each catches, and where, innermost first."""

    handlers: tuple[tuple[tuple[type[BaseException], ...], Loc], ...] = ()


class GradientLoc(Loc):
    """The place of an operation whose derivative a node computes; equal to that place."""

    handlers: tuple[tuple[tuple[type[BaseException], ...], Loc], ...] = ()


def of_gradient(loc: Loc | None) -> Loc | None:
    """The place of a node that a derivative adds."""
    if loc is None or type(loc) is GradientLoc:
        return loc
    place = GradientLoc(*loc)
    if type(loc) is CaughtLoc:
        place.handlers = loc.handlers
    return place
