"""Reductions over a few elements are expressions.

does:   Sum(x, axes) -> Fold(x, axes) where the axes are the last ones and hold 2 to 16 elements, so
        that the terms stay in registers and nothing needs a loop of its own; so for Prod, Max, Min,
        Any and All, and of ``y.T`` along the axes that are the last ones of ``y``.
needs:  primitive ops, and FMAs formed: the terms of a sum keep their rounding.
leaves: reductions of whole arrays, whose elements no loop is around; those of too much code.

That it is written out depends on the length of the axes alone, so a value has one bit pattern
however many rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import partial

from fusec.ir import Graph, Node
from fusec.ir.sizes.dims import Size, is_static
from fusec.ops.regions.cones import written_cost
from fusec.ops.rows.reductions import FOLDED

from ..rewrite import Replacement, Rewriter, rewrite

Short = tuple[tuple[Size, ...], tuple[int, ...]]
MAX_SHORT = 16
# Additions that are written out for one result: a fifth of a second in LLVM.  Rows as long as what
# a loop over a row takes in one step are worth less.
MAX_COST, MAX_ROW_COST = 800.0, 100.0
STEP_BYTES = 128


def short_axes(graph: Graph) -> Graph:
    """The graph with short reductions as ``Fold`` nodes; itself where there is none.

    Reductions of the same axes of the same shape stay together, as loops where one is too much.
    """
    too_much: set[Short] = set()
    while True:
        folded = rewrite(graph, partial(_visit, too_much=too_much), ops=FOLDED)
        rejected = {_short(n) for n in folded.nodes if n.op == "Fold" and _is_too_much(n)}
        if not rejected:
            return folded
        too_much |= rejected


def _visit(node: Node, rewriter: Rewriter, too_much: Collection[Short]) -> Replacement:
    node = _untransposed(node)
    if not is_short(node) or _short(node) in too_much:
        return None
    return [rewriter.emit("Fold", *node.inputs, of=node.op, axes=node.attrs["axes"])]


def _untransposed(node: Node) -> Node:
    """The reduction of a transposed array as one of the array, where the axes that it keeps have
    their order; the node itself elsewhere."""
    operand = node.inputs[0].node
    if operand.op != "Transpose" or node.op not in FOLDED:
        return node
    perm, axes = operand.attrs["perm"], node.attrs["axes"]
    kept = [perm[axis] for axis in range(len(perm)) if axis not in axes]
    if kept != sorted(kept):
        return node
    return node.with_(inputs=operand.inputs, attrs={
        **node.attrs, "axes": tuple(sorted(perm[axis] for axis in axes))})


def _short(node: Node) -> Short:
    """The operand of the reduction."""
    return node.inputs[0].shape, node.attrs["axes"]


def _is_too_much(fold: Node) -> bool:
    whole = reduced_count(fold) * fold.inputs[0].dtype.itemsize == STEP_BYTES
    limit = MAX_ROW_COST if whole else MAX_COST
    return written_cost(fold.out(), limit) >= limit


def is_short(node: Node) -> bool:
    """Whether it reduces the last axes of an array, which are short, and no others."""
    if node.op not in FOLDED or (node.op == "Prod" and node.types[0].dtype.kind == "c"):
        return False
    axes, shape = node.attrs["axes"], node.inputs[0].shape
    last = tuple(range(len(shape) - len(axes), len(shape)))
    return axes == last != tuple(range(len(shape))) and is_static([shape[d] for d in axes]) and (
        2 <= reduced_count(node) <= MAX_SHORT)


def reduced_count(node: Node) -> int:
    return math.prod(node.inputs[0].shape[axis] for axis in node.attrs["axes"])
