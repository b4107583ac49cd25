"""Memory that nobody has written as zeros, in graphs that were read in.

does    a `Reserve` of an array without elements, which is memory as it comes, becomes zeros
needs   nothing
leaves  memory of which each element has a value, whoever reads it: the trace's own graphs write
        before they read, a stranger's may show other programs' data
"""

from __future__ import annotations

from fusec.ir import Graph, Node
from fusec.ops.rows.windows import is_unset

from .rewrite import Replacement, Rewriter, rewrite
from .subgraphs import optimise_subgraphs


def defined_memory(graph: Graph) -> Graph:
    """The graph with zeros for unset memory, in its branches and loops too."""
    inside = optimise_subgraphs(graph, lambda body, node: defined_memory(body))
    return rewrite(inside, _zeros, ops=("Reserve",))


def _zeros(node: Node, rewriter: Rewriter) -> Replacement:
    if not is_unset(node):
        return None
    zero = rewriter.const(node.types[0].dtype.type(0))
    return [rewriter.emit("BroadcastTo", zero, shape=node.attrs["shape"])]
