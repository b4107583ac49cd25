"""Regions of slices and the bytes of arrays, against what NumPy's arrays have in common."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from fusec.ir.regions import (
    Region,
    are_apart,
    are_plain,
    byte_extent,
    is_inside,
    may_overlap_itself,
    meet,
    overlapping,
    span,
)
from fusec.ir.sizes.dims import symbol

AXIS = st.tuples(st.integers(-6, 6), st.sampled_from([-3, -2, -1, 1, 1, 1, 2, 3]),
                 st.integers(0, 4))
PAIRS = st.lists(st.tuples(AXIS, AXIS), min_size=1, max_size=3)
STRIDED = st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=3)


def region(axes: Sequence[tuple[int, int, int]]) -> Region:
    return Region(*zip(*axes, strict=True))


def positions(of: Region) -> set[tuple[int, ...]]:
    return {*itertools.product(*(
        range(start, start + step * count, step) for start, step, count in of.axes))}


def offsets(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Of each element from the first one."""
    return [sum(i * s for i, s in zip(index, strides, strict=True))
            for index in np.ndindex(*shape)]


@given(AXIS)
def test_a_span_is_of_the_least_and_the_greatest_position(axis) -> None:
    start, step, count = axis
    found = range(start, start + step * count, step)
    assert not found or span(start, step, count) == (min(found), max(found))


@given(PAIRS)
@example([((0, 2, 3), (1, 2, 3))])  # which interleave: their spans meet
def test_regions_that_are_apart_have_nothing_in_common(pairs) -> None:
    one, other = (region(axes) for axes in zip(*pairs, strict=True))
    common = positions(one) & positions(other)
    assert are_apart(one, other) == are_apart(other, one)
    assert not (are_apart(one, other) and common)
    if are_plain(one, other):  # of regions without gaps it is known exactly
        assert are_apart(one, other) == (not common)


@given(PAIRS)
def test_reaches_meet_where_boxes_have_a_position_in_common(pairs) -> None:
    one, other = (region(axes) for axes in zip(*pairs, strict=True))
    if 0 not in (*one.sizes, *other.sizes):
        boxes = [{*itertools.product(*(range(low, high + 1) for low, high in of.reach))}
                 for of in (one, other)]
        assert meet(one.reach, other.reach) == (not boxes[0].isdisjoint(boxes[1]))


@given(PAIRS)
def test_a_region_inside_another_has_no_position_beside_it(pairs) -> None:
    one, other = (region(axes) for axes in zip(*pairs, strict=True))
    if is_inside(one, other):
        assert positions(one) <= positions(other)
    elif are_plain(one, other) and positions(one):
        assert not positions(one) <= positions(other)


@given(st.lists(AXIS, min_size=1, max_size=2), st.data())
def test_a_part_of_a_region_is_a_slice_of_a_slice(axes, data) -> None:
    whole = region([(abs(start), step, count) for start, step, count in axes])
    inner = region([(low, 1, data.draw(st.integers(0, size - low))) for size in whole.sizes
                    for low in [data.draw(st.integers(0, size))]])
    at = [[start + step * k for k in range(count)] for start, step, count in whole.axes]
    expected = {*itertools.product(*(
        p[first:first + count] for p, (first, _, count) in zip(at, inner.axes, strict=True)))}
    assert positions(whole.part(inner)) == expected


def test_nothing_is_known_of_sizes_that_the_run_decides() -> None:
    n = symbol("n")
    open_, closed = Region((0,), (1,), (n,)), Region((5,), (1,), (2,))
    assert not are_apart(open_, closed) and not is_inside(closed, open_)
    assert span(2, 0, n) == (2, 2)


@given(STRIDED, st.sampled_from([1, 4, 8]))
def test_an_extent_is_of_the_first_byte_and_the_last(axes, itemsize) -> None:
    shape, strides = [n for n, _ in axes], [s for _, s in axes]
    found = offsets(shape, strides)
    expected = (min(found), max(found) + itemsize) if found else (0, 0)
    assert byte_extent(shape, strides, itemsize) == expected


def test_an_axis_of_an_unknown_stride_is_one_element() -> None:
    assert byte_extent((3, 5), (None, 8), 8) == (0, 40)


@given(STRIDED, st.sampled_from([1, 4, 8]))
def test_an_array_that_does_not_overlap_itself_has_bytes_of_its_own(axes, itemsize) -> None:
    shape, strides = [n for n, _ in axes], [s for _, s in axes]
    found = [byte for at in offsets(shape, strides) for byte in range(at, at + itemsize)]
    if not may_overlap_itself(shape, strides, itemsize):
        assert len({*found}) == len(found)
    elif len([n for n in shape if n > 1]) < 2:
        assert len({*found}) < len(found)


def test_the_first_pair_that_shares_memory_has_a_written_array() -> None:
    x = np.zeros(8)
    a, b, c, d = arrays = [(0, np.zeros(2)), (3, x[:4]), (5, x[2:]), (6, x[6:])]
    assert overlapping(arrays, [c]) == (5, 3)
    assert overlapping(arrays, [b]) == (3, 5)
    assert overlapping(arrays, [a, d]) == (6, 5)
    assert overlapping(arrays, [c], lambda i, j: {i, j} == {3, 5}) == (5, 6)
    assert overlapping(arrays, [a]) is overlapping(arrays, ()) is None
