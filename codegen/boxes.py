"""Boxes of an iteration domain: in each, a piecewise op reads one of its operands."""

from __future__ import annotations

from fusec.ir import Node
from fusec.ops.index_maps import AxisIndex, IndexMap

Box = tuple[tuple[int, int], ...]


class Split(Exception):
    """A piecewise op needs the box cut in two along an axis."""

    def __init__(self, axis: int, at: int) -> None:
        self.axis, self.at = axis, at


def cut(box: Box, split: Split) -> list[Box]:
    """The two parts of a box."""
    low, high = box[split.axis]
    before = (*box[: split.axis], (low, split.at), *box[split.axis + 1:])
    after = (*box[: split.axis], (split.at, high), *box[split.axis + 1:])
    return [before, after]


def _range(box: Box, i: AxisIndex) -> tuple[int, int]:
    """First index read and one past the last, over the box."""
    if i.loop < 0:
        return i.start, i.start + 1
    low, high = box[i.loop]
    return low + i.start, high + i.start


def live_branch(box: Box, node: Node, index: IndexMap) -> int:
    """Which input a piecewise node reads in the whole box; raises `Split` if several."""
    if node.op == "Concat":
        return _concat_branch(box, node, index)
    for axis, (start, size) in enumerate(
        zip(node.attrs["starts"], node.attrs["sizes"], strict=True)
    ):
        low, high = _range(box, index[axis])
        if high <= start or low >= start + size:
            return 0
    for axis, (start, size) in enumerate(
        zip(node.attrs["starts"], node.attrs["sizes"], strict=True)
    ):
        low, high = _range(box, index[axis])
        for edge in (start, start + size):
            if low < edge < high:
                raise Split(index[axis].loop, edge - index[axis].start)
    return 1


def _concat_branch(box: Box, node: Node, index: IndexMap) -> int:
    i = index[node.attrs["axis"]]
    low, high = _range(box, i)
    offset = 0
    for position, value in enumerate(node.inputs):
        end = offset + value.shape[node.attrs["axis"]]
        if offset <= low < end:
            if high > end:
                raise Split(i.loop, end - i.start)
            return position
        offset = end
    return 0  # an empty box reads nothing
