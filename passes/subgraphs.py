"""Optimises the sub-graphs of branches and loops.

does    runs the simplifying part of the pipeline on every graph that a ``Cond`` or ``Loop`` holds
needs   nothing
leaves  the same nodes with smaller sub-graphs; they are fused when they are lowered, where it is
        known where their arrays live (`body_passes` of the pipeline)
"""

from __future__ import annotations

from collections.abc import Callable

from fusec.ir import Graph, Node
from fusec.ops import get

from .rewrite import Rewriter, rebuilt


def optimise_subgraphs(graph: Graph, optimise: Callable[[Graph, Node], Graph]) -> Graph:
    """``graph`` with ``optimise`` applied to every graph inside it, and the node that holds it.

    Unlike `rewrite` it takes nodes with effects too: the node stays, in its place.
    """
    if not any(get(op).is_control for op in graph.ops):
        return graph
    rewriter = Rewriter(graph)
    for old in graph.nodes:
        rewriter.stand_for(old)
        rewriter.keep(_optimised(rewriter.operands(old), optimise))
    return rebuilt(graph, rewriter.nodes, rewriter.values)


def _optimised(node: Node, optimise: Callable[[Graph, Node], Graph]) -> Node:
    if not get(node.op).is_control:
        return node
    attrs = {k: optimise(v, node) if isinstance(v, Graph) else v for k, v in node.attrs.items()}
    if all(attrs[k] is v for k, v in node.attrs.items()):
        return node
    return node.with_(attrs=attrs)
