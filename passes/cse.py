"""Common subexpression elimination, by value numbering.

does:   makes nodes that compute the same thing (op, operands, attributes, type, device) one node,
        the first; operands of commutative ops count in either order.
needs:  nothing; finds more after simplification.
leaves: effects, nodes with control edges, and results that NumPy would keep in separate memory; the
        replaced nodes are gone, what only they used is for `prune`.
"""

from __future__ import annotations

from collections.abc import Hashable

from fusec.ir import Graph, Node, Value
from fusec.ir.attr_key import attr_key
from fusec.ops import registry

from .rewrite import Replacement, Rewriter, rewrite


def cse(graph: Graph) -> Graph:
    """The graph with every value computed once; itself when no value is computed twice."""
    numbers: dict[Hashable, Node] = {}

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        first = numbers.setdefault(value_key(node), node)
        return None if first is node else first.outputs

    return rewrite(graph, visit)


def value_key(node: Node) -> Hashable:
    """Equal for nodes that compute the same."""
    attrs = tuple((k, attr_key(node.attrs[k])) for k in sorted(node.attrs))
    return node.op, _operands(node), attrs, node.types, node.device


def _operands(node: Node) -> tuple[tuple[int, int], ...]:
    operands = [(v.node.id, v.index) for v in node.inputs]
    return tuple(sorted(operands)) if commutes(node) else tuple(operands)


def commutes(node: Node) -> bool:
    row = registry.get(node.op)
    if not row.commutative:
        return False
    if node.types[0].dtype.kind == "c":  # of a complex product only some parts are rounded
        return node.op != "Mul"
    return not row.first_matters or not _any_float(node.inputs)


def _any_float(values: tuple[Value, ...]) -> bool:
    return any(v.dtype.kind in "fc" for v in values)
