"""State of exported functions: Variables, and what a call writes of objects and arrays outside.

It lives in a handle of the library (`CField` s of one struct), which all of its functions share.
A trace is for the values that it took for constant; a state that a call would leave otherwise is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.trace.guards.contents import ArrayContent
from fusec.trace.guards.measures import LayoutMeasure
from fusec.trace.places.outside_memory import OneArray
from fusec.trace.tracer import Traced

from .refusals import Refusal, RefusedError

Key = tuple[Any, ...]


@dataclass(eq=False)
class TraceState:
    """The state of one trace.

    ``keys``: by input from outside, what tells that an input of another trace is the same: a place,
    a Variable, the memory of an array; ``written`` are those that a call writes in place, and
    ``assigned``: by input the number of the result leaf that is its value from then on.
    ``names`` and ``variables`` are inputs, too, and ``arrays`` with their memory in this process.
    ``held``: arrays that two places hold, and ``contents`` those whose elements the code is made
    for, with their names.
    ``values``: by input assigned the graph output; ``guarded``: by place whose value the code is
    made for its name.
    """

    keys: dict[int, list[Key]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)
    assigned: dict[int, int] = field(default_factory=dict)
    variables: list[int] = field(default_factory=list)
    arrays: dict[int, np.ndarray] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    guarded: dict[Key, str] = field(default_factory=dict)
    held: list[tuple[Any, str]] = field(default_factory=list)
    contents: list[tuple[Any, str]] = field(default_factory=list)

    def own_keys(self, number: int) -> list[Key]:
        """Without the memory of one that has other memory after a call."""
        return [key for key in self.keys[number]
                if key[0] != "memory" or number not in self.assigned]

    @property
    def own(self) -> list[int]:
        """The inputs that this trace alone makes state."""
        return sorted({*self.written, *self.assigned, *self.variables})


def state_of(traced: Traced) -> TraceState:
    """Raises `RefusedError` for assignments that no struct in C can hold."""
    state = TraceState()
    values, first = traced.captured_now(), len(traced.graph.inputs) - len(traced.captured)
    for k, (source, value) in enumerate(zip(traced.captured, values, strict=True)):
        state.keys[first + k] = [*_keys(source)]
        if isinstance(lying := source() if callable(source) else source, np.ndarray):
            state.arrays[first + k] = lying
        node = traced.graph.made.inputs[first + k].node
        place = getattr(source, "place", None)
        state.names[first + k] = str(getattr(place, "title", None) or node.name)
        if value is None:
            raise RefusedError([Refusal(f"{state.names[first + k]}, which has no value", None)])
    for met in traced.variables:
        state.keys[met.input].append(("Variable", id(met.reference())))
        state.names[met.input] = met.title.removeprefix("Variable ")
        state.variables.append(met.input)
    state.written = [i for i in traced.updates if i >= first]
    read = {id(source) for source in traced.captured}
    state.guarded = {("place", *key): str(getattr(guard.read, "title", guard.read))
                     for guard in traced.guards if id(guard.read) not in read
                     and not isinstance(guard.measure, LayoutMeasure)
                     and (key := getattr(guard.read, "key", None)) is not None}
    state.held = [(guard.read.first(), guard.place) for guard in traced.guards
                  if isinstance(guard.read, OneArray)]
    state.contents = [(guard.read(), guard.place) for guard in traced.guards
                      if isinstance(guard.measure, ArrayContent)]
    refusals = [Refusal("a Variable that the function makes", None) for _ in traced.created]
    refusals += [*_assignments(traced, state)]
    if refusals:
        raise RefusedError(refusals)
    return state


def _keys(source: Any) -> Iterator[Key]:
    place = getattr(source, "place", None)
    if place is not None and getattr(place, "key", None) is not None:
        yield ("place", *place.key)
    value = source() if callable(source) else source
    if isinstance(value, np.ndarray) and value.nbytes:
        yield "memory", value.ctypes.data, value.shape, value.strides, value.dtype.str


def _assignments(traced: Traced, state: TraceState) -> Iterator[Refusal]:
    of_place = {key: i for i, keys in state.keys.items() for key in keys if key[0] == "place"}
    leaf = traced.treespec.num_leaves
    for place, tree in traced.assignments:
        title = getattr(place, "title", None) or str(place)
        key, number = getattr(place, "key", None), leaf
        leaf += tree.num_leaves
        result = traced.outputs[number] if tree.num_leaves else None
        if result is not None and tree.is_leaf() and result.kind == "const":
            if _is_same(result.value, place()):
                continue  # as before the call
            yield Refusal(f"assigning {result.value!r} to {title}, which code is made for", None)
            continue
        read = None if key is None else of_place.get(("place", *key))
        if not tree.is_leaf() or result is None or result.kind != "graph" or read is None:
            yield Refusal(f"assigning to {title}, which outlives the call and is no number or "
                          "array that the call reads", None)
            continue
        if key is not None and ("place", *key) in state.guarded:
            yield Refusal(f"assigning to {title}, whose value code is made for", None)
            continue
        yield from _checked(traced, title, read, result.index, bool(result.steps))
        state.assigned[read], state.values[read] = number, result.index


def _checked(
    traced: Traced, title: str, read: int, output: int, is_view: bool
) -> Iterator[Refusal]:
    graph = traced.graph.made
    before, after = graph.inputs[read].type, graph.outputs[output].type
    if before != after or is_view:
        yield Refusal(f"assigning to {title} a value of another type, {after} after {before}", None)


def _is_same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and isinstance(a, (bool, int, float, complex, str, type(None))) and (
        repr(a) == repr(b))


class StateCells:
    """Which inputs of all functions are the same state, found by their keys."""

    def __init__(self) -> None:
        self._of_key: dict[Key, int] = {}
        self._merged: dict[int, int] = {}
        self.count = 0

    def add(self, keys: list[Key]) -> None:
        """State with these keys."""
        known = sorted({self._root(self._of_key[key]) for key in keys if key in self._of_key})
        if not known:
            known = [self.count]
            self.count += 1
        for other in known[1:]:
            self._merged[other] = known[0]
        self._of_key |= dict.fromkeys(keys, known[0])

    def find(self, keys: list[Key]) -> int | None:
        """The state that has one of the keys; None: there is none."""
        found = {self._root(self._of_key[key]) for key in keys if key in self._of_key}
        return min(found, default=None)

    def _root(self, number: int) -> int:
        while number in self._merged:
            number = self._merged[number]
        return number


def found_cells(states: Sequence[TraceState]) -> StateCells:
    """The state of all functions of a library."""
    cells = StateCells()
    for _ in range(2):  # keys of one trace may join those of another
        for state in states:
            for number in state.own:
                cells.add(state.own_keys(number))
    return cells
