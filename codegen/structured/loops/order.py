"""The order of a sub-graph's steps: readers of an array before what changes it in place."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import Graph, Node, Value
from fusec.ir.uses import readers_of_memory
from fusec.ir.walks import depth_first
from fusec.ops import get


def shows_memory(node: Node) -> bool:
    """Whether the result is the operand's memory seen differently."""
    row = get(node.op)
    return row.shows_memory or row.kind == "view"


def changed_inputs(node: Node) -> list[Value]:
    """Arrays that the node would like to change in place."""
    if get(node.op).picks == "write" or node.op == "SliceUpdate":
        return [node.inputs[0]]
    if node.op == "Loop":
        return [v for v in node.inputs[: node.attrs["carried"]] if v.type.kind == "array"]
    if node.op == "Cond":
        return list(node.inputs[1: 1 + node.attrs["changed"]])
    if node.op == "Fused":
        return [node.inputs[k] for k in updated_operands(node).values()]
    return []


def updated_operands(node: Node) -> dict[int, int]:
    """Outputs of a kernel that are an operand with some elements replaced, by that operand."""
    body: Graph = node.attrs["body"]
    operands = {v: k for k, v in enumerate(body.inputs)}
    updates: dict[int, int] = {}
    for out, value in enumerate(body.outputs):
        while get(value.node.op).kind == "piecewise" and value.node.op != "Concat":
            value = value.node.inputs[0]
        if value in operands and value is not body.outputs[out]:
            updates[out] = operands[value]
    return updates


def ordered(graph: Graph) -> list[Node]:
    """Nodes in an order in which as few arrays as possible are read after they change."""
    nodes = [n for n in graph.nodes if not get(n.op).is_given]
    before = _Before(nodes)
    readers = readers_of_memory(nodes, shows_memory)
    for node in nodes:
        for value in changed_inputs(node):
            for reader in readers.get(value, ()):
                if reader is not node:
                    before.add(reader, node)
    return [*depth_first(nodes, lambda node: sorted(
        (n for n in before.direct[node] if n in before.position), key=lambda n: n.id))]


class _Before:
    """What runs before each node; ``bits`` of all of that, by the nodes' positions."""

    def __init__(self, nodes: list[Node]) -> None:
        self.position = {node: i for i, node in enumerate(nodes)}
        self.direct: dict[Node, set[Node]] = {
            n: {v.node for v in n.inputs}.union(n.control_inputs) for n in nodes}
        self.bits: list[int] = []
        for node in nodes:  # operands come first in a graph
            self.bits.append(self._with(n for n in self.direct[node] if n in self.position))

    def _with(self, nodes: Iterable[Node]) -> int:
        bits = 0
        for node in nodes:
            place = self.position[node]
            bits |= self.bits[place] | 1 << place
        return bits

    def add(self, first: Node, then: Node) -> None:
        """``first`` before ``then``, unless it has to run after it."""
        one, other = self.position[first], self.position[then]
        if self.bits[one] >> other & 1 or self.bits[other] >> one & 1:
            return
        self.direct[then].add(first)
        more = self.bits[one] | 1 << one
        for place, bits in enumerate(self.bits):
            if place == other or bits >> other & 1:
                self.bits[place] = bits | more
