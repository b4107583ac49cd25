"""Indexing along one axis with positions known while tracing: runs of slices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..library.calls import result_like
from ..library.stand_ins import ask_on_stand_ins
from ..operands.operands import entries_of
from ..values.array import TracedArray


def _is_list(entry: Any) -> bool:
    return (type(entry) is np.ndarray and entry.ndim == 1) or type(entry) is list


def is_fixed(key: Any) -> bool:
    """Whether the key is slices and one plain vector of positions (or a plain boolean vector)."""
    entries = entries_of(key)
    lists = sum(map(_is_list, entries))
    return lists == 1 and all(_is_list(e) or type(e) is slice for e in entries)


def _parts(key: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], np.ndarray, tuple[Any, ...]]:
    """The slices before, the positions, the slices after."""
    entries = entries_of(key)
    axis = next(i for i, e in enumerate(entries) if _is_list(e))
    chosen = np.asarray(entries[axis])
    if chosen.dtype == np.bool_:
        chosen = np.flatnonzero(chosen)
    if chosen.size and not (-shape[axis] <= chosen.min() and chosen.max() < shape[axis]):
        raise IndexError(f"index {chosen} is out of bounds for axis {axis} with size "
                         f"{shape[axis]}")
    return entries[:axis], chosen.astype(np.intp) % max(shape[axis], 1), entries[axis + 1:]


def _runs(positions: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """(number, start, stop) of the stretches of consecutive positions."""
    number = 0
    while number < len(positions):
        end = number + 1
        while end < len(positions) and positions[end] == positions[end - 1] + 1:
            end += 1
        yield number, int(positions[number]), int(positions[end - 1]) + 1
        number = end


def take(x: TracedArray, key: Any) -> Any:
    """``x[key]``: a fresh array."""
    before, positions, after = _parts(key, x.shape)
    parts = [x[(*before, slice(start, stop), *after)] for _, start, stop in _runs(positions)]
    if not parts:
        parts = [x[(*before, slice(0, 0), *after)]]
    taken: Any = np.concatenate(parts, axis=len(before)) if len(parts) > 1 else parts[0].copy()
    like = ask_on_stand_ins(x.trace, lambda a: a[key], [x], x.shape)
    return result_like(x.trace, like, taken.value)


def put(x: TracedArray, key: Any, value: Any) -> None:
    """``x[key] = value``; later positions win."""
    before, positions, after = _parts(key, x.shape)
    rank = len(before)
    shape = [len(range(*s.indices(n))) for s, n in zip(before, x.shape, strict=False)]
    shape += [len(positions), *x[(*before, slice(0, 1), *after)].shape[rank + 1:]]
    while np.ndim(value) > len(shape) and np.shape(value)[0] == 1:
        value = value[0]  # as in every assignment
    spread = np.broadcast_to(value, tuple(shape)) if np.ndim(value) else None
    for number, start, stop in _runs(positions):
        part = value if spread is None else spread[
            (*[slice(None)] * rank, slice(number, number + stop - start))]
        x[(*before, slice(start, stop), *after)] = part
