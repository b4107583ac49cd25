"""Reading and writing at integer indices that only the run knows.

``x[i, j]``, ``take`` and ``take_along_axis`` become a ``Gather``, a load at a computed index inside
a fused loop; ``x[i, j] = v``, ``put_along_axis`` and ``np.add.at`` a ``Scatter``.  NumPy answers on
stand-ins first: it raises its own errors, and says shape and layout of the result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.sizes import symbolic_numbers
from fusec.ir.sizes.dims import Dim, Size
from fusec.ir.sizes.symbolic_numbers import Symbolic, is_int
from fusec.ir.sizes.symbolic_sizes import plain_int, position
from fusec.ops.rows.gather import INDEX

from ..library.calls import call_library, result_like
from ..library.stand_ins import ask_on_stand_ins, shape_on_stand_ins
from ..operands.dtypes import resolve
from ..operands.index_uses import note_checked
from ..operands.operands import ROWS_OF_UFUNCS, as_traced, cast, spread
from ..operands.python_numbers import check_signed
from ..operands.scalar_stores import check_stored
from ..operands.sizes import number as size_number
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.own_arrays import array_of
from ..values.trace import Trace
from .basic_indexing import expanded, view
from .scatter_order import in_numpys_order

Key = Sequence[Any]


def _is_index(entry: Any) -> bool:
    """Whether an entry of a key is an integer, or an array of integers."""
    if type(entry) in (TracedArray, np.ndarray):
        return entry.dtype.kind in "iu"
    return isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_))


def with_arrays(trace: Trace, key: Any) -> Any:
    """The key with lists of integers as arrays."""
    keys = key if isinstance(key, tuple) else (key,)
    entries = tuple(_as_array(trace, k) if isinstance(k, list) else k for k in keys)
    return entries if isinstance(key, tuple) else entries[0]


def _as_array(trace: Trace, entry: list[Any]) -> Any:
    if entry and all(type(i) is int for i in entry):
        return array_of(trace, entry, INDEX)
    is_open = any(type(i) in (TracedArray, Symbolic) for i in entry)
    if not is_open or not all(is_int(i) or _is_number(i) for i in entry):
        return entry
    rows = [trace.emit("ExpandDims", cast(trace, as_traced(trace, i).value, INDEX), axes=(0,))
            for i in entry]
    return from_value(trace, trace.emit("Concat", *rows, axis=0))


def _is_number(entry: Any) -> bool:
    return type(entry) is TracedArray and entry.ndim == 0 and entry.dtype.kind in "iu"


def can_gather(key: Any, entries: Key) -> bool:
    """Whether a key, with its entries axis by axis, is made of integers, arrays and slices."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(k is None for k in keys) or not all(
            isinstance(e, slice) or _is_index(e) for e in entries):
        return False
    at = [i for i, k in enumerate(keys) if _is_index(k)]
    return not any(k is Ellipsis for k in keys[at[0]: at[-1]])  # it would set them apart


def are_static(*operands: Any) -> bool:
    """Whether all sizes are known while tracing: a library writes where they are not."""
    return all(x.value.type.is_static for x in operands if type(x) is TracedArray)


def get_item(
    array: TracedArray, entries: Key, view: Callable[[TracedArray, Any], TracedArray]
) -> Any:
    """``array[entries]``, a slice or an index for each axis."""
    places = _places(array, entries)
    like = ask_on_stand_ins(
        array.trace, lambda bounds, x, *i: _with_room(x, entries)[_key(bounds, i)],
        [array, *places], (), _bounds(entries))
    source, indices, where = _parts(array, entries, places, view)
    return _gather(source, indices, where["axes"], where["at"], like)


def _bounds(entries: Key) -> tuple[Any, ...]:
    """For each entry the bounds of the slice that it is; none of an integer or an array."""
    return tuple((e.start, e.stop, e.step) if isinstance(e, slice) else () for e in entries)


def _places(array: TracedArray, entries: Key) -> list[TracedArray]:
    """The integers and arrays among the entries."""
    return [as_traced(array.trace, e) for e in entries if not isinstance(e, slice)]


def _key(bounds: Sequence[tuple[Any, ...]], indices: Sequence[Any]) -> tuple[Any, ...]:
    """Slices of these bounds, and these in the places of integers and arrays.

    Stand-ins of arrays hold zeros; a number that is a size becomes 0 too, which fits all others.
    """
    rest = (i if isinstance(i, np.ndarray) else i * 0 for i in indices)
    return tuple(slice(*ends) if ends else next(rest) for ends in bounds)


def _with_room(x: np.ndarray, entries: Key) -> np.ndarray:
    """A stand-in in which 0 is in range: the run says which index is not, if one is."""
    shape = tuple(n if isinstance(e, slice) else max(n, 1)
                  for n, e in zip(x.shape, entries, strict=True))
    return x if shape == x.shape else np.zeros(shape, x.dtype)


def _with_room_along(x: np.ndarray, axis: Any) -> np.ndarray:
    """The same where only one axis is indexed, or the array as if it were flat."""
    if axis is None:
        return x if x.size else np.zeros(1, x.dtype)
    is_axis = type(axis) is int and -x.ndim <= axis < x.ndim
    at = [d for d in range(x.ndim) if is_axis and d == axis % x.ndim]
    return _with_room(x, [0 if d in at else slice(None) for d in range(x.ndim)])


def _parts(
    array: TracedArray, entries: Key, places: Sequence[TracedArray],
    view: Callable[[TracedArray, Any], TracedArray],
) -> tuple[TracedArray, list[Value], dict[str, Any]]:
    """The view that the slices give, checked indices into it, and the attrs that place them."""
    axes = tuple(d for d, e in enumerate(entries) if not isinstance(e, slice))
    adjacent = axes[-1] - axes[0] + 1 == len(axes)
    source = view(array, tuple(slice(None) if d in axes else e for d, e in enumerate(entries)))
    nowhere = any(0 in i.shape for i in places)
    checked = [checked_index(array.trace, i.value, source.shape[d], d, nowhere)
               for d, i in zip(axes, places, strict=True)]
    return source, checked, {"axes": axes, "at": axes[0] if adjacent else 0}


def set_item(
    array: TracedArray, entries: Key, value: Any,
    view: Callable[[TracedArray, Any], TracedArray], combine: str = "",
) -> None:
    """``array[entries] = value``; with ``combine``, the name of an op, as its ``ufunc.at``."""
    trace = array.trace
    places, source = _places(array, entries), as_traced(trace, value)

    def answer(bounds: Any, x: Any, v: Any, *indices: Any) -> Any:
        x, key = _with_room(np.array(x), entries), _key(bounds, indices)
        x[key] = v
        return x[key]

    if not combine and not any(p.shape for p in places):
        check_stored(trace, source.value, array.dtype)
    fitted = cast(trace, source.value, array.dtype)  # first, as NumPy: it may raise
    shape = shape_on_stand_ins(trace, answer, [array, source, *places], (), _bounds(entries))
    target, indices, where = _parts(array, entries, places, view)
    if 0 in shape:
        return  # nothing to write, for which a value of any rank fits
    while fitted.type.rank > len(shape):
        fitted = trace.emit("Squeeze", fitted, axes=(0,))
    fitted = spread(trace, fitted, shape)
    if not combine and not any(isinstance(e, slice) for e in entries):
        fitted, indices = in_numpys_order(fitted, source, indices, places)
    _scatter(target, fitted, indices, combine=combine, **where)


def _scatter(
    target: TracedArray, value: Value, indices: Sequence[Value], combine: str = "", **where: Any
) -> None:
    attrs = {**where, "combine": combine} if combine else where
    target.write(target.trace.emit("Scatter", target.value, value, *indices, **attrs))


def checked_index(
    trace: Trace, index: Value, size: Size, axis: int, nowhere: bool = False
) -> Value:
    """An index as int64, wrapped and checked; constants now, others when the kernel runs.

    ``nowhere``: no element is read at it, so NumPy does not look at it.
    """
    if not index.shape:  # index arrays wrap
        check_signed(trace, index, OverflowError("Python int too large to convert to C long"))
    index = cast(trace, index, INDEX)
    if nowhere:
        return index
    if isinstance(size, Dim):
        limit = cast(trace, size_number(trace, size).value, INDEX)
        return note_checked(trace, trace.emit("CheckIndex", index, limit, axis=axis))
    if index.node.op == "Const":
        number = plain_int(index.node.attrs["value"])
        if -size <= number < size:
            return trace.builder.const(symbolic_numbers.applied(np.int64, position(number, size)))
    limit = trace.builder.const(symbolic_numbers.applied(np.int64, size))
    return note_checked(trace, trace.emit("CheckIndex", index, limit, axis=axis))


def _gather(
    source: TracedArray, indices: Sequence[Value], axes: Sequence[int], at: int, like: Any
) -> Any:
    kind = {} if isinstance(like, np.ndarray) else {"kind": "scalar"}
    value = source.trace.emit("Gather", source.value, *indices, axes=tuple(axes), at=at, **kind)
    return result_like(source.trace, like, value)


def at_places(source: TracedArray, places: Sequence[TracedArray], at: int) -> Any:
    """``source[:, :, *places]`` with ``at`` slices before: at indices that are known to be in
    range."""
    like = ask_on_stand_ins(
        source.trace, lambda x, *i: x[(*(slice(None),) * at, *i)], [source, *places], at)
    axes = range(at, at + len(places))
    return _gather(source, [p.value for p in places], axes, at, like)


# ------------------------------------------------------------------------------------- functions


@entry(np.take, method="take", of_scalars=True)
def take(
    trace: Trace, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise"
) -> Any:
    """``np.take``: along one axis, or of the flattened array; all modes."""
    if type(indices) in (list, tuple) and not len(indices):
        indices = np.array(indices, np.intp)
    array, places = as_traced(trace, a), as_traced(trace, indices)
    axis = operator.index(axis) if isinstance(axis, np.ndarray) else axis
    if out is not None or mode not in ("raise", "wrap", "clip") or not array.is_array or not (
            axis is None or type(axis) is int):
        options = {} if out is None else {"out": out}
        return call_library(trace, "Take", (a, indices, axis), {**options, "mode": mode})
    like = ask_on_stand_ins(
        trace, lambda x, i: np.take(x, i, axis=axis, mode=mode), [array, places], axis)
    source = array.reshape(-1) if axis is None or not array.ndim else array
    along = 0 if axis is None else axis % source.ndim
    size = source.shape[along]
    if 0 in source.shape[:along]:
        mode = "clip"  # there is no row: NumPy looks at no index
    index = _moded_index(trace, places.value, size, along, mode)
    return _gather(source, [index], [along], along, like)


def _moded_index(trace: Trace, index: Value, size: int, axis: int, mode: str) -> Value:
    if mode == "raise":
        return checked_index(trace, index, size, axis)
    index = cast(trace, index, INDEX)

    def number(n: Any) -> Value:
        return trace.builder.const(symbolic_numbers.applied(np.int64, n))

    if mode == "wrap":
        return trace.emit("Mod", index, number(max(size, 1)))
    low = trace.emit("Maximum", index, number(0))
    return trace.emit("Minimum", low, number(max(size - 1, 0)))


@entry(np.take_along_axis)
def take_along_axis(trace: Trace, arr: Any, indices: Any, axis: Any = -1) -> Any:
    """``np.take_along_axis``: an index for each element of all other axes."""
    array, places = as_traced(trace, arr), as_traced(trace, indices)
    like = ask_on_stand_ins(
        trace, lambda x, i: np.take_along_axis(_with_room_along(x, axis), i, axis),
        [array, places], axis)
    if axis is None:
        array, axis = array.reshape(-1), 0
    along = axis % array.ndim
    index = checked_index(trace, places.value, array.shape[along], along, 0 in np.shape(like))
    all_axes = range(array.ndim)
    operands = [index if d == along else _counter(trace, array.shape, d) for d in all_axes]
    return _gather(array, operands, all_axes, 0, like)


@entry(np.put_along_axis)
def put_along_axis(trace: Trace, arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """``np.put_along_axis``: writes an element for each index, in all other axes."""
    array, places = as_traced(trace, arr), as_traced(trace, indices)
    source = as_traced(trace, values)
    if axis is None or not array.is_array or not are_static(array, places, source):
        call_library(trace, "PutAlongAxis", (arr, indices, values, axis), {})
        return

    def answer(x: Any, i: Any, v: Any) -> Any:
        x = np.array(_with_room_along(x, axis))
        np.put_along_axis(x, i, v, axis)
        return np.take_along_axis(x, i, axis)

    shape = shape_on_stand_ins(trace, answer, [array, places, source], axis)
    along, all_axes = axis % array.ndim, tuple(range(array.ndim))
    index = checked_index(trace, places.value, array.shape[along], along)
    operands = [index if d == along else _counter(trace, array.shape, d) for d in all_axes]
    fitted = cast(trace, source.value, array.dtype)
    while fitted.type.rank > len(shape):
        fitted = trace.emit("Squeeze", fitted, axes=(0,))
    _scatter(array, spread(trace, fitted, shape), operands, axes=all_axes, at=0)


def ufunc_at(trace: Trace, ufunc: np.ufunc, a: Any, key: Any, b: Any) -> bool:
    """``ufunc.at(a, key, b)`` as a scatter; False where it is not one."""
    array, value, key = as_traced(trace, a), as_traced(trace, b), with_arrays(trace, key)
    row = ROWS_OF_UFUNCS.get(ufunc)
    if row is None or not array.is_array or not row.combines or not are_static(
            array, value):
        return False
    if set(resolve(trace, ufunc, [array.value, value.value])) != {array.dtype}:
        return False
    entries = expanded(array, key)[0]
    if not any(map(_is_index, entries)) or not can_gather(key, entries) or not are_static(
            *entries):
        return False
    set_item(array, entries, value, view, row.name)
    return True


def _counter(trace: Trace, shape: Sequence[int], axis: int) -> Value:
    """0, 1, … along an axis of arrays of this rank."""
    counter = trace.emit("Iota", size=shape[axis], dtype=INDEX)
    others = tuple(d for d in range(len(shape)) if d != axis)
    return trace.emit("ExpandDims", counter, axes=others) if others else counter
