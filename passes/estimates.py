"""Marks for operations that a GPU may estimate.

does:   marks float32 nodes whose row `is_estimated` as ``estimated``, under fp="fast" only
needs:  a simplified graph: no rule has to know the mark
leaves: float64 and float16, for which a GPU has no such instructions or needs none.

A mark promises nothing: back ends that have no estimates, and devices without their instructions,
compute as ever.
"""

from __future__ import annotations

import numpy as np

from fusec.ir import Graph, Node
from fusec.ops import registry

from .options import PassOptions
from .rewrite import Replacement, Rewriter, rewrite

SINGLE = np.dtype(np.float32)


def mark_estimates(graph: Graph, options: PassOptions) -> Graph:
    """The graph with such nodes marked; itself unless fp="fast"."""
    if options.fp != "fast":
        return graph
    ops = {op for op in graph.ops if registry.get(op).is_estimated}
    return rewrite(graph, _visit, ops=ops) if ops else graph


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    kind = node.types[0]
    if kind.dtype != SINGLE or kind.is_weak or "estimated" in node.attrs:
        return None
    return [rewriter.emit(node.op, *node.inputs, **node.attrs, estimated=True)]
