"""The parts of a trace, by subject: its inputs, its record, its errors and its objects."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir import Loc, Node, Value
from fusec.ops.build import Namer
from fusec.ops.calls.index_checks import Use

from .assigned_names import AssignedNames
from .collaborators import Containers, Guard, OuterNames, OwnArrays, Reachable, Watch
from .storage import Storage


class Feeds:
    """The graph's inputs: first the arguments', then those read from outside."""

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.storages: list[Storage | None] = []  # by input position
        self.outside: dict[int, str] = {}  # what those read from outside are
        self.paths = Namer()  # how the program reaches each
        # These: arrays, or functions that read a value.
        self.captured: list[Any] = []
        self.by_array: dict[int, Storage] = {}  # their storages
        self.mapped: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        # Of arrays that attributes hold, by id: what reads them anew, and their names in messages.
        self.readers: dict[int, Callable[[], Any]] = {}
        self.titles: dict[int, str] = {}
        self.layout_of: Callable[[str, np.ndarray], Any] = lambda path, array: None  # with symbols


class TraceRecord:
    """The record beside nodes that have users; control flow takes parts of it back."""

    def __init__(self) -> None:
        self.checks: list[Node] = []  # nodes with effects, in order
        # Every write: the storage, its value and version before.
        self.journal: list[tuple[Storage, Value, int, Loc | None]] = []
        # When each side of a branch and body of a loop around what is being traced began.
        self.regions: list[int] = []
        self.index_uses: list[Use] = []  # that must be in range
        self.loops = 0  # of the graph, around what is being traced
        self.notes: list[str] = []  # decisions that `fusec.explain` tells
        # The latest refusal to tell Python what a value is: C code may put an error of its own in
        # its place.
        self.asked: Exception | None = None


class World:
    """Objects of the program from before the call, beside its arguments."""

    outer_names: OuterNames  # given by the hooks, as are the next three
    containers: Containers
    reachable: Reachable
    watch: Watch

    def __init__(self) -> None:
        self.assigned_names = AssignedNames()
        self.guards: dict[tuple[int, str], Guard] = {}
        self.filters: Any = warnings.filters  # of warnings, as the call found them


class Local:
    """The program's own objects that are no nodes: arrays by plain NumPy, objects, lists, dicts."""

    memory: OwnArrays  # given by the tracer

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray] = {}
        self.objects: dict[int, Any] = {}
        self.births: dict[int, int] = {}
        self.chosen: dict[int, tuple[Any, bool]] = {}  # see `Trace.note_chosen`
        self.flats: dict[int, Any] = {}  # ``x.flat``, and x
        self.changes = 0  # of all these, as Python changes them
