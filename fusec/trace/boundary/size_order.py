"""Order of nodes that need a size which data decide, after the node that the run learns it from.

A gradient may need the size of a value (`BroadcastTo` of a sum's cotangent) and not the value.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.ir import Graph, Node, Value
from fusec.ir.walks import nodes_behind
from fusec.ops.rows.sizes import learnt_symbols, needed_symbols


def is_tied(graph: Graph, definers: Mapping[str, Value]) -> bool:
    """Whether nodes of a new graph got edges to definers of sizes: it is to be built again.

    Definers are older than what needs their sizes, so the numbers of nodes stay an order.
    """
    if not definers:  # data decide none, as in most graphs
        return False
    own, ties = set(graph.inputs), 0
    known: frozenset[str] = frozenset()
    for node in graph.nodes:
        for name in sorted(needed_symbols(node) - known):
            if name in definers and _is_of(definers[name], own):
                known |= _tie(node, definers[name].node)
                ties += 1
        known |= learnt_symbols(node)
    return bool(ties)


def _is_of(definer: Value, inputs: set[Value]) -> bool:
    """Whether the value is computed in the graph, and not in one of a branch or loop."""
    return all(n.op != "Input" or n.out() in inputs for n in nodes_behind([definer]))


def _tie(node: Node, before: Node) -> frozenset[str]:
    """Has the node run after another; the sizes that are known then."""
    node.control_inputs = (*node.control_inputs, before)
    return learnt_symbols(before)
