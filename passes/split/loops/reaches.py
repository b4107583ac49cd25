"""How far values read beyond their own blocks, in positions along a line.

A value that reads its operand's neighbours on both sides, twice over, reaches from -2 to 2.  The
reach begins anew at what is stored in blocks.
"""

from __future__ import annotations

from fusec.ir import Node, Value
from fusec.ops.splitting.protocol import rule_of

from ..split_states import SplitStates

Reach = tuple[tuple[int, int] | None, ...]  # by axis; None: nothing is read along there


def union(one: Reach | None, other: Reach) -> Reach:
    """What either reaches."""
    if one is None:
        return other
    return tuple(b if a is None else a if b is None else (min(a[0], b[0]), max(a[1], b[1]))
                 for a, b in zip(one, other, strict=True))


def reach_of(states: SplitStates, node: Node, reaches: dict[Value, Reach]) -> None:
    """Note the reach of a node's result, of those of its operands that have one."""
    if not node.types or node.out() in states.barriers:
        return
    rule = rule_of(node)
    read = [(number, v) for number, v in enumerate(node.inputs) if v in reaches]
    if rule is None or not read:
        return
    value = node.out()
    found: list[tuple[int, int] | None] = [None] * value.type.rank
    for number, operand in read:
        links = rule.links(node, number)
        for place, link, reach in zip(
                states.of(operand), links, reaches[operand], strict=True):
            if place is None or link is None or reach is None:
                continue
            own = states.of(value)[link.axis]
            by = 0 if own is None or own.line != place.line else (
                link.start + place.shift - own.shift)
            low, high = reach[0] + by, reach[1] + by
            known = found[link.axis]
            found[link.axis] = (low, high) if known is None else (
                min(known[0], low), max(known[1], high))
    reaches[value] = tuple(found)
