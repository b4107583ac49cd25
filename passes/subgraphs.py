"""Optimises the sub-graphs of branches and loops.

does    runs the simplifying part of the pipeline on every graph that a ``Cond`` or ``Loop`` holds
needs   nothing
leaves  the same nodes with smaller sub-graphs; fusion of sub-graphs is left to the back end, which
        knows where their arrays live
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.ir import Graph, Node

from .rewrite import Replacement, Rewriter, rewrite

CONTROL = frozenset({"Cond", "Loop"})


def optimise_subgraphs(graph: Graph, optimise: Callable[[Graph], Graph]) -> Graph:
    """``graph`` with ``optimise`` applied to every graph inside it."""

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        if node.op not in CONTROL:
            return None
        attrs = {k: optimise(v) if isinstance(v, Graph) else v for k, v in node.attrs.items()}
        if all(attrs[k] is v for k, v in node.attrs.items()):
            return None
        return _emit(rewriter, node, attrs)

    return rewrite(graph, visit)


def _emit(rewriter: Rewriter, node: Node, attrs: dict[str, Any]) -> Replacement:
    value = rewriter.emit(node.op, *node.inputs, **attrs)
    return value.node.outputs
