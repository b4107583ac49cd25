"""Proofs that indices lie within their limits in a graph that is read in.

A proof goes by the nodes in between: a cast may wrap, a limit may be negative.  An index that no
rule here proves is checked when the code runs.
"""

from __future__ import annotations

from fusec.ir import Value
from fusec.ir.sizes.dims import Size, is_at_least, maximum

from ..build import Builder
from ..registry import get
from .admission import INDEX, known_size


def is_in_range(index: Value, length: Size) -> bool:
    """Whether an index is proven to lie on an axis of this length.

    It is where it is a constant, counts up to a size no longer, or went through a `CheckIndex`
    with a limit no larger: that gives 0 where the limit is 0 or negative, and the call raises.
    """
    node = index.node
    while get(node.op).kind == "view":
        node = node.inputs[0].node
    if node.op == "Iota":
        return _is_at_most(node.attrs["size"], length)
    if node.op == "Const":
        value = int(node.attrs["value"])
        return value >= 0 and is_at_least(length, value + 1)
    if node.op != "CheckIndex":
        return False
    limit = known_size(node.inputs[1])
    return limit is not None and _is_at_most(maximum(limit, 0), length)


def is_not_negative(limit: Value) -> bool:
    """Whether a limit is proven to be at least 0."""
    known = known_size(limit)
    if known is not None:
        return is_at_least(known, 0)
    return limit.node.op == "Maximum" and any(
        known is not None and is_at_least(known, 0) for known in map(known_size, limit.node.inputs))


def not_negative(builder: Builder, limit: Value) -> Value:
    """The limit, or 0 where it is negative."""
    zero = builder.const(0 if limit.type.is_weak else INDEX.type(0))
    return builder.emit("Maximum", limit, zero)


def _is_at_most(size: Size, length: Size) -> bool:
    return size is length or is_at_least(length - size, 0)


__all__ = ["is_in_range", "is_not_negative", "not_negative"]
