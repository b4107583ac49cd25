"""Shape rules shared by op declarations: broadcasting, axes, slices."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from fusec.ir.sizes.dims import Dim, Size, UndecidedSizeError

Shape = tuple[Size, ...]


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcast of shapes; raises ``ValueError`` with NumPy's wording.

    A size that only the run knows fits itself and 1 alone.
    """
    try:
        if all(type(size) is int for shape in shapes for size in shape):
            first = shapes[0] if shapes else ()
            is_one = all(shape == first for shape in shapes)  # in a fifth of the time
            return tuple(first) if is_one else np.broadcast_shapes(*shapes)
        return _broadcast_symbolic(shapes)
    except ValueError:
        shown = " ".join(str(s).replace(" ", "") for s in shapes)
        raise ValueError(
            f"operands could not be broadcast together with shapes {shown}"
        ) from None


def _broadcast_symbolic(shapes: Sequence[Shape]) -> Shape:
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(_common(column) for column in zip(*aligned, strict=True))


def _common(sizes: Sequence[Size]) -> Size:
    """The one size other than 1; undecided where a size of the run meets another."""
    candidates = [s for s in sizes if s != 1] or [1]
    if all(s == candidates[0] for s in candidates):
        return candidates[0]
    unknown = next((s for s in candidates if isinstance(s, Dim)), None)
    if unknown is not None:
        raise UndecidedSizeError(unknown, "broadcasting")
    raise ValueError


def normalise_axis(axis: int, rank: int) -> int:
    """A non-negative axis; raises ``numpy.exceptions.AxisError`` when out of range."""
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def normalise_axes(axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Sorted non-negative axes; ``None`` means all; raises on duplicates as NumPy does."""
    if axes is None:
        return tuple(range(rank))
    if not isinstance(axes, (tuple, list)):
        axes = (operator.index(axes),)  # type: ignore[arg-type]  # ints, and integer arrays of rank 0
    result = tuple(normalise_axis(int(a), rank) for a in axes)
    if len(set(result)) != len(result):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(result))


def reduced(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape without these axes."""
    return tuple(d for i, d in enumerate(shape) if i not in axes)
