"""Numbers that an array of the way back is multiplied with one after the other, as one number.

does:   Mul(Mul(x, a), b) -> Mul(x, Mul(a, b)); Neg(Mul(x, a)) -> Mul(x, Neg(a)); the same for the
        product of an Fma
needs:  the body of a loop that gradients made, whose cotangents need no bits of a product; float64,
        whose range products of a few numbers do not leave.
leaves: as they are, products that a comparison is computed from; see `decisive_values`.
"""

from __future__ import annotations

import numpy as np

from fusec.ir import Graph, Node, Value

from ..rewrite import Replacement, Rewriter, rewrite
from .decisive_values import decisive_values

DEEPEST = 8  # operations that are looked through
DOUBLE = np.dtype("f8")


def scalar_factors(graph: Graph) -> Graph:
    """The graph with one number for several; itself where there are none."""
    decisive = decisive_values(graph)

    def visit(node: Node, rewriter: Rewriter) -> Replacement:
        old = rewriter.old.out()
        if old in decisive or not old.shape or old.dtype != DOUBLE:
            return None
        if node.op == "Fma":
            return _fma(node, rewriter)
        return _product(node, rewriter) if node.op == "Mul" or node.op == "Neg" else None

    return rewrite(graph, visit)


def _product(node: Node, rewriter: Rewriter) -> Replacement:
    array, numbers, depth = _factored(node.out())
    if depth < 2 or not any(numbers):
        return None
    return [rewriter.emit("Mul", array, _multiplied(numbers, rewriter))]


def _fma(node: Node, rewriter: Rewriter) -> Replacement:
    *factors, term = node.inputs
    scalars = [v for v in factors if not v.shape]
    if len(scalars) != 1:
        return None
    (array,) = (v for v in factors if v.shape)
    array, numbers, depth = _factored(array)
    return [rewriter.emit("Fma", array, _multiplied([*numbers, *scalars], rewriter), term)] if (
        depth) else None


def _factored(value: Value) -> tuple[Value, list[Value | None], int]:
    """An array, the numbers that it is multiplied with (None: -1), and in how many operations."""
    numbers: list[Value | None] = []
    depth = 0
    while depth < DEEPEST:
        node = value.node
        if node.op == "Neg":
            numbers.append(None)
            value = node.inputs[0]
        elif node.op == "Mul" and any(not v.shape for v in node.inputs):
            numbers += [v for v in node.inputs if not v.shape]
            (value,) = (v for v in node.inputs if v.shape)
        else:
            break
        depth += 1
    return value, numbers, depth


def _multiplied(numbers: list[Value | None], rewriter: Rewriter) -> Value:
    """Their product, the innermost first."""
    product: Value | None = None
    for number in reversed([n for n in numbers if n is not None]):
        product = number if product is None else rewriter.emit("Mul", product, number)
    assert product is not None
    return rewriter.emit("Neg", product) if numbers.count(None) % 2 else product
