"""What rules of splitting are made of: reads, boxes, and the site where a rule makes a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from fusec.core.records import dataclass
from fusec.ir import Node, Value

from .. import registry

Interval = tuple[int, int]  # positions along an axis, the second exclusive
Box = tuple[Interval, ...]


class Read(NamedTuple):
    """An axis of an operand that goes along one of the result: element ``i`` of the result reads
    there the position ``i + start``."""

    axis: int
    start: int = 0


Links = tuple[Read | None, ...]  # by axis of an operand; None: all of it is read


class BlockSite(Protocol):
    """Where a rule makes the node of a box."""

    @property
    def node(self) -> Node:
        """The node of the whole graph that is made for a box."""

    @property
    def box(self) -> Box:
        """The box of its result; of a barrier, then the intervals that are joined along."""

    def operand(self, number: int) -> Value:
        """The operand, in the box that the rule says."""

    def box_of(self, number: int) -> Box:
        """That box."""

    def emit(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        """A new node's first output."""

    def start(self, axis: int, dtype: Any, operand: int | None = None) -> Value:
        """Where the box, or that of an operand, begins along an axis: a number of the run, which
        differs from block to block."""


@dataclass(frozen=True)
class SplitRule:
    """The rule of a row.

    ``links(node, k)``: by axis of the operand ``k``.  ``local(site)``: the node for a box.
    ``boxes(node, k, box)``: where the operand's box does not follow from its links.
    ``keeps(node)``: whether this node has the rule at all.
    ``whole(node)``: axes of the result that are made as a whole, whatever part is read of them:
    those that a scan or a sort goes along.
    """

    links: Callable[[Node, int], Links]
    local: Callable[[BlockSite], Value]
    boxes: Callable[[Node, int, Box], Box | None] | None = None
    keeps: Callable[[Node], bool] = lambda node: True
    whole: Callable[[Node], Sequence[int]] = lambda node: ()

    def made_box(self, node: Node, box: Box) -> Box:
        """The box of the result that is made where this part of it is read."""
        whole, shape = self.whole(node), node.types[0].shape
        return tuple((0, int(shape[axis])) if axis in whole else part
                     for axis, part in enumerate(box)) if whole else box

    def box_of(self, node: Node, number: int, box: Box) -> Box | None:
        """The part of the operand that a box of the result reads; None where it reads nothing."""
        if self.boxes is not None:
            return self.boxes(node, number, box)
        return linked(self.links(node, number), node.inputs[number].shape, box)

    def is_pieces(self, node: Node) -> bool:
        """Whether the result is put together of parts of operands."""
        return self.boxes is not None or registry.get(node.op).kind == "piecewise"

    def moves(self, node: Node) -> bool:
        """Whether an operand's box moves as its links say where the result's does: everywhere, not
        but within the array."""
        return not self.is_pieces(node) or (
            node.op == "Slice" and all(step == 1 for step in node.attrs["steps"]))


def linked(links: Links, shape: Sequence[Any], box: Box) -> Box:
    """The box of an operand of this shape whose axes go along those of the result."""
    return tuple(
        (0, size) if read is None else (box[read.axis][0] + read.start,
                                        box[read.axis][1] + read.start)
        for read, size in zip(links, shape, strict=True))


def sizes_of(box: Box) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in box)


def declare(split: SplitRule, *names: str) -> None:
    """Fill the column of these rows."""
    for name in names:
        object.__setattr__(registry.get(name), "split", split)


def rule_of(node: Node) -> SplitRule | None:
    """The rule of the node; None where its row has none, or none for such a node."""
    split: SplitRule | None = registry.get(node.op).split
    static = all(t.is_static for t in (*node.types, *(v.type for v in node.inputs)))
    return split if split is not None and static and split.keeps(node) else None


def links_of(node: Node) -> list[Links]:
    """The links of every operand of a node that has a rule."""
    rule = rule_of(node)
    assert rule is not None
    return [rule.links(node, number) for number in range(len(node.inputs))]
