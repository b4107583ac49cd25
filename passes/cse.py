"""Common subexpression elimination, by value numbering.

does:   makes nodes that compute the same thing (op, operands, attributes, type, device) one node,
        the first; operands of commutative ops count in either order.
needs:  nothing; finds more after simplification.
leaves: effects, nodes with control edges, and results that NumPy would keep in separate memory; the
        replaced nodes are gone, operands that only they used are for `prune`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from fusec.ir import Graph, Node, Value
from fusec.ir.attr_key import attr_key
from fusec.ops import registry

from .rewrite import Replacement, Rewriter, is_movable, rewrite


def cse(graph: Graph) -> Graph:
    """The graph with every value computed once; itself when no value is computed twice."""
    numbers: dict[Hashable, Node] = {}

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        first = numbers.setdefault(local_key(node), node)
        return None if first is node else first.outputs

    return rewrite(graph, visit)


def local_key(node: Node) -> Hashable:
    """Equal for nodes that compute the same on one device."""
    return node.device, value_key(node, [(v.node.id, v.index) for v in node.inputs])


def value_key(node: Node, operands: Sequence[Any]) -> Hashable:
    """Equal for nodes that compute the same of equal ``operands``, anywhere."""
    attrs = tuple((k, attr_key(node.attrs[k])) for k in sorted(node.attrs))
    ordered = tuple(sorted(operands)) if commutes(node) else tuple(operands)
    return node.op, ordered, attrs, node.types


def equal_anywhere(graph: Graph) -> dict[int, int]:
    """By the id of each node, that of the first one that computes the same on any device.

    These are the nodes that `cse` would leave if nothing were said of devices: of equal results
    of the graph each keeps its own, but that sums that are equal count as one for `fma`.
    """
    first: dict[int, int] = {}
    known: dict[Hashable, int] = {}
    results = {v.node.id for v in graph.roots}
    claimed: set[int] = set()
    for node in graph.nodes:
        key = value_key(node, [(first[v.node.id], v.index) for v in node.inputs])
        found = known.setdefault(key, node.id) if is_movable(node) else node.id
        is_own = node.id in results and found in claimed and not registry.get(node.op).is_sum
        first[node.id] = node.id if is_own else found
        if node.id in results:
            claimed.add(first[node.id])
    return first


def commutes(node: Node) -> bool:
    row = registry.get(node.op)
    if not row.commutative:
        return False
    if node.types[0].dtype.kind == "c":  # of a complex product only some parts are rounded
        return node.op != "Mul"
    return not row.first_matters or not _any_float(node.inputs)


def _any_float(values: tuple[Value, ...]) -> bool:
    return any(v.dtype.kind in "fc" for v in values)
