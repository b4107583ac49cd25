"""The nodes that an output, an update or an effect of a graph needs, and the checks of indices that
are lost with the others."""

from __future__ import annotations

from fusec.ir import Graph, Node, Value, topological_order

from .build import Builder, Namer
from .calls.checks import has_effects
from .calls.index_checks import index_checks, uses_indices
from .registry import get
from .rows.picking import PICKS, picked_axes


def live_nodes(graph: Graph) -> list[Node]:
    """In order: parameters, needed nodes, and for an index that only other nodes use a check,
    which stands where the node stood, after the new nodes that it needs."""
    roots = _roots(graph)
    needed = {node.id for node in topological_order(roots)}
    checks = _lost_checks(graph, needed)
    if not checks:
        return [n for n in graph.nodes if n.id in needed]
    new = [check for new_nodes in checks.values() for check in new_nodes]
    needed = {node.id for node in topological_order([*roots, *new])}
    original = {node.id for node in graph.nodes}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.id in needed:
            nodes.append(node)
        nodes += [new_node for new_node in topological_order(checks.get(node.id, [])) if (
            new_node.id not in original)]
    return nodes


def loses_checks(graph: Graph) -> bool:
    """Whether it has a node that nothing needs and that raises for indices out of range."""
    needed = {node.id for node in topological_order(_roots(graph))}
    return any(n.id not in needed and uses_indices(n) for n in graph.nodes)


def _roots(graph: Graph) -> list[Node]:
    return [v.node for v in graph.roots] + [
        n for n in graph.nodes if n.op == "Input" or has_effects(n)]


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


__all__ = ["live_nodes", "loses_checks"]
