"""Dead code removal.

does:   drops every node that neither an output, an update nor an effect needs.  An index that only
        dropped nodes use leaves its check: NumPy raises for it whatever becomes of the element.
        Calls that share a body pass the operands that the body reads.
needs:  nothing.
leaves: parameters, nodes with effects (checks among them) and their operands; order and names.
"""

from __future__ import annotations

from fusec.ir import Graph
from fusec.ops.live_nodes import live_nodes

from .calls.unread_operands import without_unread
from .rewrite import rebuilt


def prune(graph: Graph) -> Graph:
    """The graph without nodes that nothing needs; itself when all are needed."""
    graph = without_unread(graph)
    return rebuilt(graph, live_nodes(graph), {})
