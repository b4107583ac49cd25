"""Lowering composite ops.

does:   replaces every op whose registry row is *composite* by the nodes of its ``decompose``.
needs:  nothing; gradients and batching, which want the whole op, come before.
leaves: no composite op.
"""

from __future__ import annotations

from fusec.errors import InternalError
from fusec.ir import Graph, Node
from fusec.ops import registry

from ..rewrite import Replacement, Rewriter, is_pure, rewrite

# A composite may be made of composites; deeper nesting than this is a row that makes itself.
MAX_DEPTH = 16


def decompose(graph: Graph) -> Graph:
    """The graph in primitive ops.  Raises `InternalError` for a row that never ends."""
    for _ in range(MAX_DEPTH):
        composite = {op for op in graph.ops if registry.get(op).kind == "composite"}
        lowered = rewrite(graph, _lower, is_pure, composite)
        if lowered is graph:
            return _checked(graph) if composite else graph
        graph = lowered
    raise InternalError(f"composite ops remain after {MAX_DEPTH} rounds of decomposition")


def _lower(node: Node, rewriter: Rewriter) -> Replacement:
    row = registry.get(node.op)
    if row.kind != "composite" or row.decompose is None:
        return None
    return row.decompose(rewriter, node)


def _checked(graph: Graph) -> Graph:
    for node in graph.nodes:
        if registry.get(node.op).kind == "composite":
            types = ", ".join(str(t) for t in node.types)
            raise InternalError(
                f"{node.name!r}: {node.op} has no decomposition into values of type {types}",
                loc=node.loc,
            )
    return graph
