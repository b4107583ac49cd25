"""What an array of integers can hold, as far as the operations that made it tell."""

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
_DEPTH = 8  # operations looked back at


def bounds(value: Value, depth: int = _DEPTH) -> Bounds:
    """The least and the greatest integer that an array of integers can hold.

    What may leave its dtype's range wraps, so it can be any of its integers.
    """
    whole = _of_dtype(value.dtype)
    rule = _rule(value.node.op) if depth else None
    found = None if rule is None or value.dtype.kind not in "biu" else rule(
        value.node, partial(bounds, depth=depth - 1))
    if found is None or found[0] < whole[0] or found[1] > whole[1]:
        return whole
    return found


def _of_dtype(dtype: np.dtype) -> Bounds:
    if dtype.kind not in "iu":
        return (0, 1) if dtype.kind == "b" else (-(1 << 64), 1 << 64)
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


Of = Callable[[Value], Bounds]


def _constant(node: Node, of: Of) -> Bounds:
    return (int(node.attrs["value"]),) * 2


def _same(node: Node, of: Of) -> Bounds | None:
    operand = node.inputs[0]
    return of(operand) if operand.dtype.kind in "biu" else None


def _modulo(node: Node, of: Of) -> Bounds | None:
    low, high = of(node.inputs[1])
    return (0, high - 1) if low > 0 else None


def _ends(choose: Callable[..., Any], node: Node, of: Of) -> Bounds:
    found = [of(v) for v in node.inputs]
    return choose(f[0] for f in found), choose(f[1] for f in found)


def _hull(function: Callable[[int, int], int], node: Node, of: Of) -> Bounds:
    """Of an operation whose extremes lie at those of its operands."""
    corners = [function(a, b) for a, b in itertools.product(*map(of, node.inputs))]
    return min(corners), max(corners)


def _one_of(node: Node, of: Of) -> Bounds:
    found = [of(v) for v in node.inputs[1:]]
    return min(f[0] for f in found), max(f[1] for f in found)


def _bits(node: Node, of: Of) -> Bounds | None:
    """``x & mask`` lies between 0 and a mask that is not negative."""
    highest = [high for low, high in map(of, node.inputs) if low >= 0]
    return (0, min(highest)) if highest else None


_RULES: dict[str, Callable[[Node, Of], Bounds | None]] = {
    "Const": _constant, "Cast": _same, "Mod": _modulo, "BitAnd": _bits, "Where": _one_of,
    "Add": partial(_hull, operator.add), "Sub": partial(_hull, operator.sub),
    "Mul": partial(_hull, operator.mul),
    "Minimum": partial(_ends, min), "Maximum": partial(_ends, max),
}


def _rule(op: str) -> Callable[[Node, Of], Bounds | None] | None:
    return _same if get(op).kind in ("view", "gather") else _RULES.get(op)
