"""The order in which ``x[i] = v`` writes: it shows where indices name an element twice.

NumPy goes through index arrays and the value as `numpy.nditer` with ``order="K"`` does: as they lie
in memory.  It goes in C order where slices stand beside the indices, and along a single vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fusec.ir import Value

from ..library.stand_ins import ask_on_stand_ins
from ..operands.operands import spread
from ..values.array import TracedArray, from_value


class WriteOrder(NamedTuple):
    """Axes from the slowest to the fastest, and which of them NumPy goes through backwards."""

    axes: tuple[int, ...]
    backwards: tuple[bool, ...]


def in_numpys_order(
    value: Value, source: TracedArray, indices: Sequence[Value], places: Sequence[TracedArray],
) -> tuple[Value, list[Value]]:
    """``x[indices] = value`` with axes in the order in which NumPy goes through them.

    ``value`` has the shape of the indices; ``places`` and ``source`` are the indices and the value
    as the program gave them.
    """
    rank, arrays = value.type.rank, [x for x in (*places, source) if x.is_array]
    if rank == 0 or (rank == 1 and len(indices) == 1) or all(map(_is_in_c_order, arrays)):
        return value, list(indices)
    order: WriteOrder = ask_on_stand_ins(source.trace, lambda *xs: _order(xs, rank), arrays, rank)
    turned = [_turned(from_value(source.trace, spread(source.trace, v, value.shape)), order)
              for v in (value, *indices)]
    return turned[0], turned[1:]


def _turned(x: Any, order: WriteOrder) -> Value:
    if order.axes != tuple(range(len(order.axes))):
        x = x.transpose(order.axes)
    if any(order.backwards):
        x = x[tuple(slice(None, None, -1 if back else None) for back in order.backwards)]
    value: Value = x.value
    return value


def _is_in_c_order(x: TracedArray) -> bool:
    """Whether no axis lies in memory backwards, or inside one before it; repeated ones do not."""
    steps = [s for s, n in zip(x.strides or (), x.shape, strict=True) if s and n != 1]
    return all(s > 0 for s in steps) and steps == sorted(steps, reverse=True) and (
        0 not in (x.strides or ()))


def _order(arrays: Sequence[np.ndarray], rank: int) -> WriteOrder:
    arrays = [a[(0,) * (a.ndim - rank)] if a.ndim > rank else a for a in arrays]
    walk: Any = np.nditer(list(arrays), flags=["multi_index", "zerosize_ok"], order="K")
    shape, step, fastest = walk.shape, 1, list[int]()
    if 0 in shape:
        return WriteOrder(tuple(range(rank)), (False,) * rank)
    first = walk.multi_index
    for _ in range(sum(n > 1 for n in shape)):
        walk.iterindex = step
        fastest.append(next(d for d in range(rank) if walk.multi_index[d] != first[d]))
        step *= shape[fastest[-1]]
    axes = (*(d for d in range(rank) if d not in fastest), *reversed(fastest))
    return WriteOrder(axes, tuple(first[d] > 0 for d in axes))
