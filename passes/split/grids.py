"""Axes that are cut, and the places where they are cut.

A *line* is an axis along which arrays are in blocks: arguments that are added along an axis lie
along one line.  A *place* says where an axis of a value lies on its line: its element ``i`` is the
line's position ``i + shift``, so that ``x[1:]`` has the shift 1 more than ``x``.  A value's own
blocks are the line's cuts seen from there; the first and the last one reach to its ends.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from fusec.core.records import dataclass, field
from fusec.ops.splitting import Interval


class Place(NamedTuple):
    """Where an axis lies: on which line, and how far along."""

    line: int
    shift: int


Places = tuple[Place | None, ...]  # by axis of a value; None: it is not cut


@dataclass
class Lines:
    """The lines of a graph; those that turn out to be one are joined."""

    cuts: list[tuple[int, ...]] = field(default_factory=list)  # inner ones, by line
    parents: list[tuple[int, int]] = field(default_factory=list)  # (line, shift) on another line

    def new(self, chunks: Sequence[int]) -> Place:
        """A line of its own for an axis in blocks of these lengths."""
        cuts, end = [], 0
        for size in chunks[:-1]:
            end += size
            cuts.append(end)
        self.cuts.append(tuple(cuts))
        self.parents.append((len(self.parents), 0))
        return Place(len(self.parents) - 1, 0)

    def settled(self, place: Place) -> Place:
        """The place on the line that its line has become."""
        line, shift = place
        while self.parents[line][0] != line:
            line, more = self.parents[line]
            shift += more
        return Place(line, shift)

    def join(self, one: Place, other: Place) -> None:
        """Two axes go together.  The line with more cuts stays; shifts along one line differ."""
        one, other = self.settled(one), self.settled(other)
        if one.line == other.line:
            return
        if len(self.cuts[one.line]) < len(self.cuts[other.line]):
            one, other = other, one
        self.parents[other.line] = one.line, one.shift - other.shift

    def blocks(self, line: int) -> int:
        """The number of blocks along a settled line."""
        return len(self.cuts[line]) + 1

    def intervals(self, place: Place, size: int) -> list[Interval]:
        """The positions of a value's axis of that length in each block of its line; perhaps none.
        """
        line, shift = self.settled(place)
        ends = [min(max(cut - shift, 0), size) for cut in self.cuts[line]]
        return list(itertools.pairwise((0, *ends, size)))

    def bounds(self, place: Place, size: int) -> list[Interval]:
        """The blocks of an axis, those without elements left out."""
        return [part for part in self.intervals(place, size) if part[1] > part[0]] or [(0, 0)]

    def shortest(self, line: int) -> int:
        """The length of the shortest block between two cuts that has elements; of the first and
        last nobody knows."""
        cuts = self.cuts[line]
        return min((b - a for a, b in itertools.pairwise(cuts) if a < b), default=cuts[0])


def covering(bounds: Sequence[Interval], wanted: Interval) -> range:
    """The numbers of the blocks, which are in order, that hold any position of an interval."""
    first = max(bisect.bisect_right(bounds, wanted[0], key=_start) - 1, 0)
    last = bisect.bisect_left(bounds, wanted[1], lo=first + 1, key=_start)
    return range(first, last)


def _start(interval: Interval) -> int:
    return interval[0]
