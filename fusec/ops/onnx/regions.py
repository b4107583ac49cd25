"""Parts of arrays: first indices and lengths, of which some are known when the model runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.polynomials import Size

from .protocol import I64, Number, OnnxNodes, ints, number, plus, times, vector

_LEAST, _LARGEST = np.iinfo(I64).min, np.iinfo(I64).max


def read(
    nodes: OnnxNodes, x: str, axes: Sequence[int], starts: Sequence[Number],
    steps: Sequence[Number], counts: Sequence[Number],
) -> str:
    """The part of ``x`` of these first indices, steps and lengths."""
    if not axes:
        return nodes.node("Identity", x)
    ends = [_end(nodes, *each) for each in zip(starts, steps, counts, strict=True)]
    return nodes.node("Slice", x, vector(nodes, starts), vector(nodes, ends), ints(nodes, axes),
                      vector(nodes, steps))


def _end(nodes: OnnxNodes, start: Number, step: Number, count: Number) -> Number:
    """Behind the last index; ONNX takes a negative one for one from the end."""
    if isinstance(step, str):
        return nodes.node("Add", number(nodes, start),
                          nodes.node("Mul", number(nodes, count), step))
    end = plus(nodes, start, times(nodes, count, step))
    if isinstance(end, int):
        return end if end >= 0 else _LEAST
    if step > 0:
        return end
    name = number(nodes, end)
    is_before = nodes.node("Less", name, nodes.constant(np.int64(0)))
    return nodes.node("Where", is_before, nodes.constant(np.int64(_LEAST)), name)


def written(
    nodes: OnnxNodes, x: str, shape: Sequence[Size], value: str, axes: Sequence[int],
    starts: Sequence[Number], steps: Sequence[Number], counts: Sequence[Number],
) -> str:
    """``x`` with that part replaced: pieces before, in and behind it, axis by axis."""
    if not axes:
        return value
    (axis, *axes), (start, *starts) = axes, starts
    (step, *steps), (count, *counts) = steps, counts
    if (start, step, count) == (0, 1, shape[axis]):
        return written(nodes, x, shape, value, axes, starts, steps, counts)
    inside = read(nodes, x, [axis], [start], [step], [count])
    new = written(nodes, inside, shape, value, axes, starts, steps, counts)
    if step != 1:
        return _rows(nodes, x, len(shape), axis, new, start, step, count)
    parts = [] if start == 0 else [read(nodes, x, [axis], [0], [1], [start])]
    parts.append(new)
    behind = plus(nodes, start, count)
    if isinstance(behind, (str, Dim)) or behind != shape[axis]:
        parts.append(nodes.node("Slice", x, vector(nodes, [behind]), ints(nodes, [_LARGEST]),
                                ints(nodes, [axis])))
    return nodes.node("Concat", *parts, axis=axis)


def _rows(
    nodes: OnnxNodes, x: str, rank: int, axis: int, rows: str, start: Number, step: Number,
    count: Number,
) -> str:
    """``x`` with rows of an axis replaced, a step apart."""
    order = nodes.node("Range", nodes.constant(np.int64(0)), number(nodes, count),
                       nodes.constant(np.int64(1)))
    indices = nodes.node("Add", nodes.node("Mul", order, number(nodes, step)),
                         number(nodes, start))
    perm = front(rank, [axis])
    moved = nodes.node("ScatterND", nodes.node("Transpose", x, perm=perm),
                       nodes.node("Unsqueeze", indices, ints(nodes, [1])),
                       nodes.node("Transpose", rows, perm=perm))
    return nodes.node("Transpose", moved, perm=back(perm))


def front(rank: int, axes: Sequence[int]) -> list[int]:
    """The permutation that puts these axes first."""
    return [*axes, *(axis for axis in range(rank) if axis not in axes)]


def back(perm: Sequence[int]) -> list[int]:
    """The inverse of a permutation."""
    return [int(k) for k in np.argsort(perm)]


def moved(nodes: OnnxNodes, x: str, perm: Sequence[int]) -> str:
    """Transposed; itself where nothing moves."""
    perm = list(perm)
    return x if perm == sorted(perm) else nodes.node("Transpose", x, perm=perm)
