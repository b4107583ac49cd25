"""Views that results are: admitted as nodes behind the graph's outputs, then taken in a trace.

A result such as ``x[1:]`` shows memory of an argument or of another result.  Its view steps are
data of a file like the graph, so they are proven with it: a slice beyond its array is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fusec.ir.graph import Graph, Node, Value
from fusec.ir.sizes.dims import Dim, Size, symbols_of
from fusec.ops import registry
from fusec.ops.complex_parts import PARTS

from .plain_values import NotPlainError, plain_value

MARKS = ("ReadOnly", "Itself")  # no ops of graphs: they change nothing but the array's flags


class SavedStep(NamedTuple):
    """One view step; ``operands`` counts its run-time indices, which are outputs of the graph."""

    op: str
    attrs: dict[str, Any]
    strides: tuple[Size, ...]
    operands: int

    @property
    def is_mark(self) -> bool:
        return self.op in MARKS

    @property
    def depends_on_the_run(self) -> bool:
        """Whether the run decides its place or its size."""
        return bool(self.operands or symbols_of((*self.attrs.values(), self.strides)))


def step_of(form: Any) -> SavedStep:
    """The step of a JSON form; raises `NotPlainError`."""
    is_row = type(form) is list and len(form) == 4
    row: Any = form if is_row else (None, None, None, None)
    op, attrs, strides, operands = row
    if not _is_view(op) or type(attrs) is not list or type(operands) is not int or (
            not 0 <= operands <= 64):
        raise NotPlainError(f"{str(form)[:60]} is no view step")
    pairs = [tuple(pair) if type(pair) is list and len(pair) == 2 else ("", None)
             for pair in attrs]
    if not all(type(name) is str and name for name, _ in pairs):
        raise NotPlainError(f"{str(form)[:60]} is no view step")
    values = plain_value(strides, with_sizes=True)
    if type(values) is not tuple or not all(type(n) in (int, Dim) for n in values):
        raise NotPlainError(f"{str(form)[:60]} has no strides")
    attrs = {name: plain_value(value, with_sizes=True) for name, value in pairs}
    return SavedStep(op, attrs, values, operands)


def _is_view(op: Any) -> bool:
    if type(op) is not str or not registry.is_known(op):
        return op in MARKS
    row = registry.get(op)
    return row.kind == "view" or row.picks == "read" or op in PARTS or op == "Reinterpret" or (
        op == "Fill")


def with_views(graph: Graph, chains: Sequence[tuple[Value, Sequence[SavedStep], Sequence[int]]]
               ) -> Graph:
    """The graph with one more output for each chain: what its steps show of its value, at indices
    that are outputs of these numbers."""
    nodes, seen = list(graph.nodes), []
    for value, steps, indices in chains:
        numbers = iter(indices)
        for step in steps:
            if not step.is_mark:
                operands = [value, *(graph.outputs[next(numbers)] for _ in range(step.operands))]
                row = registry.get(step.op)
                node = Node(step.op, operands, row.infer([v.type for v in operands], step.attrs),
                            step.attrs, name=f"view of result {len(nodes)}")
                nodes.append(node)
                value = node.out()
        seen.append(value)
    return Graph(graph.inputs, (*graph.outputs, *seen), graph.updates, tuple(nodes), graph.name)


def admitted_steps(
    shown: Value, steps: Sequence[SavedStep]
) -> Iterator[tuple[SavedStep, tuple[Value, ...]]]:
    """The steps with their admitted indices, first to last; ``shown`` is what they show."""
    operands: list[tuple[Value, ...]] = []
    for step in reversed(steps):
        if step.is_mark:
            operands.append(())
            continue
        operands.append(shown.node.inputs[1:])
        shown = shown.node.inputs[0]
    return zip(steps, reversed(operands), strict=True)
