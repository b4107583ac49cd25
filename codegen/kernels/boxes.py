"""Boxes of an iteration domain: in each, a piecewise op reads one of its operands."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.symbolic_sizes import is_symbolic
from fusec.ops.regions.cones import has_unit_region
from fusec.ops.regions.index_maps import AxisIndex, IndexMap

Box = tuple[tuple[int, int], ...]
SHORT_CHAIN = 64  # updates


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


def live_branch(box: Box, node: Node, index: IndexMap, ends: Sequence[Size]) -> int:
    """Which input a piecewise node reads in the whole box; raises `Split` if several.  ``ends``:
    where the operands of a concatenation end."""
    if node.op == "Concat":
        return _concat_branch(box, index[node.attrs["axis"]], ends)
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


def _concat_branch(box: Box, i: AxisIndex, ends: Sequence[Size]) -> int:
    low, high = _range(box, i)
    # A nest for each of thousands of operands: walking over them for each would be quadratic.
    is_known = bool(ends) and type(ends[-1]) is int and type(low) is int
    first = bisect_right(ends, low) if is_known else 0
    for position in range(first, len(ends)):
        begin, end = ends[position - 1] if position else 0, ends[position]
        if begin <= low < end:
            if high > end:
                raise Split(i.loop, end - i.start)
            return position
    return 0  # an empty box reads nothing


class Writes:
    """The boxes that an array was written in, one after the other, newest first.

    A loop that writes row after row makes a chain of a thousand updates of one array, and a nest
    for each.  To find which update a nest reads, all boxes are compared in one array operation:
    walking the chain for every nest would be quadratic.  Symbolic numbers of a short chain are
    compared one by one; a long one needs their values.
    """

    def __init__(self, value: Value) -> None:
        self.before = [value]  # the array, as it was before each of the updates
        while _is_update(value):
            value = value.node.inputs[0]
            self.before.append(value)
        nodes = [v.node for v in self.before[:-1]]
        self.written = [(n.attrs["starts"], n.attrs["sizes"]) for n in nodes]

    @lazy
    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        starts, sizes = (np.array(of, np.int64) for of in zip(*self.written, strict=True))
        return starts, starts + sizes

    def reaching(self, box: Box, index: IndexMap) -> Value:
        """The array as its newest update that reaches the box left it."""
        ranges = tuple(_range(box, i) for i in index)
        if len(self.written) <= SHORT_CHAIN and is_symbolic((ranges, *self.written)):
            return self._reaching(ranges)
        low, high = np.array(ranges, np.int64).reshape(-1, 2).T
        starts, ends = self._edges
        reaches = np.all((starts < high) & (low < ends), axis=1)
        newest = int(np.argmax(reaches))
        return self.before[newest if reaches[newest] else -1]

    def _reaching(self, ranges: Sequence[tuple[Any, Any]]) -> Value:
        for before, (starts, sizes) in zip(self.before, self.written, strict=False):
            if all(start < high and low < start + size for (low, high), start, size in zip(
                    ranges, starts, sizes, strict=True)):
                return before
        return self.before[-1]


def _is_update(value: Value) -> bool:
    return value.node.op == "SliceUpdate" and has_unit_region(value.node)
