"""Strides during a trace: those that NumPy would give each array, so that results and views agree.

All strides are in bytes.  Sources: NumPy's documented iteration order ("K": as the operands lie in
memory) and its rule when ``reshape`` can return a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.ir.sizes.bindings import typical
from fusec.ir.sizes.dims import Dim, Size, UndecidedSizeError, is_static, maximum

Strides = tuple[Size, ...]
Shape = tuple[Size, ...]


def contiguous(shape: Shape, itemsize: int, order: Sequence[int] | None = None) -> Strides:
    """Strides of a fresh array whose axes lie in ``order`` (outermost first; default C)."""
    if 0 in shape:
        return (0,) * len(shape)
    strides: list[Size] = [0] * len(shape)
    step: Size = itemsize
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step = step * maximum(shape[axis], 1)
    return tuple(strides)


def common(shape: Shape, itemsize: int, a: Strides, b: Strides) -> Strides | None:
    """Strides of a fresh array that may be a copy of either; None (C order) if they disagree."""
    order = like_order(a)
    return contiguous(shape, itemsize, order) if order == like_order(b) else None


def _first_symbolic(sizes: Sequence[Size]) -> Dim:
    return next(s for s in sizes if isinstance(s, Dim))


def is_c_contiguous(shape: Shape, strides: Strides, itemsize: int) -> bool:
    step: Size = itemsize
    if 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step = step * maximum(size, 1)
    return True


def k_order(shape: Shape, operands: Sequence[Strides]) -> list[int]:
    """Axes outermost first as NumPy's iterator orders them: by stride, ties in C order.

    As there: an insertion sort from the innermost axis outwards, which ignores axes of length 1.
    Broadcast operands leave the order partial, so another way of sorting gives another order.
    """
    rows = [tuple(0 if n == 1 else s for n, s in zip(shape, row, strict=True)) for row in operands]
    inwards = list(range(len(shape)))
    return _sorted(inwards[::-1], lambda a, b: _compare(a, b, rows))[::-1]


def _sorted(order: list[int], compare: Callable[[int, int], int]) -> list[int]:
    """An insertion sort; ``compare`` gives 1 where the first axis goes before the second."""
    for position in range(1, len(order)):
        axis, place = order[position], position
        for before in range(position - 1, -1, -1):
            verdict = compare(axis, order[before])
            if verdict == 1:
                place = before
            elif verdict == -1:
                break
        order.insert(place, order.pop(position))
    return order


def _compare(a: int, b: int, operands: Sequence[Strides]) -> int:
    """-1: axis a lies outside b, 1: inside, 0: undecided, as every operand is broadcast there."""
    verdict = 0
    for strides in operands:
        sa, sb = abs(typical(strides[a])), abs(typical(strides[b]))
        if sa == 0 or sb == 0:
            continue
        if sa >= sb:
            return -1
        verdict = 1
    return verdict


def _c_sorted(rank: int, operands: Sequence[Strides]) -> list[int]:
    """Axes outermost first by stride, sorted from the outermost inwards."""
    return _sorted(list(range(rank)), lambda a, b: _compare(b, a, operands))


def like_order(strides: Strides) -> list[int]:
    """Axes outermost first in a new array "like" another (copies, ``zeros_like``): by stride.

    Unlike in `k_order`, broadcast axes (stride 0) come last.
    """
    return sorted(range(len(strides)), key=lambda axis: -abs(typical(strides[axis])))


def order_like(shape: Shape, strides: Strides, itemsize: int, order: str) -> list[int] | None:
    """Axes outermost first in a copy made with ``order``; None is C order.

    "K" keeps the order in memory, "A" only Fortran's.
    """
    backwards = list(range(len(shape)))[::-1]
    if order == "K":
        return like_order(strides)
    is_fortran = order == "A" and is_c_contiguous(shape[::-1], strides[::-1], itemsize) and (
        not is_c_contiguous(shape, strides, itemsize))
    return backwards if order == "F" or is_fortran else None


def joined_order(shapes: Sequence[Shape], strides: Sequence[Strides]) -> list[int]:
    """Axes outermost first in the result of ``concatenate`` of these arrays.

    Unlike in `k_order`, a stride of 0 counts; only axes of length 1 say nothing.
    """
    return _c_sorted(len(strides[0]), [
        tuple(0 if size == 1 else abs(typical(s)) + 1 for size, s in zip(shape, row, strict=True))
        for shape, row in zip(shapes, strides, strict=True)
    ])


def broadcast_strides(shape: Shape, strides: Strides, target: Shape) -> Strides:
    """Strides of the array broadcast to ``target``: 0 along added and stretched axes."""
    lead = len(target) - len(shape)
    inner = (
        0 if size == 1 and to != 1 else stride
        for size, stride, to in zip(shape, strides, target[lead:], strict=True)
    )
    return (0,) * lead + tuple(inner)


def reshape_strides(shape: Shape, strides: Strides, target: Shape, itemsize: int) -> Strides | None:
    """Strides of ``reshape(target)`` as a view; ``None`` when NumPy has to copy."""
    if 0 in shape:
        return contiguous(target, itemsize)
    if not is_static((*shape, *strides, *target)):  # of fresh memory, else it is copied
        if strides == contiguous(shape, itemsize):
            return contiguous(target, itemsize)
        if len(shape) == 1 and strides[0] > 0:
            return contiguous(target, strides[0])
        raise UndecidedSizeError(_first_symbolic((*shape, *strides, *target)), "reshape of a view")
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    at = axis = 0
    while at < len(old) or axis < len(target):
        end, oldsize = at, 1
        newsize, last = 1, axis
        if at < len(old):
            oldsize, end = old[at][0], at + 1
        while (last < len(target) and newsize < oldsize) or (last == axis and last < len(target)):
            newsize *= target[last]
            last += 1
            while newsize > oldsize and end < len(old):
                oldsize *= old[end][0]
                end += 1
        if newsize != oldsize:
            return None
        for k in range(at, end - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        step = old[end - 1][1] if end > at else itemsize
        chunk: list[int] = []
        for size in reversed(target[axis:last]):
            chunk.append(step)
            step *= size
        result.extend(reversed(chunk))
        at, axis = end, last
    return tuple(result)
