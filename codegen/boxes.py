"""Boxes of an iteration domain: in each, a piecewise op reads one of its operands."""

from __future__ import annotations

import numpy as np

from fusec.ir import Node, Value
from fusec.ops.cones import has_unit_region
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


class Writes:
    """The boxes that an array was written in, one after the other, newest first.

    A loop that writes row after row makes a chain of a thousand updates of one array, and a nest
    for each.  To find which update a nest reads, all boxes are compared in one array operation:
    walking the chain for every nest would be quadratic.
    """

    def __init__(self, value: Value) -> None:
        self.before = [value]  # the array, as it was before each of the updates
        while _is_update(value):
            value = value.node.inputs[0]
            self.before.append(value)
        nodes = [v.node for v in self.before[:-1]]
        starts = [n.attrs["starts"] for n in nodes]
        self.starts = np.array(starts, np.int64)
        self.ends = self.starts + np.array([n.attrs["sizes"] for n in nodes], np.int64)

    def reaching(self, box: Box, index: IndexMap) -> Value:
        """The array as its newest update that reaches the box left it."""
        edges = np.array([_range(box, i) for i in index], np.int64)
        low, high = edges.reshape(-1, 2).T
        reaches = np.all((self.starts < high) & (low < self.ends), axis=1)
        newest = int(reaches.argmax())
        return self.before[newest if reaches[newest] else -1]


def _is_update(value: Value) -> bool:
    return value.node.op == "SliceUpdate" and has_unit_region(value.node)
