"""Slices with bounds that only the run knows: loop counters and integers computed from data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import UnsupportedError
from fusec.ir import Value
from fusec.ir.sizes.dims import Dim, Size, symbols_of
from fusec.ir.sizes.symbolic_numbers import stored
from fusec.ir.sizes.symbolic_sizes import plain_int
from fusec.ops import registry

from ..operands.operands import as_traced, is_run_time_int
from ..operands.python_numbers import from_ints, interval, weak
from ..operands.sizes import (
    as_size,
    check_bounds,
    check_no_truth,
    define,
    new_size,
    not_negative,
    number,
    size_of,
)
from ..values.array import TracedArray
from ..values.trace import Trace
from .masks import value_number

Bound = Value | None

LONGEST = 1 << 62  # no array is
_NO_STEP = "slice step cannot be zero"
_NEGATIVE_STEP = ("a slice with a negative step that is only known when the code runs is not "
                  "supported: pass the step as a Python int, or write x[::-1][::k] for x[::-k]")
_NEGATIVE = "negative dimensions are not allowed"


class Extents(dict[Any, list[tuple[tuple[int, ...], Any]]]):
    """Of a trace: lengths of slices that the run decides, with the regions they are of."""


def has_run_time_slice(array: TracedArray, key: Any) -> bool:
    """Whether a slice of the key has a bound that is no size and no constant."""
    return any(isinstance(e, slice) and is_open(array, e)
               for e in (key if isinstance(key, tuple) else (key,)))


def is_open(array: TracedArray, entry: slice) -> bool:
    """Whether the slice's length is no expression over the array's sizes, nor decided by the
    arguments."""
    open_ = [b for b in (entry.start, entry.stop, entry.step)
             if _is_open_bound(b) or _is_of_another(array, b)]
    return bool(open_) and (
        array.trace.in_region or not all(from_ints(b.value) for b in open_))


def _is_of_another(array: TracedArray, bound: Any) -> bool:
    """Whether a bound is made of sizes of other arrays: their definitions must be operands."""
    if not is_run_time_int(bound):
        return False
    return not symbols_of((size_of(bound.value),)) <= symbols_of(array.shape)


def _is_open_bound(bound: Any) -> bool:
    if not is_run_time_int(bound):
        return False
    return size_of(bound.value) is None


def window(array: TracedArray, entries: Sequence[Any]) -> TracedArray:
    """``array`` with the open slices among the entries (one an axis, and ``None``) applied."""
    parts: list[_Part] = []
    by_axis = [e for e in entries if e is not None]
    for axis, entry in enumerate(by_axis):
        if isinstance(entry, slice) and is_open(array, entry):
            check_bounds(array.trace, entry)
            make = _stepped if _is_open_bound(entry.step) else _part
            parts.append(make(array.trace, axis, entry, array.shape[axis]))
    strides = list(array.strides)
    for part in parts:
        strides[part.axis] *= part.stride
    operands = (*(p.first for p in parts), *(p.count for p in parts),
                *(p.given for p in parts if p.given is not None))
    return array.view_through(
        "Window", tuple(strides), *operands, axes=tuple(p.axis for p in parts),
        steps=tuple(p.step for p in parts), sizes=tuple(p.size for p in parts))


@dataclass(frozen=True)
class _Part:
    """The slice of one axis; ``step`` 0 where the run decides it, and then ``given`` is it."""

    axis: int
    step: int
    stride: Size  # in elements
    size: Size
    first: Value
    count: Value
    given: Value | None = None


def _part(trace: Trace, axis: int, entry: slice, limit: Size) -> _Part:
    step = 1 if entry.step is None else as_size(entry.step)
    if not step:
        raise trace.error(ValueError(_NO_STEP))
    first, count, size = extent(trace, entry, step, limit)
    return _Part(axis, step, step, size, first, count)


def _stepped(trace: Trace, axis: int, entry: slice, limit: Size) -> _Part:
    """A slice with a step that only the run knows: every so many elements of one with step 1."""
    least = _positive_step(trace, entry.step)
    first, whole, _ = extent(trace, slice(entry.start, entry.stop), 1, limit)
    _, step, stride = extent(trace, slice(None, least), 1, LONGEST)
    each: Any = TracedArray(trace, None, (), step)
    number = (each + TracedArray(trace, None, (), whole) - 1) // each
    _, count, size = extent(trace, slice(None, number), 1, limit)
    return _Part(axis, 0, stride, size, first, count, step)


def _positive_step(trace: Trace, given: TracedArray) -> TracedArray:
    """The step, checked to be one; nodes after it may be computed before the check has raised."""
    step = weak(trace, given.value, np.dtype(np.int64))
    if (interval(trace, step) or (-1, 1))[0] < 1:
        zero = trace.builder.const(0)
        trace.check(trace.emit("NotEqual", step, zero), ValueError(_NO_STEP))
        trace.check(trace.emit("Greater", step, zero), UnsupportedError(_NEGATIVE_STEP))
        step = trace.emit("Maximum", step, trace.builder.const(1))
    return TracedArray(trace, None, (), step)


def new_shape(trace: Trace, shape: Any) -> tuple[Size, ...]:
    """The shape of a new array; integers that data decides become sizes of their own."""
    check_no_truth(trace, shape)
    if isinstance(shape, (tuple, list)):
        return tuple(_new_length(trace, d) for d in shape)
    if isinstance(shape, (int, np.integer)) or (type(shape) is TracedArray and not shape.ndim):
        return (_new_length(trace, shape),)
    return tuple(not_negative(trace, as_size(d), _NEGATIVE) for d in shape)


def _new_length(trace: Trace, x: Any) -> Size:
    if not _is_open_bound(x) or from_ints(x.value):
        return not_negative(trace, as_size(x), _NEGATIVE)
    length = weak(trace, x.value, np.dtype(np.int64))
    low, high = interval(trace, length) or (-1, LONGEST)
    if low < 0:  # what follows may be computed before the check has raised
        zero = trace.builder.const(0)
        trace.check(trace.emit("GreaterEqual", length, zero), ValueError(_NEGATIVE))
        length = trace.emit("Maximum", length, zero)
    return extent(trace, slice(None, TracedArray(trace, None, (), length)), 1,
                   min(high, LONGEST))[2]


def extent(trace: Trace, entry: slice, step: int, limit: Size) -> tuple[Value, Value, Size]:
    """First index, length as a number, and as a size; equal slices have equal ones."""
    bounds = [_as_value(trace, b) for b in (entry.start, entry.stop)]
    key = (*(None if b is None else value_number(trace, b) for b in bounds), step, stored(limit))
    for made_in, earlier in trace.part(Extents).get(key, ()):
        if tuple(trace.record.regions[: len(made_in)]) == made_in:
            return earlier
    length = _constant_length(trace, bounds, step, limit)
    if length is not None and bounds[0] is not None:
        return bounds[0], trace.builder.const(length), length
    size = new_size(trace)
    # A limit that the run decides is an operand too: what defines it comes before.
    last = [as_traced(trace, number(trace, limit)).value] if isinstance(limit, Dim) else []
    first = trace.emit("Extent", *(b for b in bounds if b is not None), *last,
                       given=tuple(b is not None for b in bounds), step=step, limit=limit,
                       length=str(size))
    witness = first.node.out(1)
    define(trace, witness)
    count = trace.emit("Size", witness, size=size)
    result = first, count, size
    trace.part(Extents).setdefault(key, []).append((tuple(trace.record.regions), result))
    return result


def _constant_length(trace: Trace, bounds: Sequence[Bound], step: int, limit: Size) -> int | None:
    """The length of ``x[i + a:i + b]`` where the bounds are known to lie in the axis."""
    start, stop = bounds
    if start is None or stop is None or step != 1 or isinstance(limit, Dim):
        return None
    low, high = interval(trace, start), interval(trace, stop)
    if low is None or high is None or low[0] < 0 or high[1] > limit:
        return None
    terms = Counter(linear(trace, stop))
    terms.subtract(linear(trace, start))
    length = terms.pop("", 0)
    return length if length >= 0 and not any(terms.values()) else None


def linear(trace: Trace, value: Value) -> Counter[Any]:
    """An int as a sum: factors by value number, the constant under ``""``."""
    node = value.node
    if node.op == "Const":
        return Counter({"": plain_int(node.attrs["value"])})
    if not registry.get(node.op).is_sum:
        return Counter({value_number(trace, value): 1})
    result = linear(trace, node.inputs[0])
    other = linear(trace, node.inputs[1])
    (result.update if node.op == "Add" else result.subtract)(other)
    return result


def _as_value(trace: Trace, bound: Any) -> Bound:
    if bound is None:
        return None
    if type(bound) is TracedArray:
        return bound.value
    size = as_size(bound)
    index = number(trace, size)
    return index.value if type(index) is TracedArray else trace.builder.const(plain_int(size))
