"""Elements at indices of the run as kernels: for plans of devices that run kernels alone.

does    Pick(x, i) -> Gather(x, CheckIndex(i, n)), PickUpdate(x, v, i) -> Scatter(x, v, CheckIndex)
needs   arrays of known sizes
leaves  those inside of branches and loops, which are plans or programs of their own
"""

from __future__ import annotations

from fusec.ir import Graph, Node, Value
from fusec.ops.rows.picking import PICKS, picked_axes

from ..rewrite import Replacement, Rewriter, rewrite
from .unchecked_indices import from_the_end


def element_kernels(graph: Graph) -> Graph:
    """The graph with a kernel for each such element."""
    return rewrite(graph, _visit, lambda node: node.op in PICKS)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op not in PICKS or not node.inputs[0].type.is_static:
        return None
    indices = [_checked(node, axis, index, rewriter) for axis, index in picked_axes(node)]
    where = {"axes": node.attrs["axes"], "at": min(node.attrs["axes"])}
    if node.op == "PickUpdate":
        return [rewriter.emit("Scatter", *node.inputs[:2], *indices, **where)]
    return [rewriter.emit("Gather", node.inputs[0], *indices, **where,
                          kind=node.attrs.get("kind", "array"))]


def _checked(node: Node, axis: int, index: Value, rewriter: Rewriter) -> Value:
    """The index of an axis, counted from its beginning."""
    if axis in node.attrs["safe"]:
        return index
    size = rewriter.const(index.dtype.type(node.inputs[0].shape[axis]))
    if node.attrs.get("unchecked"):
        return from_the_end(rewriter, index, size, index.type.kind)
    return rewriter.emit("CheckIndex", index, size, axis=axis)
