"""Views and copies with NumPy's signatures: reshape, transpose, broadcasting, joining."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.dims import Dim, Size, UndecidedSizeError, equal, is_static, symbols_of
from fusec.ops.shapes import normalise_axes, normalise_axis

from ..facts.layout import (
    broadcast_strides,
    is_c_contiguous,
    k_order,
    reshape_strides,
)
from ..index.equal_parts import is_decided_by_the_run, of_length
from ..operands.operands import as_traced, dims_of, spread_scalar
from ..operands.sizes import as_size, check_axis_is_int, check_no_truth, is_number, not_negative
from ..values.array import TracedArray, copy_of, from_value
from ..values.handlers import entry
from ..values.operations import operation
from ..values.selected_arrays import with_one_layout
from ..values.trace import Trace

_NO_FIT = "cannot reshape array into {shape}: its size, which the run decides, differs"
_FILLED = "make an array of the length: np.full(n, number), or np.ones((n, 1)) * row"
_NEGATIVE_BROADCAST = "all elements of broadcast shape must be non-negative"


def in_numpys_words(trace: Trace, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except (ValueError, TypeError) as error:
        raise trace.error(error) from None


def stand_in(x: TracedArray) -> np.ndarray:
    """An array of the shape and dtype that takes no memory: NumPy refuses it in its own words."""
    return np.broadcast_to(np.zeros((), x.dtype), tuple(map(int, x.shape)))


def _shape(trace: Trace, shape: Any, otherwise: str = "") -> tuple[Size, ...]:
    check_no_truth(trace, shape)
    if isinstance(shape, (int, np.integer)) or is_number(shape):
        return (as_size(shape, otherwise),)
    return tuple(as_size(d, otherwise) for d in shape)


@entry(np.reshape)
def reshape(trace: Trace, a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Any:
    """``np.reshape`` in C order: a view where NumPy's is one, else a copy."""
    x = as_traced(trace, a)
    if order != "C":
        return _reshape_reversed(trace, x, _shape(trace, shape), order, copy)
    x = _of_known_length(trace, x, _shape(trace, shape))
    target = _inferred(trace, x, _shape(trace, shape))
    if target == x.shape and x.is_array and copy is not True:
        return TracedArray(trace, x.storage, x.steps)
    x = with_one_layout(x)
    dropped = _unit_axes(x.shape, target)
    strides = reshape_strides(x.shape, x.strides, target, x.itemsize)
    if strides is not None and copy is not True:
        if dropped is not None:
            return _squeeze_and_expand(x, target, dropped)
        return x.view_through("Reshape", strides, shape=target)
    return from_value(trace, trace.emit("Reshape", x.value, shape=target))


def _reshape_reversed(
    trace: Trace, x: TracedArray, shape: tuple[int, ...], order: str, copy: Any
) -> Any:
    """Reshape in Fortran order: the transposed array in C order, transposed back."""
    backwards = x.shape[::-1], x.strides[::-1], x.itemsize
    fortran = order == "F" or (
        order == "A" and is_c_contiguous(*backwards) and not is_contiguous(x))
    if order not in ("F", "A"):
        raise trace.error(ValueError("order must be one of 'C', 'F', 'A', or 'K' (got "
                                     f"'{order}')"))
    if not fortran:
        return reshape(trace, x, shape, copy=copy)
    target = _inferred(trace, x, shape, order)
    return transpose(trace, reshape(trace, transpose(trace, x), target[::-1], copy=copy))


def _inferred(
    trace: Trace, x: TracedArray, shape: tuple[int, ...], order: Any = "C"
) -> tuple[int, ...]:
    unknown = [i for i, d in enumerate(shape) if not isinstance(d, Dim) and d < 0]
    count = math.prod(d for d in shape if isinstance(d, Dim) or d >= 0)
    if not is_static((x.size, count)):
        return _inferred_size(x, shape, count, unknown)
    fits = x.size == count if not unknown else count > 0 and x.size % count == 0
    if len(unknown) > 1 or not fits:
        in_numpys_words(trace, partial(stand_in(x).reshape, order=order), tuple(map(int, shape)))
    return tuple(x.size // count if d < 0 else d for d in shape)


def _inferred_size(
    x: TracedArray, shape: tuple[Size, ...], count: Size, unknown: list[int]
) -> tuple[Size, ...]:
    """The same where only the run knows a size: it must be provable that the elements fit."""
    missing = x.size // count if len(unknown) == 1 and count != 0 else 1
    if count * missing != x.size or len(unknown) > 1:
        raise UndecidedSizeError(next(s for s in (x.size, count) if isinstance(s, Dim)), "reshape")
    return tuple(missing if i in unknown else d for i, d in enumerate(shape))


def _of_known_length(
    trace: Trace, x: TracedArray, shape: tuple[Size, ...]
) -> TracedArray:
    """A mask has selected as many rows as the new shape asks for, or the run raises."""
    first, *rest = x.shape or (1,)
    if not is_decided_by_the_run(trace, first) or not is_static((*rest, *shape)):
        return x
    row, count = math.prod(rest), math.prod(shape)
    if any(d < 0 for d in shape) or not row or count % row:
        return x
    is_known = all(type(d) is int for d in shape)  # to ask others is to trace each by itself
    return of_length(x, count // row, _NO_FIT.format(
        shape=f"shape {shape}" if is_known else "the new shape"))


def _unit_axes(shape: tuple[int, ...], target: tuple[int, ...]) -> bool | None:
    """Whether the reshape only adds and drops axes of length 1 (then it stays an index map)."""
    same = [d for d in shape if d != 1] == [d for d in target if d != 1]
    return True if same and 0 not in shape else None


def _squeeze_and_expand(x: TracedArray, target: tuple[int, ...], dropped: bool) -> TracedArray:
    units = tuple(i for i, d in enumerate(x.shape) if d == 1)
    if units:
        kept = tuple(s for i, s in enumerate(x.strides) if i not in units)
        x = x.view_through("Squeeze", kept, axes=units)
    added = tuple(i for i, d in enumerate(target) if d == 1)
    if added:
        strides = list(x.strides)
        for axis in added:
            strides.insert(axis, 0)
        x = x.view_through("ExpandDims", tuple(strides), axes=added)
    return x


@entry(np.ravel, method="ravel")
@operation
def ravel(trace: Trace, a: Any, order: str = "C") -> Any:
    """``np.ravel``: a view of contiguous memory, else a copy."""
    x = with_one_layout(spread_scalar(as_traced(trace, a)))
    if order != "C" and x.ndim > 1:
        return ravel(trace, transpose(trace, x, _read_order(x, order)))
    order = "C"
    flat = reshape(trace, x, (0,) if x.size == 0 else (-1,), order)
    return flat if is_contiguous(x) or flat.storage is not x.storage else copy_of(flat, "C")


def _read_order(x: TracedArray, order: str) -> list[int]:
    """The axes outermost first, as ``ravel`` in this order goes through them."""
    if order == "K":
        return k_order(x.shape, [x.strides])
    backwards = x.shape[::-1], x.strides[::-1], x.itemsize
    fortran = order == "F" or (is_c_contiguous(*backwards) and not is_contiguous(x))
    return list(range(x.ndim))[::-1] if fortran else list(range(x.ndim))


@entry(np.transpose)
def transpose(trace: Trace, a: Any, axes: Any = None) -> Any:
    """``np.transpose``: a view with permuted axes."""
    x = as_traced(trace, a)
    if not x.is_array:
        return spread_scalar(x) if x.type.is_weak else x
    rank = x.ndim
    if axes is None:
        perm = tuple(reversed(range(rank)))
    else:
        perm = tuple(in_numpys_words(trace, normalise_axis, int(p), rank) for p in axes)
        if sorted(perm) != list(range(rank)):
            in_numpys_words(trace, stand_in(x).transpose, perm)
    if perm == tuple(range(rank)):
        return TracedArray(trace, x.storage, x.steps)
    return x.view_through("Transpose", tuple(x.strides[p] for p in perm), perm=perm)


@entry(np.swapaxes, method="swapaxes")
def swapaxes(trace: Trace, a: Any, axis1: Any, axis2: Any) -> Any:
    """``np.swapaxes``."""
    x = as_traced(trace, a)
    perm = in_numpys_words(trace, _axes(x.ndim).swapaxes, axis1, axis2)
    return transpose(trace, x, perm.shape)


def _axes(rank: int) -> np.ndarray:
    """An array of this rank, each axis as long as its number: NumPy says where it moves them."""
    return np.broadcast_to(0, range(rank))


@entry(np.moveaxis)
def moveaxis(trace: Trace, a: Any, source: Any, destination: Any) -> Any:
    """``np.moveaxis``."""
    x = as_traced(trace, a)
    moved = in_numpys_words(
        trace, np.moveaxis, _axes(x.ndim), _known(source), _known(destination))
    return transpose(trace, x, moved.shape)


def _known(axis: Any) -> Any:
    """The axes as plain ints: NumPy's errors for others are raised for traced ones too.
    """
    if isinstance(axis, (tuple, list)):
        return tuple(map(_known, axis))
    return operator.index(axis) if hasattr(axis, "__index__") else axis


@entry(np.expand_dims)
def expand_dims(trace: Trace, a: Any, axis: Any) -> Any:
    """``np.expand_dims``: a view with axes of length 1."""
    x = spread_scalar(as_traced(trace, a))
    axes = tuple(axis) if isinstance(axis, (tuple, list, range)) else (operator.index(axis),)
    rank = x.ndim + len(axes)
    positions = in_numpys_words(trace, normalise_axes, axes, rank)
    strides = list(x.strides)
    for position in positions:
        strides.insert(position, 0)
    return x.view_through("ExpandDims", tuple(strides), axes=positions)


@entry(np.squeeze, method="squeeze")
def squeeze(trace: Trace, a: Any, axis: Any = None) -> Any:
    """``np.squeeze``: a view without axes of length 1."""
    x = as_traced(trace, a)
    if not x.is_array:
        return spread_scalar(x) if x.type.is_weak else x
    check_axis_is_int(trace, axis)
    if axis is None:
        axes = tuple(i for i in range(x.ndim) if _is_single(x, i))
    elif x.ndim == 0 and axis in (0, -1, (0,), (-1,)):
        axes = ()
    else:
        axes = in_numpys_words(trace, normalise_axes, axis, x.ndim)
    if not all(_is_single(x, i) for i in axes):
        raise trace.error(ValueError(
            "cannot select an axis to squeeze out which has size not equal to one"), [x.value])
    if not axes:
        return x
    kept = tuple(s for i, s in enumerate(x.strides) if i not in axes)
    return x.view_through("Squeeze", kept, axes=axes)


def _is_single(x: TracedArray, axis: int) -> bool:
    """Whether the axis has length 1; refused where only the run knows: the rank depends on it."""
    try:
        return equal(x.shape[axis], 1)
    except UndecidedSizeError:
        raise unsupported(
            "squeeze of a length that only the run knows", loc=x.trace.loc,
            values=[("array", x.type)], cure="name axes of a known length: x.squeeze(axis=0)",
        ) from None


@entry(np.broadcast_to, hooked="traced")
def broadcast_to(trace: Trace, a: Any, shape: Any, subok: bool = False) -> Any:
    """``np.broadcast_to``: a read-only view."""
    x = spread_scalar(as_traced(trace, a))
    target = tuple(not_negative(trace, d, _NEGATIVE_BROADCAST)
                   for d in _shape(trace, shape, _FILLED))
    pairs = zip(x.shape, target[max(len(target) - x.ndim, 0):], strict=False)
    try:
        fits = len(target) >= x.ndim and all(d == t or equal(d, 1) or equal(d, t) for d, t in pairs)
    except UndecidedSizeError:
        raise unsupported(
            "broadcast_to of a size that only the run knows", loc=trace.loc,
            values=[("array", x.type)], cure="make the array of the size, and write into it",
        ) from None
    if not fits:
        given, wanted = (str(s).replace(" ", "") for s in (x.shape, target))
        raise trace.error(ValueError(
            f"operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{given}  and requested shape {wanted}"), [x.value])
    strides = broadcast_strides(x.shape, x.strides, target)
    told = dims_of(trace, target) if symbols_of(target) - symbols_of(x.shape) else ()
    return x.view_through("Fill" if told else "BroadcastTo", strides, *told, shape=target)


def is_same_view(a: TracedArray, b: Any) -> bool:
    """Whether two names stand for the same elements of the same memory."""
    return type(b) is TracedArray and a.is_array and a.storage is b.storage and a.steps == b.steps


def at_least(rank: int) -> Any:
    def convert(trace: Trace, x: TracedArray) -> TracedArray:
        return expand_dims(trace, x, tuple(range(rank - x.ndim))) if x.ndim < rank else x

    return convert


@entry(np.flip)
def flip(trace: Trace, m: Any, axis: Any = None) -> Any:
    """``np.flip``: a view with negative steps."""
    x = spread_scalar(as_traced(trace, m))
    axes = in_numpys_words(trace, normalise_axes, axis, x.ndim)
    return x[tuple(slice(None, None, -1) if d in axes else slice(None) for d in range(x.ndim))]


def is_contiguous(x: TracedArray) -> bool:
    return is_c_contiguous(x.shape, x.strides, x.itemsize)
