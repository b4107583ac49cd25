"""Bounds of the elements of an integer array, by interval arithmetic over the ops it is made by."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ops import get

Bounds = tuple[int, int]
_DEPTH = 8  # how many operations to look back


def bounds(value: Value, depth: int = _DEPTH) -> Bounds:
    """The least and the greatest integer that an array of integers can hold.

    Integers that may leave the dtype's range wrap: then these are the dtype's own bounds.
    """
    whole = _dtype_bounds(value.dtype)
    rule = _rule(value.node.op) if depth else None
    result = None if rule is None or value.dtype.kind not in "biu" else rule(
        value.node, partial(bounds, depth=depth - 1))
    if result is None or result[0] < whole[0] or result[1] > whole[1]:
        return whole
    return result


def _dtype_bounds(dtype: np.dtype) -> Bounds:
    if dtype.kind not in "iu":
        return (0, 1) if dtype.kind == "b" else (-(1 << 64), 1 << 64)
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


Of = Callable[[Value], Bounds]


def _constant(node: Node, of: Of) -> Bounds:
    return (int(node.attrs["value"]),) * 2


def _of_operand(node: Node, of: Of) -> Bounds | None:
    operand = node.inputs[0]
    return of(operand) if operand.dtype.kind in "biu" else None


def _modulo(node: Node, of: Of) -> Bounds | None:
    low, high = of(node.inputs[1])
    return (0, high - 1) if low > 0 else None


def _by_ends(choose: Callable[..., Any], node: Node, of: Of) -> Bounds:
    ranges = [of(v) for v in node.inputs]
    return choose(r[0] for r in ranges), choose(r[1] for r in ranges)


def _hull(function: Callable[[int, int], int], node: Node, of: Of) -> Bounds:
    """For an operation that is extreme at the extremes of its operands."""
    corners = [function(a, b) for a, b in itertools.product(*map(of, node.inputs))]
    return min(corners), max(corners)


def _union(node: Node, of: Of) -> Bounds:
    ranges = [of(v) for v in node.inputs[1:]]
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _bits(node: Node, of: Of) -> Bounds | None:
    """``x & mask`` lies between 0 and a mask that is not negative."""
    highest = [high for low, high in map(of, node.inputs) if low >= 0]
    return (0, min(highest)) if highest else None


_RULES: dict[str, Callable[[Node, Of], Bounds | None]] = {
    "Const": _constant, "Cast": _of_operand, "Mod": _modulo, "BitAnd": _bits, "Where": _union,
    "Add": partial(_hull, operator.add), "Sub": partial(_hull, operator.sub),
    "Mul": partial(_hull, operator.mul),
    "Minimum": partial(_by_ends, min), "Maximum": partial(_by_ends, max),
}


def _rule(op: str) -> Callable[[Node, Of], Bounds | None] | None:
    return _of_operand if get(op).kind in ("view", "gather") else _RULES.get(op)
