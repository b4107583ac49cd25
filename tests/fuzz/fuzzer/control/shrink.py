"""A failing control program made short, by the changes of `trees`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ..shrink import kind_of
from .program import ControlProgram
from .trees import simpler

PLAIN = ("x = r.integers(-40, 40, 12) / 8\ny = r.integers(-40, 40, 12) / 8\n"
         "A = r.integers(-40, 40, (4, 8)) / 8\nu = r.integers(-9, 50, 8)")


def shrink_control(
    program: ControlProgram, fails: Callable[[ControlProgram], str | None], seconds: float = 40.0
) -> ControlProgram:
    """The shortest program found in that time that fails as ``program`` does."""
    first, end = fails(program), time.monotonic() + seconds
    if first is None:
        return program
    kind, changed = kind_of(first), True

    def is_same(candidate: ControlProgram) -> bool:
        text = fails(candidate)
        return text is not None and kind_of(text) == kind

    while changed:
        changed = False
        plain = replace(program, layout=PLAIN)
        for candidate in (*([plain] if plain != program else []),
                          *map(program.with_source, simpler(program.source))):
            if time.monotonic() > end:
                return program
            if is_same(candidate):
                program, changed = candidate, True
                break
    return program
