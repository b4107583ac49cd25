"""Marks for operations that a GPU may estimate.

does:   marks float32 nodes whose row `is_estimated` as ``estimated``, under fp="fast" only; and
        floats of 32 and 64 bits that are added to places (`Scatter`), which any order may be for
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


def _is_added(node: Node) -> bool:
    """Whether the order of the elements shows in last bits alone."""
    combine, dtype = node.attrs.get("combine", ""), node.types[0].dtype
    return combine != "" and registry.get(combine).is_sum and (
        dtype.kind in "fc" and dtype.itemsize >= SINGLE.itemsize)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    kind = node.types[0]
    is_permitted = _is_added(node) if registry.get(node.op).kind == "piecewise" else (
        kind.dtype == SINGLE and not kind.is_weak)
    if not is_permitted or "estimated" in node.attrs:
        return None
    return [rewriter.emit(node.op, *node.inputs, **node.attrs, estimated=True)]
