"""The spec of a plan's calls: argument leaves in, result leaves out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import contiguous_strides, packed_strides, words_of
from fusec.core.occupancy import Occupancy, Use
from fusec.core.records import dataclass
from fusec.ir import Graph
from fusec.ir.sizes.bindings import Bindings


@dataclass(frozen=True)
class GeneratorKind:
    """A random generator, by its class and that of its bit generator (None: of one's own)."""

    type: Any
    bits: Any  # a class or None

    @staticmethod
    def of(generator: Any) -> GeneratorKind:
        bits = getattr(generator, "bit_generator", None)
        return GeneratorKind(type(generator), None if bits is None else type(bits))


@dataclass(frozen=True)
class LeafSpec:
    """One argument leaf: an input of the graph (``input`` >= 0) or a static Python value.

    ``is_weak``: the value is a weak reference to it, and its end the plan's.  ``generator``: it is
    any random generator of that kind, from which each call draws.
    """

    input: int
    value: Any = None
    alias_of: int = -1  # leaf with the same memory
    is_weak: bool = False
    generator: GeneratorKind | None = None

    @property
    def object(self) -> Any:
        """The static value itself."""
        return self.value() if self.is_weak else self.value


@dataclass(frozen=True)
class ResultSpec:
    """One result leaf: ``graph`` output, ``input`` memory, ``fresh`` copy or ``const``."""

    kind: str
    index: int = 0
    views: tuple[Callable[[np.ndarray, Bindings], np.ndarray], ...] = ()
    value: Any = None


@dataclass(frozen=True)
class CallSpec:
    """The spec of an executable's calls besides the plan."""

    name: str
    leaves: tuple[LeafSpec, ...]
    paths: tuple[str, ...]
    input_types: tuple[Any, ...]
    input_strides: tuple[tuple[int, ...], ...]
    output_types: tuple[Any, ...]
    captured: tuple[Any, ...]  # from outside: arrays, or functions that read a value at each call
    results: tuple[ResultSpec, ...]
    updates: tuple[int, ...]
    bare: bool  # one leaf, not in a tuple
    calls_host: bool = False  # whether steps call objects of the user's
    code: tuple[tuple[Any, Any], ...] = ()  # functions, and the code that they must go on to have
    read_only: frozenset[int] = frozenset()  # inputs from outside, arrays that cannot be written
    # Of inputs of which the trace asked whether they may be written, what it was.
    asked_flags: frozenset[tuple[int, bool]] = frozenset()
    apart: frozenset[tuple[int, int]] = frozenset()  # inputs that are not one array
    # Inputs that are buffers of Variables, which stay where they are and which nothing else shares.
    variables: tuple[tuple[int, Occupancy], ...] = ()
    # Of results of which the caller gets one side: the test, the side where it holds, the other.
    sides: tuple[tuple[int, range, range], ...] = ()

    @property
    def first_captured(self) -> int:
        """The input that is the first of those from outside; the arguments' come before."""
        return len(self.input_types) - len(self.captured)

    def inputs_of(self, leaves: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        """The graph's inputs: a call's leaves, then values captured from outside."""
        leaf_of = {spec.input: leaf for spec, leaf in zip(self.leaves, leaves, strict=True)}
        first_captured = len(self.input_types) - len(captured)
        return [*(leaf_of.get(i) for i in range(first_captured)), *captured]

    def is_packed(self, number: int) -> bool:
        """Whether an input that is an array lies without gaps, and forwards."""
        type_, strides = self.input_types[number], self.input_strides[number]
        return bool(strides == packed_strides(strides, type_.shape, type_.dtype.itemsize))

    @property
    def generators(self) -> list[tuple[int, Any]]:
        """The leaves that are generators, with the class of bit generator that each must have."""
        return [(i, leaf.generator.bits) for i, leaf in enumerate(self.leaves)
                if leaf.generator is not None and leaf.generator.bits is not None]

    @property
    def native_leaves(self) -> tuple[LeafSpec, ...]:
        """The native launcher's inputs: the leaves, and values that calls read from outside."""
        return (*self.leaves, *(LeafSpec(number) for number, _ in self.read_outside))

    @property
    def read_outside(self) -> list[tuple[int, Any]]:
        """The values read from outside at each call, by input: Variables stay where they are."""
        fixed = {number for number, _ in self.variables}
        return [(number, captured) for number, captured in enumerate(
            self.captured, self.first_captured) if number not in fixed]

    @property
    def written_outside(self) -> list[Any]:
        """The arrays from outside that a call writes."""
        return [captured() if callable(captured) else captured
                for number, captured in self.read_outside if number in self.updates]

    @property
    def holds(self) -> tuple[Use, ...]:
        """The Variables that a call uses, and whether it writes them."""
        return tuple((of, number in self.updates) for number, of in self.variables)


@functools.lru_cache(256)  # shapes are many
def cells_of(types: tuple[Any, ...]) -> dict[int, int]:
    """Cell of each scalar input: the planner numbers them in input order first."""
    cells: dict[int, int] = {}
    number = 0
    for i, type_ in enumerate(types):
        if type_.kind != "array":
            cells[i] = number
            number += words_of(type_.dtype)
    return cells


def cell_count(types: tuple[Any, ...]) -> int:
    """Cells of all scalar inputs."""
    return sum(words_of(t.dtype) for t in types if t.kind != "array")


def spec_of(graph: Graph) -> CallSpec:
    """That of a graph without a Python function: its inputs are the leaves."""
    inputs, outputs = graph.inputs, graph.outputs
    strides = [contiguous_strides(v.shape, v.dtype.itemsize) for v in inputs]
    return CallSpec(
        graph.name, tuple(LeafSpec(i) for i in range(len(inputs))),
        tuple(v.node.name for v in inputs), tuple(v.type for v in inputs), tuple(strides),
        tuple(v.type for v in outputs), (),
        tuple(ResultSpec("graph", i) for i in range(len(outputs))),
        tuple(i for i, _ in graph.updates), bare=False,
    )
