"""Loops and branches with all the results of others, and more, take the place of these.

does:   a derivative needs a loop's values in each iteration, and so makes one that does the same
        and keeps them (``extends`` names the loop).  It replaces the loop, which else would run
        twice.
needs:  to be first: the names of nodes are those that the trace gave.
leaves: each loop once, under its own name and in its place.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import Graph, Node, Value
from fusec.ir.walks import depth_first

from .rewrite import rebuilt


def merge_twins(graph: Graph) -> Graph:
    """The graph without loops and branches that others extend; itself where there are none."""
    twins = [node for node in graph.nodes if "extends" in node.attrs]
    return _Merged(graph, twins).graph() if twins else graph


class _Merged:
    def __init__(self, old: Graph, twins: Iterable[Node]) -> None:
        self.old = old
        self.by_name = {node.name: node for node in old.nodes}
        self.extended: dict[str, Node] = {}
        for node in twins:
            self.extended.setdefault(node.attrs["extends"], node)
        self.values: dict[Value, Value] = {}
        self.made: dict[int, Node] = {}

    def graph(self) -> Graph:
        nodes: list[Node] = []
        for node in depth_first([self._stands_for(n) for n in self.old.nodes], self._before):
            new = self._made(node)
            self.made[node.id] = new
            nodes.append(new)
        return rebuilt(self.old, nodes, self.values)

    def _stands_for(self, node: Node) -> Node:
        """The last of those that extend the node."""
        while node.name in self.extended:
            node = self.extended[node.name]
        return node

    def _root(self, node: Node) -> Node:
        """The first of those that the node extends, if it stands for them."""
        before = self.by_name.get(node.attrs.get("extends", ""))
        if before is None or self.extended[before.name] is not node:
            return node
        return self._root(before)

    def _before(self, node: Node) -> list[Node]:
        return [self._stands_for(n) for n in (
            *(v.node for v in node.inputs), *self._root(node).control_inputs)]

    def _made(self, node: Node) -> Node:
        root = self._root(node)
        inputs = [self.values.get(v, v) for v in node.inputs]
        control = [self.made[self._stands_for(n).id] for n in root.control_inputs]
        if "extends" not in node.attrs:
            new = node.with_inputs(inputs, control)
        else:
            attrs = {k: v for k, v in node.attrs.items() if k != "extends"}
            new = node.with_(inputs=inputs, attrs=attrs, name=root.name, loc=root.loc,
                             control_inputs=control, device=root.device)
        self._bind(node, new)
        return new

    def _bind(self, node: Node, new: Node) -> None:
        """Results of the node, and of those that it extends, are those of ``new``."""
        self.values.update(zip(node.outputs, new.outputs, strict=True))
        while (before := self.by_name.get(node.attrs.get("extends", ""))) is not None and (
                self.extended[before.name] is node):
            for value, place in zip(before.outputs, _places(before, new), strict=True):
                self.values[value] = new.out(place)
            node = before


def _places(before: Node, new: Node) -> list[int]:
    """Which results of the node that extends another are its: the first, and of a branch the arrays
    that it changes, the first of those."""
    changed = before.attrs.get("changed", 0)
    count = len(before.types) - changed
    first = len(new.types) - new.attrs.get("changed", 0)
    return [*range(count), *range(first, first + changed)]
