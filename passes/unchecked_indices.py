"""Removes the checks of indices, for programs whose author knows that they hold.

does:   CheckIndex(i, n) -> i + n where i < 0, else i; marks Pick and PickUpdate as unchecked; drops
        BoundsCheck; part of the pipeline under ``fusec.jit(check_indices=False)`` only
needs:  nothing
leaves: negative indices counting from the end.  What an index out of range reads or writes is
        undefined from here on.  Library calls go on checking theirs.
"""

from __future__ import annotations

from fusec.ir import Graph, Node
from fusec.ops.picking import PICKS

from .rewrite import Replacement, Rewriter, rebuilt, rewrite


def unchecked_indices(graph: Graph) -> Graph:
    """The graph without checks of indices."""
    kept = [node for node in graph.nodes if node.op != "BoundsCheck"]  # nothing reads their results
    return rewrite(rebuilt(graph, kept, {}), _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op in PICKS and not node.attrs.get("unchecked"):
        return rewriter.emit(node.op, *node.inputs, **node.attrs, unchecked=True).node.outputs
    if node.op != "CheckIndex":
        return None
    index, size = node.inputs
    (type_,) = node.types
    negative = rewriter.emit("Less", index, rewriter.const(type_.dtype.type(0)))
    wrapped = rewriter.emit("Add", index, size)
    return [rewriter.emit("Where", negative, wrapped, index, kind=type_.kind)]
