"""Graphs of branches and loops, taken apart and put together anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.dims import symbols_of
from fusec.ir.walks import nodes_behind
from fusec.ops import Builder
from fusec.ops.derivatives import Term, refusal
from fusec.ops.rows.sizes import defined_symbols, learnt_symbols, needed_symbols


@dataclass(frozen=True)
class OpenedGraph:
    """A copy of a graph whose parameters are placeholders: its values may be used in other graphs
    that are made of it."""

    parameters: tuple[Value, ...]
    values: Mapping[Value, Value]  # of the graph, as they are in the copy

    @property
    def nodes(self) -> list[Node]:
        """All but the placeholders, in order."""
        found = {v.node.id: v.node for v in self.values.values() if v.node.op != "Input"}
        return [found[i] for i in sorted(found)]

    def new_contents(self, graph: Graph) -> dict[int, Value]:
        """By parameter the value that the graph updates it to."""
        return {i: self.values[v] for i, v in graph.updates}


def opened(builder: Builder, graph: Graph) -> OpenedGraph:
    """The graph over placeholders."""
    values = {v: placeholder(builder, v.type, v.node.name) for v in graph.inputs}
    parameters = tuple(values[v] for v in graph.inputs)
    copy_nodes((n for n in graph.nodes if n.op != "Input"), values)
    return OpenedGraph(parameters, values)


def placeholder(builder: Builder, type_: TensorType, name: str) -> Value:
    """A value that stands for one that a graph is going to be given."""
    attrs = {"index": -1, "path": name, "type": type_}
    return Node("Input", (), (type_,), attrs, name=builder.namer.fresh(name)).out()


class Ties(Protocol):
    """Further predecessors of nodes: see `run_sizes`."""

    def before(self, node: Node, inputs: Sequence[Value]) -> list[Node]:
        """The nodes before one of these operands."""

    def note(self, node: Node) -> None:
        """Note a node."""


def copy_nodes(
    nodes: Iterable[Node], values: dict[Value, Value], ties: Ties | None = None
) -> None:
    """Copy nodes, in order, that read the values that others became; the copies are added."""
    copies: dict[int, Node] = {}
    for node in nodes:
        inputs = [values[v] for v in node.inputs]
        control = [copies[n.id] for n in node.control_inputs if n.id in copies]
        control += [] if ties is None else ties.before(node, inputs)
        copy = node.with_(inputs=inputs, control_inputs=control)
        if ties is not None:
            ties.note(copy)
        copies[node.id] = copy
        for before, after in zip(node.outputs, copy.outputs, strict=True):
            values.setdefault(before, after)


class Body:
    """A graph that is put together: parameters first, then copies and new nodes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.inputs: list[Value] = []
        self.values: dict[Value, Value] = {}  # by the value of another graph that it stands for

    def parameter(self, type_: TensorType, name: str, stands_for: Value | None = None) -> Value:
        """One more parameter."""
        attrs = {"index": len(self.inputs), "path": name, "type": type_}
        value = Node("Input", (), (type_,), attrs, name=self.builder.namer.fresh(name)).out()
        self.inputs.append(value)
        if stands_for is not None:
            self.values[stands_for] = value
        return value

    def copied(self, values: Sequence[Value]) -> list[Value]:
        """The values here, with all that computes them."""
        copy_nodes(nodes_behind(values, self.values.__contains__), self.values)
        return [self.values[v] for v in values]

    def graph(
        self, name: str, outputs: Sequence[Value], updates: Mapping[int, Value] | None = None,
        extra: Iterable[Node] = (),
    ) -> Graph:
        """The graph that gives ``outputs`` and leaves ``updates`` in its parameters."""
        changed = [(i, v) for i, v in (updates or {}).items() if v != self.inputs[i]]
        return Graph.build(self.inputs, outputs, changed, name, extra)


def check_sizes(node: Node, graph: Graph, side: Graph) -> None:
    """Raise where a graph of the way back, of a branch or loop, has a size that data decide in the
    graph of the way there, and does not decide it anew."""
    own = _union(defined_symbols(n) for n in side.nodes if n.op != "Input")
    known: frozenset[str] = frozenset()
    for n in graph.nodes:
        known |= learnt_symbols(n)
        used = symbols_of(tuple(t.shape for t in n.types)) | needed_symbols(n)
        if own & used - known:
            raise refusal(node, "the way back needs arrays of a size that data decide in it")


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def name_of(value: Value) -> str:
    """For a parameter that stands for the value."""
    name = value.node.name.rpartition("/")[2]
    return f"{name}.{value.index}" if value.index else name


def adjoint_type(value: Value) -> TensorType:
    """The type of a tangent or cotangent where graphs hand it over: no Python number."""
    kind = "array" if value.type.kind == "array" else "scalar"
    return TensorType(value.dtype, value.shape, kind)  # type: ignore[arg-type]


def of_kind(term: Term, kind: str) -> Value:
    """The term's value as an array or a number, as the kind says."""
    value = term.value
    if value.type.kind == kind:
        return value
    if kind == "array":
        return term.builder.emit("BroadcastTo", value, shape=value.shape)
    if kind == "scalar":
        return term.builder.emit("Squeeze", value, axes=(), kind="scalar") if (
            value.type.kind == "array") else term.builder.emit("Cast", value, dtype=value.dtype)
    return term.builder.emit("Cast", value, dtype=value.dtype, kind="weak")
