"""Small whole powers as products.

does:   Pow(x, 3) -> x*x*x and Pow(x, 4) -> (x*x)*(x*x) for floats, not under fp="strict"
needs:  constants folded; 2, -1 and 1/2 are NumPy's own shortcuts and never were Pow
leaves: every other power.  Two roundings of half an ulp more keep the result within 2 ulp, as far
        from the true value as the library's own power may be; it costs a fifth.
"""

from __future__ import annotations

from fusec.ir import Graph, Node

from .options import PassOptions
from .rewrite import Replacement, Rewriter, rewrite


def expand_powers(graph: Graph, options: PassOptions) -> Graph:
    """The graph with cubes and fourth powers multiplied out; itself under fp="strict"."""
    return graph if options.fp == "strict" else rewrite(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op != "Pow" or node.types[0].dtype.kind != "f" or node.types[0].is_weak:
        return None
    base, exponent = node.inputs
    if exponent.node.op != "Const" or exponent.node.attrs["value"] not in (3, 4):
        return None
    square = rewriter.emit("Square", base)
    if exponent.node.attrs["value"] == 4:
        return [rewriter.emit("Square", square)]
    return [rewriter.emit("Mul", square, base)]
