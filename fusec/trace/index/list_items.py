"""Items of lists and tuples of numbers at positions that only the run knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import Value

from ..facts.refusals import is_index
from ..operands.operands import as_traced, cast
from ..operands.python_numbers import index_of, weak
from ..values.array import TracedArray, number
from ..values.operations import OPERATIONS
from ..values.trace import Trace

MOST_ITEMS = 64  # of which each is compared with the position
I64 = np.dtype(np.int64)


def kind_of(trace: Trace, x: Any) -> tuple[np.dtype, bool] | None:
    """Dtype of a number, and whether it is Python's; None for anything else."""
    if type(x) is TracedArray:
        type_ = x.type
        return None if x.is_array else (type_.dtype, type_.is_weak)
    if not isinstance(x, (bool, int, float, complex, np.generic)):
        return None
    type_ = as_traced(trace, x).type
    return type_.dtype, type_.is_weak


def is_position(x: Any) -> bool:
    return type(x) is TracedArray and not x.is_array and is_index(x)


def item_at(trace: Trace, items: Any, position: TracedArray) -> Any:
    """``items[position]``; None where they are not numbers of one kind."""
    kind = _one_kind(trace, items)
    if kind is None:
        return None
    dtype, is_weak = kind
    place = checked_place(trace, position, len(items), "list index")
    value = OPERATIONS.array(trace, list(items), dtype)[place].value
    return number(trace, weak(trace, value, dtype) if is_weak else value)


def _one_kind(trace: Trace, items: Any) -> tuple[np.dtype, bool] | None:
    """The kind of all of them, if they are numbers of one dtype."""
    kinds = {kind_of(trace, x) for x in items}
    pairs = {kind for kind in kinds if kind is not None}
    if len(pairs) < len(kinds) or len({dtype for dtype, _ in pairs}) != 1:
        return None
    # As in branches, a number that is Python's or NumPy's as data decides is NumPy's.
    return next(iter(pairs))[0], all(is_weak for _, is_weak in pairs)


def put_at(trace: Trace, items: list[Any], position: TracedArray, new: Any) -> bool:
    """``items[position] = new`` as a choice for each item; False where they are not numbers of one
    kind."""
    kind = _one_kind(trace, (*items, new))
    if kind is None or len(items) > MOST_ITEMS:
        return False
    place = checked_place(trace, position, len(items), "list assignment index")
    for k, old in enumerate(items):
        here = trace.emit("Equal", place.value, trace.builder.const(np.int64(k)))
        items[k] = number(trace, trace.emit(
            "Where", here, as_traced(trace, new).value, as_traced(trace, old).value,
            kind="weak" if kind[1] else "scalar"))
    return True


def checked_place(trace: Trace, position: TracedArray, count: Any, what: str) -> TracedArray:
    """The position counted from the start; out of range it raises as Python does."""
    place = cast(trace, index_of(trace, position, IndexError(
        "cannot fit 'numpy.uint64' into an index-sized integer")).value, I64)
    const = trace.builder.const
    length = cast(trace, count.value, I64) if type(count) is TracedArray else const(np.int64(count))
    is_negative = trace.emit("Less", place, const(np.int64(0)))
    from_end = trace.emit("Add", place, length)
    real = trace.emit("Where", is_negative, from_end, place, kind="scalar")
    inside: Value = trace.emit(
        "LogicalAnd", trace.emit("GreaterEqual", real, const(np.int64(0))),
        trace.emit("Less", real, length))
    trace.check(inside, IndexError(f"{what} out of range"))
    return number(trace, real)
