"""The benchmark programs, one module each; ``all_programs()`` is the list."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Iterable

from fusec.core.code_roles import AS_USERS

from ..measuring.program import Program

FUSEC_ROLE = AS_USERS

NAMES = (
    "eos", "black_scholes", "tone_map", "unsharp", "kmeans", "logreg", "nbody", "hdiff",
    "softmax", "layernorm_gelu", "mandelbrot",
)


@functools.cache
def program(name: str) -> Program:
    """The program of that name; raises ``KeyError`` with close matches when there is none."""
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, 3) or NAMES
        raise KeyError(f"no benchmark program {name!r}; known: {', '.join(close)}")
    return importlib.import_module(f"{__name__}.{name}").PROGRAM


def all_programs(names: Iterable[str] = ()) -> tuple[Program, ...]:
    """The named programs, or every one."""
    return tuple(program(name) for name in (tuple(names) or NAMES))
