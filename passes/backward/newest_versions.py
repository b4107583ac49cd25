"""Slices of an array that is updated elsewhere read the updated one.

``u[1:-1] = f; u[0] = 0; g(u[1:])`` leaves, once simplified, a slice of the array before its border
was set: two versions of one array would be stored.  Where nothing else reads the older version,
its slices read the newer one, and it is stored once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fusec.ir import Graph, Node, Value
from fusec.ir.regions import are_apart, region_of
from fusec.ir.uses import readers
from fusec.ops import get

from ..rewrite import Rewriter, rebuilt


def newest_versions(graph: Graph) -> Graph:
    """The graph with slices of the newest versions; itself where they are that."""
    newer = _newer(graph) if "SliceUpdate" in graph.ops else {}
    if not newer:
        return graph
    rewriter = Rewriter(graph)
    done: set[Node] = set()
    for old in graph.nodes:
        rewriter.stand_for(old)
        rewriter.keep(rewriter.operands(_of_newest(old, newer, done) if old.op == "Slice" else old))
        done.add(old)
    return rebuilt(graph, rewriter.nodes, rewriter.values)


def _of_newest(node: Node, newer: Mapping[Value, Node], done: Collection[Node]) -> Node:
    """The slice, of the newest version so far of its operand that has the same there."""
    newest = node.inputs[0]
    while newest in newer and newer[newest] in done and _are_apart(node, newer[newest]):
        newest = newer[newest].out()
    return node if newest == node.inputs[0] else node.with_inputs([newest], node.control_inputs)


def _newer(graph: Graph) -> Mapping[Value, Node]:
    """Arrays of which all but parts that lie elsewhere is read by one update, which comes before
    whatever reads these; and that."""
    users = readers(graph.nodes)
    roots = set(graph.roots)
    newer: dict[Value, Node] = {}
    for value, nodes in users.items():
        update, *others = nodes
        is_updated = update.op == "SliceUpdate" and value == update.inputs[0] != update.inputs[1]
        if is_updated and others and value not in roots and _is_computed(value.node) and (
                all(node.op == "Slice" and node.device == update.device and _are_apart(
                    node, update) for node in others)) and (
                not _is_read_before(value, update, users)):
            newer[value] = update
    return newer


def _is_read_before(value: Value, update: Node, users: Mapping[Value, list[Node]]) -> bool:
    """Whether a node reads the updated part of a version before: then that version, and
    not the update, is best made in place."""
    while value.node.op == "SliceUpdate":
        value = value.node.inputs[0]
        if any(n.op == "Slice" and not _are_apart(n, update) for n in users[value]):
            return True
    return False


def _are_apart(one: Node, other: Node) -> bool:
    return are_apart(region_of(one), region_of(other))


def _is_computed(node: Node) -> bool:
    return node.op == "SliceUpdate" or get(node.op).kind == "elementwise"


__all__ = ["newest_versions"]
