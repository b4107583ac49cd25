"""The parts of a trace, by subject: what it reads, has recorded, meets and makes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ops.index_checks import Use

from .assigned_names import AssignedNames
from .collaborators import Attributes, Containers, Guard, OuterNames, OwnArrays, Reachable, Watch
from .storage import Storage


@dataclass
class Feeds:
    """The graph's inputs: first the arguments', then what is read from outside."""

    inputs: list[Value] = field(default_factory=list)
    storages: list[Storage | None] = field(default_factory=list)  # by input position
    outside: dict[int, str] = field(default_factory=dict)  # what those read from outside are
    # These: arrays, or functions that read a value.
    captured: list[Any] = field(default_factory=list)
    by_array: dict[int, Storage] = field(default_factory=dict)  # their storages
    mapped: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    # Of arrays that attributes hold, by id: what reads them anew, and their names in messages.
    readers: dict[int, Callable[[], Any]] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)


@dataclass
class Record:
    """What has been recorded beside nodes that have users; control flow takes parts of it back."""

    checks: list[Node] = field(default_factory=list)  # nodes with effects, in order
    # Every write: the storage, its value and version before.
    journal: list[tuple[Storage, Value, int]] = field(default_factory=list)
    # When each side of a branch and body of a loop around what is being traced began.
    regions: list[int] = field(default_factory=list)
    index_uses: list[Use] = field(default_factory=list)  # that must be in range
    loops: int = 0  # of the graph, around what is being traced
    notes: list[str] = field(default_factory=list)  # decisions that `fusec.explain` tells


@dataclass
class World:
    """What the program meets that was there before the call, beside its arguments."""

    attributes: Attributes = field(init=False)
    outer_names: OuterNames = field(init=False)
    containers: Containers = field(init=False)
    reachable: Reachable = field(init=False)
    watch: Watch = field(init=False)
    assigned_names: AssignedNames = field(default_factory=AssignedNames)
    guards: dict[tuple[int, str], Guard] = field(default_factory=dict)
    # Of warnings, as the call found them.
    filters: Any = field(default_factory=lambda: warnings.filters)


@dataclass
class Local:
    """What the program makes that is no node: arrays by plain NumPy, objects, lists, dicts."""

    memory: OwnArrays = field(init=False)
    arrays: dict[int, np.ndarray] = field(default_factory=dict)
    objects: dict[int, Any] = field(default_factory=dict)
    births: dict[int, int] = field(default_factory=dict)
    chosen: dict[int, tuple[Any, bool]] = field(default_factory=dict)  # see `Trace.note_chosen`
    flats: dict[int, Any] = field(default_factory=dict)  # ``x.flat``, and x
    changes: int = 0  # of all these, as Python changes them


__all__ = ["Feeds", "Local", "Record", "World"]
