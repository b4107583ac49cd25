"""Small powers as products and roots.

does:   Pow(x, c) becomes products for c = 3 and 4 and, of floats of 32 and 64 bits, quotients and
        square roots for c = -2, 3/2, -1/2 and -3/2; not under fp="strict"
needs:  constants folded; 2, -1 and 1/2 are NumPy's own shortcuts and never were Pow
leaves: every other power.  Two roundings of half an ulp more keep the result within 2 ulp, as far
        from the true value as the library's own power may be; it costs a tenth to a third.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, Value

from ..options import PassOptions
from ..rewrite import Replacement, Rewriter, rewrite


def expand_powers(graph: Graph, options: PassOptions) -> Graph:
    """The graph with small powers written out; itself under fp="strict"."""
    return graph if options.fp == "strict" else rewrite(graph, _visit, ops=("Pow",))


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op != "Pow" or node.types[0].dtype.kind != "f" or node.types[0].is_weak:
        return None
    base, exponent = node.inputs
    number = exponent.node.attrs["value"] if exponent.node.op == "Const" else None
    if number in _PRODUCTS:
        return [_PRODUCTS[number](rewriter, base)]
    if number in _ROOTS and node.types[0].dtype.itemsize >= 4:
        return [_ROOTS[number](rewriter, base)]
    return None


def _number(rewriter: Rewriter, like: Value, number: float) -> Value:
    return rewriter.emit("Const", value=like.dtype.type(number), kind="scalar")


def _positive_zero(rewriter: Rewriter, x: Value) -> Value:
    """``x`` with 0.0 for -0.0: the powers of both are the same, 1 / x and sqrt(x) are not."""
    return rewriter.emit("Add", x, _number(rewriter, x, 0.0))


def _unless_lowest(rewriter: Rewriter, x: Value, limit: float, power: Value) -> Value:
    """The power; of -inf, whose root is NaN, the limit."""
    lowest = rewriter.emit("Equal", x, _number(rewriter, x, -np.inf))
    return rewriter.emit("Where", lowest, _number(rewriter, x, limit), power)


def _cube(rewriter: Rewriter, x: Value) -> Value:
    return rewriter.emit("Mul", rewriter.emit("Square", x), x)


def _fourth(rewriter: Rewriter, x: Value) -> Value:
    return rewriter.emit("Square", rewriter.emit("Square", x))


def _one_and_a_half(rewriter: Rewriter, x: Value) -> Value:
    product = rewriter.emit("Mul", x, rewriter.emit("Sqrt", x))
    return _unless_lowest(rewriter, x, np.inf, product)


def _minus_half(rewriter: Rewriter, x: Value) -> Value:
    root = rewriter.emit("Sqrt", _positive_zero(rewriter, x))
    return _unless_lowest(rewriter, x, 0.0, rewriter.emit("Reciprocal", root))


def _minus_one_and_a_half(rewriter: Rewriter, x: Value) -> Value:
    """Of the quotient, which keeps the digits of results that are nearly 0 (and -inf is -0.0)."""
    quotient = rewriter.emit("Reciprocal", _positive_zero(rewriter, x))
    return rewriter.emit("Mul", quotient, rewriter.emit("Sqrt", quotient))


def _minus_two(rewriter: Rewriter, x: Value) -> Value:
    return rewriter.emit("Square", rewriter.emit("Reciprocal", x))


_PRODUCTS: dict[Any, Callable[[Rewriter, Value], Value]] = {3: _cube, 4: _fourth}
_ROOTS: dict[Any, Callable[[Rewriter, Value], Value]] = {
    1.5: _one_and_a_half, -0.5: _minus_half, -1.5: _minus_one_and_a_half, -2: _minus_two,
}
