"""Results of functions that are exported: each an array of its own, in C order.

One whose size the data decides lies at the begin of an array of the largest size that it can have;
how long it is along such an axis is a result, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import contiguous_strides
from fusec.core.records import dataclass, field
from fusec.ir import Graph, Value
from fusec.ir.sizes.dims import Dim, symbols_of
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied, expressions
from fusec.ops import Builder, Namer
from fusec.ops.calls.checks import has_effects
from fusec.trace.boundary.results import ResultLeaf
from fusec.trace.tracer import Traced
from fusec.trace.values.storage import ViewStep

from .bounds import RunBounds
from .refusals import Refusal, RefusedError
from .states import TraceState

_INDEX = np.dtype(np.int64)
_NOT_OPS = ("ReadOnly", "Itself")
_NUMBERS = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))


@dataclass(frozen=True)
class ArgumentItself:
    """A result that is the argument of that graph input."""

    index: int
    path: str

    def __str__(self) -> str:
        return f"the argument {self.path}"


@dataclass(frozen=True, eq=False)
class NoNumber:
    """A result that is a text, None, or another object that C does not have."""

    value: Any

    def __str__(self) -> str:
        return f"always {self.value!r}"


@dataclass(eq=False)
class ExportedResults:
    """The ``graph`` whose outputs are the results; ``leaves``: of each result leaf its output, or
    what it is that has none; ``counts``: of an output by axis the output that says how many
    of its elements there are; ``assigned``: of an output the input from outside whose value it is
    from then on."""

    graph: Graph
    leaves: list[int | ArgumentItself | NoNumber]
    counts: dict[int, dict[int, int]]
    assigned: dict[int, int]


def with_results(traced: Traced, state: TraceState) -> ExportedResults:
    """Raises `RefusedError` for a result that has no largest size."""
    return _ResultGraph(traced, state).made()


class _ResultGraph:
    def __init__(self, traced: Traced, state: TraceState) -> None:
        self.state = state
        self.traced, self.graph = traced, traced.graph.made
        self.builder = Builder(Namer(n.name for n in self.graph.nodes))
        self.bounds = RunBounds(self.builder)
        self.updated = dict(self.graph.updates)
        self.values: list[Value] = []
        self.counts: dict[int, dict[int, int]] = {}

    def made(self) -> ExportedResults:
        traced, graph = self.traced, self.graph
        if "Choice[" in str(traced.treespec):
            raise RefusedError([Refusal("a result of one of several kinds, as the data decides",
                                        graph.outputs[0].node.loc if graph.outputs else None)])
        leaves = [self._leaf(x) for x in traced.outputs[: traced.treespec.num_leaves]]
        updates, assigned = [*graph.updates], dict[int, int]()
        for number, leaf in self.state.assigned.items():
            value = graph.outputs[traced.outputs[leaf].index]
            if value.type.kind == "array":
                updates.append((number, value))
            else:
                assigned[len(self.values)] = number
                self.values.append(value)
        effects = [n for n in graph.nodes if has_effects(n)]
        return ExportedResults(Graph.build(
            graph.inputs, self.values, updates, graph.name, effects), leaves, self.counts, assigned)

    def _leaf(self, leaf: ResultLeaf) -> int | ArgumentItself | NoNumber:
        if leaf.kind not in ("graph", "input"):
            known = self._number(leaf.value)
            return NoNumber(leaf.value) if known is None else self._added(known)
        steps = [s for s in leaf.steps if s.op not in _NOT_OPS]
        inputs = self.graph.inputs
        if leaf.kind == "input" and not leaf.steps and leaf.index in self.traced.positions:
            return ArgumentItself(leaf.index, inputs[leaf.index].node.attrs["path"])
        value = self.graph.outputs[leaf.index] if leaf.kind == "graph" else self.updated.get(
            leaf.index, inputs[leaf.index])
        if symbols_of(value.shape):
            raise RefusedError([Refusal("a result whose size the data decides", value.node.loc)])
        self.builder.loc, self.builder.device = value.node.loc, value.node.device
        indices = [self.bounds.number(self.graph.outputs[i]) for i in leaf.indices]
        seen = _SeenResult(self.bounds, value, indices)
        for step in steps:
            seen.take(step)
        value = seen.value
        if value.type.kind == "array" and (steps or leaf.kind == "input" or not _lies_in_order(
                self.traced.output_strides[leaf.index], value)):
            value = self.builder.emit("Copy", value)
        number = self._added(value)
        for axis, count in sorted(seen.counts.items()):
            self.counts.setdefault(number, {})[axis] = len(self.values)
            self.values.append(self.builder.emit("Cast", count, dtype=_INDEX, kind="scalar"))
        return number

    def _added(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _number(self, given: Any) -> Value | None:
        """A number that the program does not compute from its arguments' elements, in the dtype
        that NumPy has for it; None where it is no number that C has."""
        sample = given.hint if type(given) is Symbolic else given
        if not isinstance(sample, (bool, int, float, complex, np.bool_, np.number)):
            return None
        dtype = np.asarray(sample).dtype
        if dtype not in _NUMBERS:
            return None
        # No Cast node: folding one of a size would make the plan that size's.
        return self.builder.emit("Const", value=applied(dtype.type, given), kind="scalar")


@dataclass(eq=False)
class _SeenResult:
    """A result while its views are taken one after the other: ``value`` has the largest size,
    ``counts`` by axis the number of elements that there are.  ``indices`` are values that the run
    decides, in the order in which steps name them; ``sizes`` those of symbols."""

    bounds: RunBounds
    value: Value
    indices: list[Value]
    counts: dict[int, Value] = field(default_factory=dict)
    sizes: dict[str, Value] = field(default_factory=dict)

    @property
    def builder(self) -> Builder:
        return self.bounds.builder

    def take(self, step: ViewStep) -> None:
        attrs = dict(step.attrs)
        if step.op == "Window":
            self._window(**attrs, places=[self.indices.pop(0) for _ in step.operands])
        elif step.op == "Slice" and self.counts:
            self._slice(**attrs)
        elif step.operands or self.counts:
            raise RefusedError([Refusal(
                f"a result whose size the data decides, seen through {step.op}", self.builder.loc)])
        else:
            self.value = step.apply(self.builder, self.value)

    def _window(
        self, axes: Sequence[int], steps: Sequence[int], sizes: Sequence[Any],
        places: Sequence[Value],
    ) -> None:
        half = len(axes)
        given = iter(places[2 * half:])
        if any(axis in self.counts for axis in axes):
            raise RefusedError([Refusal(
                "a result whose size the data decides, in a part whose bounds it decides",
                self.builder.loc)])
        for axis, step, size, first, count in zip(
                axes, steps, sizes, places, places[half:], strict=False):
            self._pick(axis, first, self._const(step) if step else next(given))
            self.counts[axis] = count
            name = size.name if isinstance(size, Dim) else None
            if name is not None:
                self.sizes[name] = count

    def _slice(self, starts: Sequence[Any], steps: Sequence[int], sizes: Sequence[Any]) -> None:
        for axis, (start, step, size) in enumerate(zip(starts, steps, sizes, strict=True)):
            if axis not in self.counts and not symbols_of((start, size)):
                if (start, step) != (0, 1) or size != self.value.shape[axis]:
                    self._part(axis, start, step, size)
            elif axis in self.counts:
                self._pick(axis, self._number(start), self._const(step))
                self.counts[axis] = self._number(size)
            else:
                raise RefusedError([Refusal("a part that another size decides", self.builder.loc)])

    def _part(self, axis: int, start: Any, step: int, size: Any) -> None:
        rank = self.value.type.rank
        starts, steps, sizes = [0] * rank, [1] * rank, [*self.value.shape]
        starts[axis], steps[axis], sizes[axis] = start, step, size
        self.value = self.builder.emit("Slice", self.value, starts=tuple(starts),
                                       steps=tuple(steps), sizes=tuple(sizes))

    def _pick(self, axis: int, first: Value, step: Value) -> None:
        """Every ``step``-th element from ``first`` on; beyond the last one any."""
        size, emit = self.value.shape[axis], self.builder.emit
        if size == 0:
            return
        index = emit("Add", emit("Mul", emit("Iota", size=size, dtype=_INDEX), step), first)
        index = emit("Maximum", emit("Minimum", index, self._const(size - 1)), self._const(0))
        self.value = emit("Gather", self.value, index, axes=(axis,), at=axis)

    def _const(self, number: Any) -> Value:
        return self.builder.const(number)

    def _number(self, size: Any) -> Value:
        """A size that follows from the counts."""
        return self.bounds.of_size(size, self.sizes)


def _lies_in_order(strides: Sequence[Any], value: Value) -> bool:
    dense = contiguous_strides(value.shape, value.dtype.itemsize)
    return not strides or expressions(tuple(strides)) == expressions(dense)


__all__ = ["ArgumentItself", "ExportedResults", "NoNumber", "with_results"]
