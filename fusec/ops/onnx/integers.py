"""Integers: division, remainders, bits.

ONNX Runtime's integer Div truncates, and stops the process for a divisor of 0 and for the least
number by -1.  BitShift is of unsigned numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Node

from .double_functions import Arithmetic, is_negative
from .protocol import I64, U64, NotExportedError, OnnxNodes, dtype_of, rule, where

_OF_BITS = {"BitAnd": "And", "BitOr": "Or", "BitXor": "Xor", "Invert": "Not"}


@rule(*_OF_BITS)
def _of_bits(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """ONNX has operators of their own for booleans."""
    name = _OF_BITS[node.op]
    return nodes.node(name if node.types[0].dtype == np.bool_ else f"Bitwise{name}", *inputs)


@rule("FloorDiv", "Mod", "Fmod")
def _divided(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    dtype = dtype_of(node)
    if dtype.kind == "f":
        return _divided_floats(nodes, node, *inputs)
    if dtype.kind not in "iu":
        raise NotExportedError(f"of {dtype}")
    return Division(nodes, dtype, *inputs).result(node.op)


class Division:
    """Of integers, towards zero and mended."""

    def __init__(self, nodes: OnnxNodes, dtype: Any, a: str, b: str) -> None:
        self.nodes, self.dtype, self.a = nodes, dtype, a
        self.of = of = Arithmetic(nodes, dtype)
        self.by_zero = of.Equal(b, 0)
        self.by_minus_one = of.Equal(b, -1) if dtype.kind == "i" else ""
        self.special = of.Or(self.by_zero, self.by_minus_one) if self.by_minus_one else self.by_zero
        self.divisor = self.where(self.special, 1, b)
        self.quotient = of.Div(a, self.divisor)
        self.rest = of.Sub(a, of.Mul(self.quotient, self.divisor))

    def where(self, condition: str, a: Any, b: Any) -> str:
        return where(self.nodes, self.dtype, condition, self.of.name(a), self.of.name(b))

    def result(self, op: str) -> str:
        """Rounded down; 0 for the divisor 0."""
        of, quotient, rest = self.of, self.quotient, self.rest
        if op == "Fmod":
            return self.where(self.special, 0, rest)
        if self.by_minus_one:
            signs = of.Xor(of.Less(rest, 0), of.Less(self.divisor, 0))
            is_over = of.And(signs, of.Not(of.Equal(rest, 0)))
            quotient = self.where(is_over, of.Sub(quotient, 1), quotient)
            rest = self.where(is_over, of.Add(rest, self.divisor), rest)
            quotient = self.where(self.by_minus_one, of.Sub(0, self.a), quotient)
        if op == "Mod":
            return self.where(self.special, 0, rest)
        return self.where(self.by_zero, 0, quotient)


def _divided_floats(nodes: OnnxNodes, node: Node, x: str, y: str) -> str:
    """As NumPy: the quotient of what the remainder leaves, rounded to the nearest integer."""
    dtype = dtype_of(node)
    a = Arithmetic(nodes, dtype)
    rest = nodes.node("Mod", x, y, fmod=1)
    if node.op == "Fmod":
        return rest
    has_rest = a.Not(a.Equal(rest, 0))
    is_over = a.And(has_rest, a.Xor(a.Less(y, 0), a.Less(rest, 0)))
    mended = a.Where(is_over, a.Add(rest, y), rest)
    if node.op == "Mod":
        zero = a.Where(is_negative(nodes, dtype, y), -0.0, 0.0)
        return a.Where(a.Equal(y, 0), rest, a.Where(has_rest, mended, zero))
    quotient = a.Div(a.Sub(x, rest), y)
    quotient = a.Where(is_over, a.Sub(quotient, 1), quotient)
    down = a.Floor(quotient)
    down = a.Where(a.Greater(a.Sub(quotient, down), 0.5), a.Add(down, 1), down)
    exact = a.Div(x, y)
    zero = a.Where(is_negative(nodes, dtype, exact), -0.0, 0.0)
    return a.Where(a.Equal(y, 0), exact, a.Where(a.Equal(quotient, 0), zero, down))


@rule("ShiftLeft", "ShiftRight")
def _shifted(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Of 64 bits.  Shifts by less than 0 or by the width and more leave nothing, or the sign."""
    dtype = dtype_of(node)
    a = Arithmetic(nodes, I64)
    x, count = (nodes.cast(v, I64) for v in inputs)
    width = np.int64(8 * dtype.itemsize)
    is_within = a.And(a.GreaterOrEqual(count, 0), a.Less(count, width))
    by = nodes.cast(a.Where(is_within, count, 0), U64)
    is_signed_right = node.op == "ShiftRight" and dtype.kind == "i"
    mask = a.Where(a.Less(x, 0), -1, 0) if is_signed_right else ""
    bits = nodes.cast(a.BitwiseXor(x, mask) if mask else x, U64)
    direction = "LEFT" if node.op == "ShiftLeft" else "RIGHT"
    shifted = nodes.cast(nodes.node("BitShift", bits, by, direction=direction), I64)
    result = a.Where(is_within, shifted, 0)
    return nodes.cast(a.BitwiseXor(result, mask) if mask else result, dtype)


@rule("MulHigh")
def _upper_half(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    product = nodes.node("Mul", *(nodes.cast(x, U64) for x in inputs))
    upper = nodes.node("BitShift", product, nodes.constant(np.uint64(32)), direction="RIGHT")
    return nodes.cast(upper, dtype_of(node))


@rule("PopulationCount")
def _ones(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Sums of neighbouring bits, side by side in one word."""
    a = Arithmetic(nodes, U64)
    x = nodes.cast(inputs[0], U64)
    masks = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF,
             0x0000FFFF0000FFFF, 0x00000000FFFFFFFF)
    for k, mask in enumerate(masks):
        upper = nodes.node("BitShift", x, a.name(1 << k), direction="RIGHT")
        x = a.Add(a.BitwiseAnd(x, mask), a.BitwiseAnd(upper, mask))
    return nodes.cast(x, dtype_of(node))
