"""What running a plan needs to know about its calls: argument leaves in, result leaves out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusec.ir.dims import Bindings


@dataclass(frozen=True)
class LeafSpec:
    """One argument leaf: an input of the graph (``input`` >= 0) or a static Python value."""

    input: int
    value: Any = None
    alias_of: int = -1  # leaf with the same memory


@dataclass(frozen=True)
class ResultSpec:
    """One result leaf: ``graph`` output, ``input`` memory, ``fresh`` copy or ``const``."""

    kind: str
    index: int = 0
    views: tuple[Callable[[np.ndarray, Bindings], np.ndarray], ...] = ()
    value: Any = None


@dataclass(frozen=True)
class CallSpec:
    """What an executable needs to know about calls besides the schedule."""

    name: str
    leaves: tuple[LeafSpec, ...]
    paths: tuple[str, ...]
    input_types: tuple[Any, ...]
    input_strides: tuple[tuple[int, ...], ...]
    output_types: tuple[Any, ...]
    captured: tuple[Any, ...]  # arrays, or functions that read a value at each call
    results: tuple[ResultSpec, ...]
    updates: tuple[int, ...]
    bare: bool  # one result, not in a tuple
    calls_host: bool = False  # whether steps call objects of the user's


@functools.cache
def cells_of(types: tuple[Any, ...]) -> dict[int, int]:
    """Cell of each scalar input: the scheduler numbers them in input order first."""
    scalars = [i for i, t in enumerate(types) if t.kind != "array"]
    return {i: number for number, i in enumerate(scalars)}


def cell_of_input(spec: CallSpec, index: int) -> int:
    return cells_of(spec.input_types)[index]
