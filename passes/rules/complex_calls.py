"""Complex arithmetic that is not fused becomes calls of NumPy.

does:   replaces every op on complex values that kernels do not compute by a ``NumPy`` node.
needs:  nothing; it comes first, since rules for real numbers need not hold for complex ones.
leaves: on complex values only index ops and those of `FUSED_ON_COMPLEX`.
"""

from __future__ import annotations

from fusec.ir import Graph, Node
from fusec.ops.complex_parts import needs_numpy

from ..rewrite import Replacement, Rewriter, is_pure, rewrite


def complex_calls(graph: Graph) -> Graph:
    """The graph with visible library calls for ops that are not fused on complex values."""
    return rewrite(graph, _as_call, is_pure)


def _as_call(node: Node, rewriter: Rewriter) -> Replacement:
    if not needs_numpy(node):
        return None
    attrs = tuple(sorted(node.attrs.items()))
    value = rewriter.emit("NumPy", *node.inputs, name=node.op, of=node.op, attrs=attrs,
                          results=tuple(node.types))
    return value.node.outputs
