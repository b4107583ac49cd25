"""Order of nodes by the sizes that the run learns.

does    puts nodes that need a size which data decide behind the node that the run learns it from
needs   what the last passes left: nodes that they made anew have come behind older ones
leaves  the same nodes, the order of all others as it was
"""

from __future__ import annotations

from fusec.core.records import replace
from fusec.ir import Graph, Node
from fusec.ir.sizes.dims import symbols_of
from fusec.ops.rows.sizes import learnt_symbols, needed_symbols


def size_order(graph: Graph) -> Graph:
    """The graph in that order; itself where it is in it."""
    order = _Order(graph)
    if not order.unlearnt:
        return graph
    for node in graph.nodes:
        order.add(node)
    nodes = (*order.nodes, *order.waiting)  # these wait for each other: no order helps
    return graph if nodes == graph.nodes else replace(graph, nodes=nodes)


class _Order:
    """The nodes so far, and those that wait for a size or for another one that waits."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.waiting: list[Node] = []
        self.held: set[int] = set()  # ids of those that wait
        self.unlearnt = {name for node in graph.nodes for name in learnt_symbols(node)}

    def add(self, node: Node) -> None:
        if self._waits(node):
            self.waiting.append(node)
            self.held.add(node.id)
            return
        self.nodes.append(node)
        learnt = learnt_symbols(node) & self.unlearnt
        if learnt:
            self.unlearnt -= learnt
            self._again()

    def _waits(self, node: Node) -> bool:
        before = (*(v.node for v in node.inputs), *node.control_inputs)
        if self.held and any(n.id in self.held for n in before):
            return True
        unlearnt = self.unlearnt and needed_symbols(node) & self.unlearnt
        return bool(unlearnt) and not unlearnt <= learnt_symbols(node) | symbols_of(
            tuple(v.shape for v in node.inputs))

    def _again(self) -> None:
        """Add those that waited, in their order."""
        waited, self.waiting = self.waiting, []
        self.held.clear()
        for node in waited:
            self.add(node)
