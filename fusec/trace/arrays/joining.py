"""Arrays joined: concatenated, stacked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ops.shapes import normalise_axis

from ..facts.layout import contiguous, joined_order
from ..facts.refusals import target_dtype
from ..operands.operands import as_traced, cast, spread_scalar
from ..operands.sizes import check_axis_is_int
from ..values.array import TracedArray, copy_of, from_value
from ..values.handlers import entry
from ..values.rows import part_of, whole
from ..values.trace import Trace
from .shaping import at_least, expand_dims, in_numpys_words, is_same_view, moveaxis, ravel, reshape


@entry(np.concatenate)
def concatenate(
    trace: Trace, arrays: Sequence[Any], axis: Any = 0, out: Any = None, *, dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """``np.concatenate`` of arrays of one rank."""
    check_axis_is_int(trace, axis)
    is_plain = axis is not None and out is None and dtype is None
    rows = rows_of(trace, arrays, 1) if is_plain else None
    if rows is not None:
        return _merged(trace, rows, axis)
    given = [as_traced(trace, a) for a in arrays]
    parts = [spread_scalar(x) for x in given]
    if not parts:
        raise trace.error(ValueError("need at least one array to concatenate"))
    if axis is None:
        parts, axis = [ravel(trace, p) for p in parts], 0
    else:
        axis = in_numpys_words(trace, operator.index, axis)
    _check_joinable(trace, parts, axis)
    position = in_numpys_words(trace, normalise_axis, axis, parts[0].ndim)
    # Python numbers, which can be joined flat only, take the dtype of the others.
    target = np.result_type(*[_as_joined(x) for x in given]) if dtype is None else target_dtype(
        dtype, "a joined array", trace.loc)
    for part in given if dtype is not None else ():
        if not np.can_cast(_as_joined(part), target, casting):
            raise trace.error(TypeError(
                f"Cannot cast array data from {part.dtype!r} to {target!r} according to the rule "
                f"{casting!r}"), [part.value])
    values = [cast(trace, p.value, target) for p in parts]
    result = values[0] if len(values) == 1 else trace.emit("Concat", *values, axis=position)
    if out is not None:
        destination = as_traced(trace, out)
        if len(parts) == 1 and is_same_view(parts[0], destination):
            return destination  # which NumPy finds before it asks whether it may be written to
        destination.write(cast(trace, result, destination.dtype))
        return destination
    order = joined_order([p.shape for p in parts], [p.strides for p in parts])
    return from_value(trace, result, contiguous(result.shape, target.itemsize, order))


def rows_of(trace: Trace, arrays: Sequence[Any], rank: int = 0) -> Any:
    """The array of which these are all rows, of this rank at least; None where they are not, so
    that each is joined by itself."""
    place = whole(trace, arrays) if type(arrays) in (list, tuple) else None
    if place is None or len(place[0].shape) - len(place[1]) <= rank:
        return None
    return from_value(trace, part_of(trace, place, "array"))


def _merged(trace: Trace, rows: TracedArray, axis: Any) -> TracedArray:
    """Rows one after the other along one of their axes."""
    axis = in_numpys_words(trace, operator.index, axis)
    position = in_numpys_words(trace, normalise_axis, axis, rows.ndim - 1)
    joined: TracedArray = moveaxis(trace, rows, 0, position)
    shape = rows.shape[1:]
    length = rows.shape[0] * shape[position]
    return copy_of(reshape(trace, joined, (*shape[:position], length, *shape[position + 1:])), "C")


def _as_joined(x: TracedArray) -> Any:
    return x.type.zero if x.type.is_weak and x.dtype.kind != "b" else x.dtype


def _check_joinable(trace: Trace, parts: list[TracedArray], axis: int) -> None:
    first = parts[0]
    if first.ndim == 0:
        raise trace.error(ValueError("zero-dimensional arrays cannot be concatenated"))
    for position, part in enumerate(parts[1:], 1):
        if part.ndim != first.ndim:
            raise trace.error(ValueError(
                f"all the input arrays must have same number of dimensions, but the array at "
                f"index 0 has {first.ndim} dimension(s) and the array at index {position} has "
                f"{part.ndim} dimension(s)"), [first.value, part.value])
        for d in range(first.ndim):
            if d != axis % first.ndim and part.shape[d] != first.shape[d]:
                raise trace.error(ValueError(
                    f"all the input array dimensions except for the concatenation axis must match "
                    f"exactly, but along dimension {d}, the array at index 0 has size "
                    f"{first.shape[d]} and the array at index {position} has size "
                    f"{part.shape[d]}"), [first.value, part.value])


@entry(np.stack)
def stack(
    trace: Trace, arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """``np.stack``: join along a new axis."""
    rows = rows_of(trace, arrays) if out is None and dtype is None else None
    if rows is not None:
        position = in_numpys_words(trace, normalise_axis, axis, rows.ndim)
        return copy_of(moveaxis(trace, rows, 0, position), "C")
    parts = [spread_scalar(as_traced(trace, a)) for a in arrays]
    if not parts:
        raise trace.error(ValueError("need at least one array to stack"))
    if any(p.shape != parts[0].shape for p in parts):
        raise trace.error(ValueError("all input arrays must have the same shape"),
                          [p.value for p in parts])
    return concatenate(trace, [expand_dims(trace, p, axis) for p in parts], axis, out,
                       dtype=dtype, casting=casting)


# Only some of the supported NumPys have `row_stack`.
@entry(np.vstack, *filter(None, [getattr(np, "row_stack", None)]))
def vstack(
    trace: Trace, tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """``np.vstack``."""
    rows = rows_of(trace, tup) if dtype is None else None
    if rows is not None:
        return _merged(trace, rows, 0) if rows.ndim > 2 else copy_of(
            rows if rows.ndim == 2 else expand_dims(trace, rows, 1), "C")
    parts = [spread_scalar(as_traced(trace, a)) for a in tup]
    return concatenate(trace, [at_least(2)(trace, p) for p in parts], 0, dtype=dtype,
                       casting=casting)


@entry(np.hstack)
def hstack(
    trace: Trace, tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """``np.hstack``."""
    rows = rows_of(trace, tup) if dtype is None else None
    if rows is not None:
        return copy_of(rows) if rows.ndim == 1 else _merged(trace, rows, min(rows.ndim - 2, 1))
    parts = [at_least(1)(trace, spread_scalar(as_traced(trace, a))) for a in tup]
    return concatenate(trace, parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype,
                       casting=casting)


@entry(np.column_stack)
def column_stack(trace: Trace, tup: Sequence[Any]) -> Any:
    """``np.column_stack``: arrays of one axis are columns."""
    rows = rows_of(trace, tup)
    if rows is not None and rows.ndim == 1:
        return copy_of(expand_dims(trace, rows, 0))
    if rows is not None and rows.ndim == 2:
        return stack(trace, tup, 1)
    if rows is not None and rows.ndim > 2:
        return concatenate(trace, tup, 1)
    parts = [spread_scalar(as_traced(trace, a)) for a in tup]
    return concatenate(trace, [p if p.ndim > 1 else at_least(2)(trace, p).T for p in parts], 1)


@entry(np.dstack)
def dstack(trace: Trace, tup: Sequence[Any]) -> Any:
    """``np.dstack``: joined along the third axis."""
    rows = rows_of(trace, tup)
    if rows is not None and rows.ndim < 3:
        return copy_of(expand_dims(trace, rows.T, (0, 1)[:3 - rows.ndim]), "C")
    if rows is not None and rows.ndim == 3:
        return stack(trace, tup, 2)
    if rows is not None and rows.ndim > 3:
        return concatenate(trace, tup, 2)
    return concatenate(trace, [_of_three_axes(trace, a) for a in tup], 2)


def _of_three_axes(trace: Trace, a: Any) -> TracedArray:
    """As ``np.atleast_3d``: an array of one axis is the second of three."""
    x = at_least(2)(trace, spread_scalar(as_traced(trace, a)))
    return expand_dims(trace, x, 2) if x.ndim == 2 else x
