"""Blocks of one column, of which sums over another axis are roots.

A kernel that sums over rows adds up neighbouring columns side by side; a column that is alone it
sums along itself, in vectors, which is another order and has other last bits.  So a block of one
column is made together with a neighbour, of which the task keeps nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.core.records import dataclass
from fusec.ir import Node, Value
from fusec.ops.splitting import Box, Interval
from fusec.ops.splitting.protocol import SplitRule
from fusec.ops.splitting.rules import is_rounded_sum

from .split_states import SplitStates
from .stages import BlockFamily, Root

Slices = tuple[Interval, ...]


@dataclass(frozen=True)
class NarrowBlocks:
    """Which boxes of a family's roots are made wider: those of length 1 along these axes of its
    grid."""

    family: BlockFamily
    axes: frozenset[int]

    def widened(self, roots: tuple[Box, ...]) -> tuple[Box, ...]:
        """The boxes that are made where these are wanted."""
        if not self.axes:
            return roots
        return tuple([self._widened(root, box) for root, box in zip(
            self.family.roots, roots, strict=True)])

    def _widened(self, root: Root, box: Box) -> Box:
        if root.barrier is not None:
            return box
        return tuple([
            (max(start - 1, 0), max(stop, 2))
            if at in self.axes and stop - start == 1 and size > 1 else (start, stop)
            for (start, stop), at, size in zip(box, root.along, root.sizes, strict=True)])


def kept_of(made: Box, wanted: Box) -> Slices | None:
    """The part that is kept of what is made; None where that is all."""
    if made == wanted:
        return None
    return tuple([(a - start, b - start) for (start, _), (a, b) in zip(made, wanted, strict=True)])


def narrow_blocks(
    states: SplitStates, family: BlockFamily, rules: Mapping[Node, SplitRule | None]
) -> NarrowBlocks:
    """Those of a family: along lines on which its sums' rows lie in neighbouring places."""
    made = {value: node for node in rules for value in node.outputs}
    lines = {line for line in family.grid if family.grid.count(line) == 1}
    found = {place.line for node in rules if is_rounded_sum(node)
             for axis, place in enumerate(states.of(node.inputs[0]))
             if place is not None and place.line in lines and axis not in node.attrs["axes"]
             and _lie_inside(made, rules, node, axis)}
    return NarrowBlocks(family, frozenset(map(family.grid.index, found)))


def _lie_inside(
    made: Mapping[Value, Node], rules: Mapping[Node, SplitRule | None], node: Node, kept: int
) -> bool:
    """Whether a leaf has the kept axis of a sum's operand further inside than one that is summed
    over, so that rows are not in one piece."""
    axes = {axis: axis == kept for axis in (kept, *node.attrs["axes"])}
    stack, seen = [(node.inputs[0], axes)], set[tuple[Value, tuple[tuple[int, bool], ...]]]()
    while stack:
        value, axes = stack.pop()
        if len({*axes.values()}) < 2 or (value, tuple(axes.items())) in seen:
            continue
        seen.add((value, tuple(axes.items())))
        maker = made.get(value)
        rule = None if maker is None else rules[maker]
        if maker is None or rule is None:
            if _ends_inside(axes):
                return True
            continue
        for number, operand in enumerate(maker.inputs):
            stack.append((operand, {
                axis: axes[read.axis] for axis, read in enumerate(rule.links(maker, number))
                if read is not None and read.axis in axes}))
    return False


def _ends_inside(axes: Mapping[int, bool]) -> bool:
    kept = [axis for axis, is_kept in axes.items() if is_kept]
    summed: Sequence[int] = [axis for axis, is_kept in axes.items() if not is_kept]
    return min(summed) < max(kept)


__all__ = ["NarrowBlocks", "Slices", "kept_of", "narrow_blocks"]
