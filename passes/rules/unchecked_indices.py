"""Removes the checks of indices, for programs whose author knows that they hold.

does:   CheckIndex(i, n) -> i + n where i < 0, else i; marks Pick and PickUpdate as unchecked; drops
        BoundsCheck; part of the pipeline under ``fusec.jit(check_indices=False)`` only
needs:  nothing
leaves: negative indices counting from the end.  A read or write at an index out of
        range is undefined from here on.  Library calls go on checking theirs.
"""

from __future__ import annotations

from fusec.ir import Graph, Node, Value
from fusec.ops.rows.picking import PICKS

from ..rewrite import Replacement, Rewriter, is_pure, rebuilt, rewrite


def unchecked_indices(graph: Graph) -> Graph:
    """The graph without checks of indices."""
    return rewrite(_without_checks(graph), _visit, is_pure)


def _without_checks(graph: Graph) -> Graph:
    """Nothing reads the results of checks; a node ordered after one runs after its predecessors."""
    rewriter, gone = Rewriter(graph), dict[int, tuple[Node, ...]]()
    for old in graph.nodes:
        control = [c for n in old.control_inputs for c in gone.get(n.id, (n,))]
        rewriter.stand_for(old)
        node = rewriter.operands(old.with_inputs(old.inputs, control))
        if node.op == "BoundsCheck":
            gone[old.id] = tuple(control)
        else:
            rewriter.keep(node)
    return rebuilt(graph, rewriter.nodes, rewriter.values)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op in PICKS and not node.attrs.get("unchecked"):
        return rewriter.emit(node.op, *node.inputs, **node.attrs, unchecked=True).node.outputs
    if node.op != "CheckIndex":
        return None
    index, size = node.inputs
    return [from_the_end(rewriter, index, size, node.types[0].kind)]


def from_the_end(rewriter: Rewriter, index: Value, size: Value, kind: str) -> Value:
    """An index that is not checked: a negative one counts from the end."""
    negative = rewriter.emit("Less", index, rewriter.const(index.dtype.type(0)))
    wrapped = rewriter.emit("Add", index, size)
    return rewriter.emit("Where", negative, wrapped, index, kind=kind)
