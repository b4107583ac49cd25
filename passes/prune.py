"""Dead code removal.

does:   drops every node that neither an output, an update nor an effect needs.
needs:  nothing.
leaves: parameters, all nodes with effects (checks among them) and what they read; order and names.
"""

from __future__ import annotations

from fusec.ir import Graph, Node, topological_order
from fusec.ops.checks import has_effects

from .rewrite import rebuilt


def prune(graph: Graph) -> Graph:
    """The graph without nodes that nothing needs; itself when all are needed."""
    roots = [v.node for v in graph.roots] + [n for n in graph.nodes if _stays(n)]
    needed = {node.id for node in topological_order(roots)}
    return rebuilt(graph, (n for n in graph.nodes if n.id in needed), {})


def _stays(node: Node) -> bool:
    return node.op == "Input" or has_effects(node)
