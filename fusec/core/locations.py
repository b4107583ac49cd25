"""Places in the user's source."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from types import FrameType
from typing import Any, NamedTuple


def titled(file: str) -> str:
    """A file as people know it: IPython calls what a cell was compiled from ``Cell In[3]``."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    title_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    title = None if title_of is None else title_of(file)  # of a cell two words
    return file if title is None else " ".join(title)


def is_titling(frame: FrameType) -> bool:
    """Whether a call is one of those by which IPython answers `titled`: none of the program's."""
    outer: FrameType | None = frame
    while outer is not None and outer.f_code is not titled.__code__:
        outer = outer.f_back
    return outer is not None


def places_text(lines: Iterable[tuple[str, int]]) -> str:
    """``prog.py:3, 5-7; other.py:2`` of files' lines: each once, neighbours joined."""
    groups = groupby(sorted(set(lines)), key=lambda pair: pair[0])
    return "; ".join(f"{file}:{_ranges([line for _, line in group])}" for file, group in groups)


def _ranges(numbers: Sequence[int]) -> str:
    """``3, 5-7`` for the sorted numbers 3, 5, 6, 7: a run has a constant number minus rank."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    spans = [[number for _, number in run] for _, run in runs]
    return ", ".join(f"{s[0]}-{s[-1]}" if len(s) > 1 else str(s[0]) for s in spans)


class Loc(NamedTuple):
    """A place in the user's source: file, line (from 1), column (from 0, -1 unknown), function."""

    file: str
    line: int
    col: int = -1
    function: str = ""
    end_col: int = -1

    def __str__(self) -> str:
        return f"{titled(self.file)}:{self.line}"


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
