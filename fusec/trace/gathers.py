"""Reading at integer indices that only the run knows: ``x[i, j]``, ``take``, ``take_along_axis``.

Each becomes a ``Gather``, a load at a computed index inside a fused loop.  NumPy answers on
stand-ins first: it raises its own errors, and says shape and layout of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.dims import Dim, Size
from fusec.ops.gather import INDEX

from .array import TracedArray
from .context import Trace
from .library import ask_on_stand_ins, call_library, result_like
from .sizes import number as size_number
from .ufuncs import as_traced, cast

Key = Sequence[Any]


def _is_index(entry: Any) -> bool:
    """Whether an entry of a key is an integer, or an array of integers."""
    if type(entry) in (TracedArray, np.ndarray):
        return entry.dtype.kind in "iu"
    return isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_))


def with_arrays(key: Any) -> Any:
    """The key with lists of Python integers as arrays."""
    keys = key if isinstance(key, tuple) else (key,)
    found = tuple(_as_array(k) if isinstance(k, list) else k for k in keys)
    return found if isinstance(key, tuple) else found[0]


def _as_array(entry: list[Any]) -> Any:
    if not entry or not all(type(i) is int for i in entry):
        return entry
    return np.array(entry, INDEX)


def can_gather(key: Any, entries: Key) -> bool:
    """Whether a key, with its entries axis by axis, is made of integers, arrays and slices."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(k is None for k in keys) or not all(
            isinstance(e, slice) or _is_index(e) for e in entries):
        return False
    at = [i for i, k in enumerate(keys) if _is_index(k)]
    return not any(k is Ellipsis for k in keys[at[0]: at[-1]])  # it would set them apart


def get_item(
    array: TracedArray, entries: Key, view: Callable[[TracedArray, Any], TracedArray]
) -> Any:
    """``array[entries]``, a slice or an index for each axis."""
    axes = [d for d, e in enumerate(entries) if not isinstance(e, slice)]
    trace = array.trace
    places = [as_traced(trace, entries[d]) for d in axes]

    def answer(x: Any, *indices: Any) -> Any:
        chosen = dict(zip(axes, indices, strict=True))
        return x[tuple(chosen.get(d, e) for d, e in enumerate(entries))]

    like = ask_on_stand_ins(trace, answer, [array, *places])
    adjacent = axes[-1] - axes[0] + 1 == len(axes)
    source = view(array, tuple(slice(None) if d in axes else e for d, e in enumerate(entries)))
    checked = [checked_index(trace, i.value, source.shape[d], d)
               for d, i in zip(axes, places, strict=True)]
    return _gather(source, checked, axes, axes[0] if adjacent else 0, like)


def checked_index(trace: Trace, index: Value, size: Size, axis: int) -> Value:
    """An index as int64, wrapped and checked; constants now, others when the kernel runs."""
    index = cast(trace, index, INDEX)
    if isinstance(size, Dim):
        limit = cast(trace, size_number(trace, size).value, INDEX)
        return trace.emit("CheckIndex", index, limit, axis=axis)
    if index.node.op == "Const":
        number = int(index.node.attrs["value"])
        if -size <= number < size:
            return trace.builder.const(np.int64(number % size))
    return trace.emit("CheckIndex", index, trace.builder.const(np.int64(size)), axis=axis)


def _gather(
    source: TracedArray, indices: Sequence[Value], axes: Sequence[int], at: int, like: Any
) -> Any:
    kind = {} if isinstance(like, np.ndarray) else {"kind": "scalar"}
    value = source.trace.emit("Gather", source.value, *indices, axes=tuple(axes), at=at, **kind)
    return result_like(source.trace, like, value)


# ------------------------------------------------------------------------------------- functions


def take(
    trace: Trace, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise"
) -> Any:
    """``np.take``: along one axis, or of the flattened array; all modes."""
    array, places = as_traced(trace, a), as_traced(trace, indices)
    if out is not None or mode not in ("raise", "wrap", "clip") or not array.is_array or not (
            axis is None or type(axis) is int):
        options = {} if out is None else {"out": out}
        return call_library(trace, "Take", (a, indices, axis), {**options, "mode": mode})
    like = ask_on_stand_ins(
        trace, lambda x, i: np.take(x, i, axis=axis, mode=mode), [array, places])
    source = array.reshape(-1) if axis is None or not array.ndim else array
    along = 0 if axis is None else axis % source.ndim
    size = source.shape[along]
    index = _moded_index(trace, places.value, size, along, mode)
    return _gather(source, [index], [along], along, like)


def _moded_index(trace: Trace, index: Value, size: int, axis: int, mode: str) -> Value:
    if mode == "raise":
        return checked_index(trace, index, size, axis)
    index, number = cast(trace, index, INDEX), lambda n: trace.builder.const(np.int64(n))
    if mode == "wrap":
        return trace.emit("Mod", index, number(max(size, 1)))
    low = trace.emit("Maximum", index, number(0))
    return trace.emit("Minimum", low, number(max(size - 1, 0)))


def take_along_axis(trace: Trace, arr: Any, indices: Any, axis: Any = -1) -> Any:
    """``np.take_along_axis``: an index for each element of all other axes."""
    array, places = as_traced(trace, arr), as_traced(trace, indices)
    like = ask_on_stand_ins(
        trace, lambda x, i: np.take_along_axis(x, i, axis), [array, places])
    if axis is None:
        array, axis = array.reshape(-1), 0
    along = axis % array.ndim
    index = checked_index(trace, places.value, array.shape[along], along)
    all_axes = range(array.ndim)
    operands = [index if d == along else _counter(trace, array.shape, d) for d in all_axes]
    return _gather(array, operands, all_axes, 0, like)


def _counter(trace: Trace, shape: Sequence[int], axis: int) -> Value:
    """0, 1, … along an axis of arrays of this rank."""
    counter = trace.emit("Iota", size=shape[axis], dtype=INDEX)
    others = tuple(d for d in range(len(shape)) if d != axis)
    return trace.emit("ExpandDims", counter, axes=others) if others else counter


GATHER_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.take: take, np.take_along_axis: take_along_axis,
}


def _take_method(self: TracedArray, /, *args: Any, **kwargs: Any) -> Any:
    return take(self.trace, self, *args, **kwargs)


GATHER_METHODS: dict[str, Callable[..., Any]] = {"take": _take_method}

__all__ = ["GATHER_FUNCTIONS", "GATHER_METHODS", "can_gather", "checked_index", "get_item"]
