"""Sums of arrays that are zero but for a part, or zero in a part: the way back of stencils.

``x[1:-1] = f(x[1:-1], ...)`` leaves a cotangent with zeros inside, to which that of the
operand is added.  It is put there instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusec.ir import Value
from fusec.ir.regions import Region, are_plain, is_inside, meet, region_of

from ..terms import Term

DEEPEST = 8  # summands that are looked at


def added(a: Term, b: Term) -> Term:
    """The sum; where one is zero but for a part, and the other is zero there, without adding."""
    for whole, padded in ((a, b), (b, a)):
        node = padded.value.node
        if node.op == "SliceUpdate" and _is_zero(node.inputs[0]) and whole.shape == padded.shape:
            put = put_into_zeros(whole, Term(a.builder, node.inputs[1]), node.attrs)
            if put is not None:
                return put
    return a + b


def put_into_zeros(
    total: Term, part: Term, region: Mapping[str, Any], depth: int = DEEPEST
) -> Term | None:
    """The total with the part added, where a summand of it is zero all over the region: the part
    takes their place.  So ``x[1:-1] = f(x[1:-1])`` needs no sum on the way back.

    (A sum of 0.0 and -0.0 is 0.0, and this gives -0.0.)
    """
    node = total.value.node
    if _is_zero(total.value):
        return total.emit("SliceUpdate", part, **region)
    if node.op == "Add" and depth:
        for summand, other in (node.inputs, node.inputs[::-1]):
            if summand.shape == total.shape:
                put = put_into_zeros(
                    Term(total.builder, summand), part, region, depth - 1)
                if put is not None:
                    return put + Term(total.builder, other)
    if node.op != "SliceUpdate" or not depth:
        return None
    before, new = (Term(total.builder, v) for v in node.inputs)
    ours, theirs = Region.of(region), region_of(node)
    if _is_zero(node.inputs[1]):
        if ours == theirs:
            return before.emit("SliceUpdate", part, **region)
        if is_inside(ours, theirs):
            return total.emit("SliceUpdate", part, **region)
    if not are_plain(ours, theirs) or meet(ours.reach, theirs.reach):
        return None
    put = put_into_zeros(before, part, region, depth - 1)
    return None if put is None else put.emit("SliceUpdate", new, **node.attrs)


def _is_zero(value: Value) -> bool:
    """Whether it is an array of zeros."""
    source = value.node.inputs[0] if value.node.op in ("BroadcastTo", "Fill") else value
    return source.node.op == "Const" and not source.shape and source.node.attrs["value"] == 0
