"""Dead code removal.

does:   drops every node that neither an output, an update nor an effect needs.  An index that only
        dropped nodes use leaves its check: NumPy raises for it whatever becomes of the element.
        Calls that share a body pass what the body reads.
needs:  nothing.
leaves: parameters, all nodes with effects (checks among them) and what they read; order and names.
"""

from __future__ import annotations

from fusec.ir import Graph, Node, Value, topological_order
from fusec.ops import Builder, Namer, get
from fusec.ops.checks import has_effects
from fusec.ops.index_checks import index_checks, uses_indices
from fusec.ops.picking import PICKS, picked_axes

from .rewrite import rebuilt
from .unread_operands import without_unread


def prune(graph: Graph) -> Graph:
    """The graph without nodes that nothing needs; itself when all are needed."""
    graph = without_unread(graph)
    roots = [v.node for v in graph.roots] + [n for n in graph.nodes if _stays(n)]
    needed = {node.id for node in topological_order(roots)}
    checks = _lost_checks(graph, needed)
    if not checks:
        return rebuilt(graph, (n for n in graph.nodes if n.id in needed), {})
    new = [check for new_nodes in checks.values() for check in new_nodes]
    needed = {node.id for node in topological_order([*roots, *new])}
    original = {node.id for node in graph.nodes}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.id in needed:
            nodes.append(node)
        # A check stands where the dropped node stood, after the new nodes that it needs.
        nodes += [new_node for new_node in topological_order(checks.get(node.id, [])) if (
            new_node.id not in original)]
    return rebuilt(graph, nodes, {})


def _stays(node: Node) -> bool:
    return node.op == "Input" or has_effects(node)


def _lost_checks(graph: Graph, needed: set[int]) -> dict[int, list[Node]]:
    """By dropped node, the index checks to put in its place, unless other nodes make them."""
    dropped = [n for n in graph.nodes if n.id not in needed and uses_indices(n)]
    if not dropped:
        return {}
    checked = {use for n in graph.nodes if n.id in needed for use in _uses(n)}
    builder = Builder(Namer(n.name for n in graph.nodes))
    checks: dict[int, list[Node]] = {}
    for node in dropped:
        if not _uses(node) or not checked.issuperset(_uses(node)):
            builder.stand_for(node)
            checks[node.id] = index_checks(builder, node)
            checked.update(_uses(node))
    return checks


def _uses(node: Node) -> set[tuple[Value, object]]:
    """The indices that the node checks, with the sizes that they must lie in."""
    if node.op in PICKS:
        return {(index, node.inputs[0].shape[axis]) for axis, index in picked_axes(node)}
    if get(node.op).checks == "index":
        return {(node.inputs[0], node.inputs[1])}
    return set()
