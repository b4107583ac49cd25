"""Shape rules shared by op declarations: broadcasting, axes, slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Shape = tuple[int, ...]


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcast of shapes; raises ``ValueError`` with NumPy's wording."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " ".join(str(s).replace(" ", "") for s in shapes)
        raise ValueError(
            f"operands could not be broadcast together with shapes {shown}"
        ) from None


def normalise_axis(axis: int, rank: int) -> int:
    """A non-negative axis; raises ``numpy.exceptions.AxisError`` when out of range."""
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def normalise_axes(axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Sorted non-negative axes; ``None`` means all; raises on duplicates as NumPy does."""
    if axes is None:
        return tuple(range(rank))
    if isinstance(axes, (int, np.integer)):
        axes = (int(axes),)
    result = tuple(normalise_axis(int(a), rank) for a in axes)
    if len(set(result)) != len(result):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(result))


def reduced(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape without these axes."""
    return tuple(d for i, d in enumerate(shape) if i not in axes)
