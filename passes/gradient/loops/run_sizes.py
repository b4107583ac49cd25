"""Sizes that data decide in the graph of a branch or loop, in the graph of its backward pass.

A node may have a size for an attribute (`BroadcastTo` of a sum's cotangent), and in the backward
pass the node that defines the size may not be computed at all.  Then the size is kept as a number,
from which the backward pass defines it; nodes that need it run after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import symbol, symbols_of
from fusec.ir.walks import nodes_behind
from fusec.ops import Builder
from fusec.ops.calls.library import size_limits
from fusec.ops.rows.sizes import defined_symbols, learnt_symbols, needed_symbols
from fusec.ops.rows.windows import UNLIMITED

from ..bodies import Body, OpenedGraph, copy_nodes
from .trips import as_int

Names = frozenset[str]


def _decided_in(graph: Graph) -> Names:
    """The sizes that nodes of a graph decide."""
    names: Names = frozenset()
    for node in graph.nodes:
        if node.op != "Input":
            names |= defined_symbols(node)
    return names


def _limits_in(graph: Graph) -> dict[str, int]:
    """Their upper bounds, where these are known."""
    return {name: limit for node in graph.nodes for name, limit in size_limits(node)
            if type(limit) is int}


def numbers_of(
    builder: Builder, body: OpenedGraph, roots: Sequence[Value], is_given: Callable[[Value], bool]
) -> dict[str, Value]:
    """The sizes, as numbers of the way there, that ``roots`` need and nothing behind them decides;
    ``is_given``: of values that are there without being computed."""
    own = _definers(body)
    if not own:
        return {}
    learnt: Names = frozenset()
    missing: Names = frozenset()
    for node in nodes_behind(roots, is_given):
        learnt |= learnt_symbols(node)
        missing |= _used(node) - learnt
    missing |= symbols_of(tuple(v.shape for v in roots if is_given(v))) - learnt
    return {name: builder.emit("Size", own[name], size=symbol(name))
            for name in sorted(missing & own.keys())}


def _definers(body: OpenedGraph) -> dict[str, Value]:
    """By name the value whose size it is first."""
    found: dict[str, Value] = {}
    for node in body.nodes:
        for name in sorted(defined_symbols(node)):
            found.setdefault(name, next(
                v for v in node.outputs if name in symbols_of(v.shape)))
    return found


def _used(node: Node) -> Names:
    return symbols_of(tuple(t.shape for t in node.types)) | needed_symbols(node)


def copied_after_sizes(
    body: Body, roots: Sequence[Value], numbers: dict[str, Value], there: Graph
) -> list[Value]:
    """The values in the body, with all that computes them, each node after the definitions of its
    sizes.

    ``numbers``: of `numbers_of`, where the way ``there`` kept them or they follow.
    """
    own = _decided_in(there)
    if not own:
        return body.copied(roots)
    ties, limits = _Ties(own), _limits_in(there)
    copy_nodes(nodes_behind(list(numbers.values()), body.values.__contains__), body.values, ties)
    for name, number in numbers.items():
        if name not in ties.learnt:
            body.values[number] = _learnt_from(
                body, ties, name, body.values[number], limits.get(name, UNLIMITED))
    copy_nodes(nodes_behind(roots, body.values.__contains__), body.values, ties)
    return [body.values[v] for v in roots]


def _learnt_from(body: Body, ties: _Ties, name: str, number: Value, limit: int) -> Value:
    """The size, as a number of a node that the run learns it from."""
    builder = body.builder
    extent = builder.emit("Extent", as_int(builder, number), given=(False, True), step=1,
                          limit=limit, length=name).node
    size = builder.emit("Size", extent.out(1), size=symbol(name))
    ties.note(extent)
    ties.note(size.node)
    return size


class _Ties:
    """Which nodes follow, by their operands, the definitions of run-time sizes."""

    def __init__(self, own: Names) -> None:
        self.own = own
        self.learnt: dict[str, Node] = {}
        self.after: dict[int, Names] = {}  # by node

    def before(self, node: Node, inputs: Sequence[Value]) -> list[Node]:
        """The nodes that one of these operands must wait for beside them."""
        missing = (_used(node) & self.own) - learnt_symbols(node) - self._follows(inputs)
        return list(dict.fromkeys(self.learnt[n] for n in sorted(missing) if n in self.learnt))

    def note(self, node: Node) -> None:
        names = learnt_symbols(node) & self.own
        for name in names:
            self.learnt.setdefault(name, node)
        names |= self._follows(node.inputs)
        for before in node.control_inputs:
            names |= self.after.get(before.id, frozenset())
        if names:
            self.after[node.id] = names

    def _follows(self, inputs: Sequence[Value]) -> Names:
        return frozenset[str]().union(*(self.after.get(v.node.id, frozenset()) for v in inputs))
