"""Reading and writing parts of an array: which way of indexing a key asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ops.shapes import broadcast

from ..library import calls as library
from ..operands.operands import as_traced, cast, has_run_time_int, spread, spread_scalar, truth
from ..operands.perhaps_pythons import check_numpys
from ..operands.scalar_stores import are_ints, check_items, check_items_fit, check_stored, none_in
from ..values.array import TracedArray, copy_of, from_value
from ..values.operations import operation
from . import equal_parts, gathers, masks, picking, windows
from .basic_indexing import BasicIndex, applied, expanded, parsed, view


def _is_mask(key: Any) -> bool:
    return (type(key) is TracedArray and key.dtype == np.bool_) or (
        type(key) is np.ndarray and key.dtype == np.bool_)


@operation
def getitem(array: TracedArray, key: Any) -> TracedArray:
    """``array[key]``: a view, or a scalar when every axis has an integer.

    Where an array of rank 0 is among the integers the view is copied, as NumPy does.
    """
    key = _with_lists(key)
    result = _getitem(array, key)
    if result.is_array and result.storage is array.storage and any(
            map(_is_rank_0, key if isinstance(key, tuple) else (key,))):
        return copy_of(result)
    return result


def _with_lists(key: Any) -> Any:
    """Tuples and ranges that are index arrays, as NumPy takes them, as lists."""
    if type(key) is range:
        return list(key)
    if type(key) is tuple and any(type(k) in (tuple, range) for k in key):
        return tuple(list(k) if type(k) in (tuple, range) else k for k in key)
    return key


def _is_rank_0(entry: Any) -> bool:
    """Whether it is an array of rank 0 that holds an integer."""
    is_array = entry.is_array if type(entry) is TracedArray else type(entry) is np.ndarray
    return is_array and not entry.ndim and entry.dtype.kind in "iu"


def _getitem(array: TracedArray, key: Any) -> TracedArray:
    if not array.is_array:
        check_numpys(array, lambda kind: TypeError(f"{kind!r} object is not subscriptable"),
                     "an item")
    if _is_only_axes(key) and not array.is_array and not array.type.is_weak:
        array = spread_scalar(array)
    if not array.is_array and array.type.is_weak:
        raise array.trace.error(
            TypeError(f"'{array.kind_name}' object is not subscriptable"), [array.value])
    if not array.is_array and (_is_mask(key) or isinstance(key, (bool, np.bool_))):
        raise unsupported(
            "reading a scalar with a boolean mask", loc=array.trace.loc,
            cure="make it an array first: np.atleast_1d(x)[mask]",
        )
    if not array.is_array:
        raise array.trace.error(IndexError("invalid index to scalar variable."), [array.value])
    if masks.has_rank_0(key):
        array, key = masks.along_new_axis(array, key, view)
    if masks.is_whole_mask(array, key):
        return masks.get_item(array, key)
    if masks.follows_integers(array, key):
        return masks.get_item(_at_integers(array, key[:-1]), key[-1])
    if masks.follows_slices(array, key):
        return masks.get_after_slices(array, key, view)
    if _is_mask(key) or library.has_mask(key):
        return library.get_item(array, key)
    if (library.is_run_time_element(array, key) and not array.trace.in_region) or (
            library.has_index_array(key) and not library.has_mask(key)):
        key = gathers.with_arrays(array.trace, key)
        entries = expanded(array, key)[0]
        if gathers.can_gather(key, entries):
            return gathers.get_item(array, entries, view)
        return library.get_item(array, key)
    if windows.has_run_time_slice(array, key):
        return windowed(array, key)
    if has_run_time_int(key) or picking.has_open_index(array, key):
        return picking.get(array, *expanded(array, key))
    plan = parsed(array, key)
    result = applied(array, plan)
    if plan.is_scalar:
        value = array.trace.emit("Squeeze", _sliced(array, plan), axes=tuple(range(array.ndim)),
                                 kind="scalar")
        return from_value(array.trace, value)
    return result


def windowed(array: TracedArray, key: Any) -> TracedArray:
    """The view where a slice of the key has bounds that only the run knows: integers go first."""
    entries, _ = expanded(array, key)
    by_axis = [e for e in entries if e is not None]
    integers = tuple(slice(None) if isinstance(e, slice) else e for e in by_axis)
    if any(not isinstance(e, slice) for e in integers):
        picks = has_run_time_int(integers) or picking.has_open_index(array, integers)
        array = picking.part(array, integers) if picks else view(array, integers)
    slices = [e for e in by_axis if isinstance(e, slice)]
    seen = windows.window(array, slices)
    rest = iter(slice(None) if windows.is_open(array, e) else e for e in slices)
    return view(seen, tuple(None if e is None else next(rest) for e in entries
                            if e is None or isinstance(e, slice)))


def _is_only_axes(key: Any) -> bool:
    """``None``, ``...`` and tuples of them: the indices of NumPy scalars."""
    return all(k is None or k is Ellipsis for k in (key if isinstance(key, tuple) else (key,)))


def _sliced(array: TracedArray, plan: BasicIndex) -> Any:
    return array.trace.emit("Slice", array.value, starts=tuple(plan.starts),
                            steps=tuple(plan.steps), sizes=tuple(plan.sizes))


@operation
def setitem(array: TracedArray, key: Any, value: Any) -> None:
    """``array[key] = value``; a boolean mask of the array's shape selects elements."""
    trace = array.trace
    if type(value) in (list, tuple) and array.dtype.kind in "iu" and are_ints(value):
        check_items_fit(array, value)
    value = none_in(array) if value is None else value
    if not array.is_array:
        raise trace.error(
            TypeError(f"'{array.kind_name}' object does not support item assignment"))
    array.check_writeable()
    key = _with_lists(key)
    source = as_traced(trace, value).value
    if type(value) in (list, tuple):
        check_items(trace, value, array.dtype)
    if _is_mask(key) and key.shape == array.shape and not source.shape:
        _masked_assignment(array, key, source)
        return
    if masks.has_rank_0(key):
        array, key = masks.along_new_axis(array, key, view)
    if masks.set_item(array, key, value, _at_integers):
        return
    if library.has_index_array(key) or (
            library.is_run_time_element(array, key) and not trace.in_region):
        key = gathers.with_arrays(trace, key)
        entries = expanded(array, key)[0]
        if gathers.can_gather(key, entries) and gathers.are_static(array, value, *entries):
            gathers.set_item(array, entries, value, view)
            return
    if library.has_index_array(key) or (
            library.has_mask(key) and has_run_time_int(key)):
        library.set_item(array, key, value)
        return
    if windows.has_run_time_slice(array, key):
        target = windowed(array, key)
    elif has_run_time_int(key) or picking.has_open_index(array, key):
        target = picking.part(array, expanded(array, key)[0])
    else:
        target = view(array, key)
    if type(value) is TracedArray and value.storage is target.storage and (
            value.steps == target.steps):
        return  # ``x[i] += v`` has written already what it now assigns
    if source.shape and source.shape != target.shape and not (
            source.type.is_static and target.type.is_static):
        source, target = equal_parts.assigned(source, target)
    if source.shape and not target.shape and _is_element(key):
        _check_element(array, source)
    check_stored(trace, source, array.dtype)
    target.write(spread(trace, _fitted(array, source, target.shape), target.shape))


def _at_integers(array: TracedArray, key: Any) -> TracedArray:
    """The view at integers, of which some only the run may know."""
    if has_run_time_int(key) or picking.has_open_index(array, key):
        return picking.part(array, expanded(array, key)[0])
    return view(array, key)


def _is_element(key: Any) -> bool:
    """Whether it is integers alone."""
    entries = key if isinstance(key, tuple) else (key,)
    return all(e is not Ellipsis and not isinstance(e, slice) for e in entries)


def _check_element(array: TracedArray, source: Value) -> None:
    """NumPy says whether an array can be assigned to one element; sizes of data are no one."""
    if not source.type.is_static:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # where it is a number as yet
            np.zeros(1, array.dtype)[0] = np.zeros(source.shape, source.dtype)
    except (TypeError, ValueError) as error:
        raise array.trace.error(error, [source, array.value], ("value", "array")) from None


def _fitted(array: TracedArray, source: Any, shape: Sequence[int]) -> Any:
    """The assigned value in the array's dtype, with leading axes of length 1 dropped."""
    return fit(array, cast(array.trace, source, array.dtype), shape)


def fit(array: TracedArray, source: Value, shape: Sequence[int]) -> Value:
    """``source`` less leading axes of length 1, checked to broadcast to ``shape`` of ``array``."""
    trace, value = array.trace, source
    while value.type.rank > len(shape) and value.shape[0] == 1:
        value = trace.emit("Squeeze", value, axes=(0,))
    try:
        fits = broadcast([value.shape, tuple(shape)]) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise trace.error(ValueError(
            f"could not broadcast input array from shape {_compact(source.shape)} into shape "
            f"{_compact(shape)}"), [source, array.value], ("value", "array"))
    return value


def _compact(shape: Sequence[int]) -> str:
    """``(3,4)`` as NumPy writes shapes in messages."""
    return str(tuple(shape)).replace(" ", "")


def _masked_assignment(array: TracedArray, key: Any, source: Any) -> None:
    trace = array.trace
    mask = truth(trace, as_traced(trace, key).value)
    value = cast(trace, source, array.dtype)
    array.write(trace.emit("Where", mask, value, array.value, kind="array"))
