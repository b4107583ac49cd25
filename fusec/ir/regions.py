"""Regions of arrays: the elements that slices read and updates write, and the bytes of arrays.

A *region* has a start, a step and a size on each axis; its steps are positive or negative.  A
*span* is the least and the greatest position on one axis, a *reach* a span for each axis: the
bounding box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .graph import Node
from .sizes.dims import Size, is_static, maximum, minimum

Sizes = Sequence[Size]
Span = tuple[Size, Size]
Reach = Sequence[Span]


class Region(NamedTuple):
    """Positions ``start + step * k`` for ``k`` below the size, on each axis."""

    starts: Sizes
    steps: Sizes
    sizes: Sizes

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> Region:
        """That of a ``Slice`` or ``SliceUpdate``, by its attributes."""
        return cls(attrs["starts"], attrs["steps"], attrs["sizes"])

    @property
    def axes(self) -> Iterator[tuple[Size, Size, Size]]:
        """Start, step and size, axis by axis."""
        return zip(*self, strict=True)

    @property
    def is_static(self) -> bool:
        return is_static((*self.starts, *self.sizes))

    @property
    def is_dense(self) -> bool:
        """Whether it has no gaps, and goes forwards."""
        return all(step == 1 for step in self.steps)

    @property
    def reach(self) -> Reach:
        """Of a region that is not empty."""
        return [span(*axis) for axis in self.axes]

    def part(self, inner: Region) -> Region:
        """The region of the whole that ``inner`` is of this region."""
        return Region(shift(inner.starts, self.starts, self.steps),
                      times(inner.steps, self.steps), inner.sizes)


def region_of(node: Node) -> Region:
    """The region that a ``Slice`` reads, or a ``SliceUpdate`` writes."""
    return Region.of(node.attrs)


def shift(starts: Sizes, inner_starts: Sizes, inner_steps: Sizes) -> tuple[Size, ...]:
    """The starts of a slice of a slice."""
    return tuple(c + a * d for a, c, d in zip(starts, inner_starts, inner_steps, strict=True))


def times(steps: Sizes, inner_steps: Sizes) -> tuple[Size, ...]:
    """The steps of a slice of a slice."""
    return tuple(a * b for a, b in zip(steps, inner_steps, strict=True))


def span(start: Size, step: Size, count: Size) -> Span:
    """The positions of at least one element; expressions where only the run knows."""
    last = start + step * (count - 1)
    if is_static((start, step, count)):
        return (start, last) if step > 0 else (last, start)
    return minimum(start, last), maximum(start, last)


def are_plain(*regions: Region) -> bool:
    """Whether they are of known sizes and without gaps."""
    return all(r.is_dense and r.is_static for r in regions)


def meet(one: Reach, other: Reach) -> bool:
    """Whether two bounding boxes have a position in common.

    Raises `UndecidedSizeError` where only the run knows.
    """
    return all(low <= top and bottom <= high for (low, high), (bottom, top) in zip(
        one, other, strict=True))


def are_apart(one: Region, other: Region) -> bool:
    """Whether two regions of known sizes surely have no element in common: one is empty, or their
    spans do not meet on some axis."""
    if not (one.is_static and other.is_static):
        return False
    return any(count == 0 for count in (*one.sizes, *other.sizes)) or not meet(
        other.reach, one.reach)


def is_inside(one: Region, other: Region) -> bool:
    """Whether the first region lies in the second one; both of known sizes and without gaps."""
    return are_plain(one, other) and all(
        first <= start and start + count <= first + size for (start, _, count), (first, _, size)
        in zip(one.axes, other.axes, strict=True))


# ------------------------------------------------------------------------------------------ memory


def byte_extent(
    shape: Sequence[int], strides: Sequence[int | None], itemsize: int
) -> tuple[int, int]:
    """The bytes that an array reaches, seen from its first element: (low, high), high exclusive.

    Axes of an unknown stride count as one element.
    """
    if 0 in shape:
        return 0, 0
    ends = [(n - 1) * (step or 0) for n, step in zip(shape, strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + itemsize


def may_overlap_itself(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether elements of one array may have bytes in common, by strides and sizes."""
    if 0 in shape:
        return False
    reached = itemsize  # bytes that the axes with smaller steps reach
    for step, size in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if step < reached:
            return True
        reached += step * (size - 1)
    return False


def overlapping(
    arrays: Sequence[tuple[int, np.ndarray]], written: Iterable[tuple[int, np.ndarray]],
    are_one: Callable[[int, int], bool] = lambda one, other: False,
) -> tuple[int, int] | None:
    """The numbers of two arrays that may share memory, the first of them one of those that are
    ``written``; None: no two do.

    ``are_one``: arrays that may, for the program knows them as one.
    """
    for i, x in written:
        for j, y in arrays:
            if i != j and np.may_share_memory(x, y) and not are_one(i, j):
                return i, j
    return None
