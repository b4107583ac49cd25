"""A sum of all elements is one of rows' sums, where rows are short and the summed elements
are computed of numbers of rows: the loss of a softmax joins the kernel of its gradient.

does:   Sum(x) over all axes -> Sum(Fold(x)), on a GPU
needs:  devices; short reductions as `Fold`
leaves: sums of arrays in memory, which are quicker in the order of memory
"""

from __future__ import annotations

from fusec.ir import Graph, Node
from fusec.ir.device_names import runs_cuda
from fusec.ir.walks import depth_first
from fusec.ops import get
from fusec.ops.regions.narrow_products import MAX_COLUMNS

from ..rewrite import Replacement, Rewriter, rewrite


def folded_totals(graph: Graph) -> Graph:
    """The graph with such sums."""
    return rewrite(graph, _visit, ops=("Sum",)) if "Fold" in graph.ops else graph


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    x = node.inputs[0]
    last = len(x.shape) - 1
    if last < 1 or not runs_cuda(node.device) or node.attrs != {"axes": tuple(range(last + 1))}:
        return None
    if not isinstance(x.shape[last], int) or not 2 <= x.shape[last] <= MAX_COLUMNS:
        return None
    if x.dtype.kind not in "iufc" or not _is_of_rows(x.node, x.shape):
        return None
    rows = rewriter.emit("Fold", x, of="Sum", axes=(last,))
    return [rewriter.emit("Sum", rows, axes=tuple(range(last)))]


def _is_of_rows(node: Node, shape: tuple[int, ...]) -> bool:
    """Whether it is computed, element by element, of a number of each row of this shape."""
    def operands(n: Node) -> list[Node]:
        is_inside = get(n.op).kind in ("elementwise", "view") and n.op != "Reshape"
        return [v.node for v in n.inputs] if is_inside else []

    last = len(shape) - 1
    return any(n.op == "Fold" and n.attrs["axes"] == (last,) and n.inputs[0].shape == shape
               for n in depth_first([node], operands))
