"""Constant folding.

does:   evaluates nodes of rank 0 whose operands are all constants, with NumPy's own function (and
        Python's operators for Python numbers), so that value, dtype and kind are those of the eager
        program.
needs:  nothing. leaves: expressions that raise in Python (1 / 0), Python ints beyond int64, and
fused multiply-adds (whose
        reference rounds through a wider type) as they are; unused constants for `prune`.
"""

from __future__ import annotations

from typing import Any

from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ops import registry
from fusec.ops.graphs.evaluate import apply

from ..rewrite import Replacement, Rewriter, rewrite


def constant_folding(graph: Graph) -> Graph:
    """The graph with constant scalar expressions replaced by ``Const`` nodes."""
    return rewrite(graph, _fold) if "Const" in graph.ops else graph


def _fold(node: Node, rewriter: Rewriter) -> Replacement:
    if not _is_constant_expression(node):
        return None
    try:
        results = apply(node, [operand.node.attrs["value"] for operand in node.inputs])
    except (ArithmeticError, LookupError, ValueError):
        # The eager program raises here, each time it is called: so must the compiled one.
        return None
    return [emit_constant(rewriter, r, v) for r, v in zip(results, node.outputs, strict=True)]


def _is_constant_expression(node: Node) -> bool:
    row = registry.get(node.op)
    return (
        bool(node.inputs)
        and all(v.node.op == "Const" for v in node.inputs)
        and all(not t.shape for t in node.types)
        and row.kind in ("elementwise", "reduce", "view")
        and row.is_folded
    )


def emit_constant(rewriter: Rewriter, result: Any, like: Value) -> Value:
    """A ``Const`` of the type of ``like``; rank-0 arrays are kept as their NumPy scalar."""
    is_number = like.type.is_weak or type(result) is Symbolic
    value = result if is_number else result[()]
    return rewriter.emit("Const", value=value, kind=like.type.kind)
