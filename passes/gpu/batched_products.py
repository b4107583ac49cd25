"""Operands of stacks of products lie as a library takes them on a GPU: one stride for all matrices.

does:   MatMul(Transpose(x), b) -> MatMul(Copy(Transpose(x)), b), where the transpose moves axes of
        the stack apart, as that of heads of attention does; the copy is part of the kernel that
        makes x
needs:  the devices of nodes
leaves: stacks along one axis, and axes that follow each other in memory
"""

from __future__ import annotations

from itertools import pairwise

from fusec.ir import Graph, Node, Value
from fusec.ir.device_names import runs_cuda

from ..rewrite import Replacement, Rewriter, rewrite


def batched_products(graph: Graph) -> Graph:
    """See the module docstring."""
    return rewrite(graph, _visit, ops=("MatMul",))


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if not runs_cuda(node.device) or not any(map(_is_scattered, node.inputs)):
        return None
    laid = [rewriter.emit("Copy", v) if _is_scattered(v) else v for v in node.inputs]
    return [rewriter.emit("MatMul", *laid, **node.attrs)]


def _is_scattered(value: Value) -> bool:
    """Whether the axes of a stack of matrices are not those of one axis, in memory."""
    if value.node.op != "Transpose":
        return False
    stack = [axis for axis, n in zip(value.node.attrs["perm"][:-2], value.shape, strict=False)
             if n != 1]
    return any(after != before + 1 for before, after in pairwise(stack))
