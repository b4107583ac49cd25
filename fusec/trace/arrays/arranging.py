"""Repeating, diagonals, triangles and joining of lists of arrays: front ends over existing ops."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.dims import Dim, Size, is_static
from fusec.ir.sizes.symbolic_numbers import Symbolic, is_int
from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain
from fusec.ops.shapes import broadcast, normalise_axis

from ..facts.constant_values import constant_value, is_constant
from ..facts.origins import AS_STATIC, way_out
from ..guards.array_values import value_of
from ..library.calls import call_by_name, call_library
from ..operands import sizes
from ..operands.operands import as_traced, cast, strong, truth
from ..operands.scalar_stores import check_items
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.trace import Trace
from . import creation, joining, shaping
from .ranges import arange

_NEGATIVE = "negative dimensions are not allowed"


def static_number(trace: Trace, x: Any, what: str) -> int:
    """An int known while tracing, or one of sizes; raises `UnsupportedError` for one that data
    decides."""
    if type(x) is TracedArray and value_of(trace, x.value) is None:
        raise unsupported(f"{what} that depends on data", loc=trace.loc,
                          cure=way_out(x.value, "give a number that the call shows" + AS_STATIC,
                                       trace.feeds.outside))
    return _whole(x)


def _whole(x: Any) -> Any:
    """As an index; one that follows from sizes stays symbolic."""
    return x if is_int(x) and type(x) is Symbolic else operator.index(x)


def _check_is_number(trace: Trace, x: Any, why: str) -> None:
    """NumPy computes with it: an object that has ``__index__`` alone will not do."""
    if not isinstance(x, (numbers.Number, str, np.generic, np.ndarray, TracedArray, Dim)):
        raise trace.error(TypeError(why.format(repr(type(x).__name__))))


def _axis(trace: Trace, axis: Any, rank: int) -> int:
    try:
        return normalise_axis(operator.index(axis), rank)
    except (ValueError, TypeError) as error:
        raise trace.error(error) from None


@entry(np.repeat, method="repeat")
def repeat(trace: Trace, a: Any, repeats: Any, axis: Any = None) -> Any:
    """``np.repeat``: each element ``repeats`` times along an axis; by NumPy itself where only the
    run knows the counts of the elements."""
    sizes.check_axis_is_int(trace, axis)
    if type(repeats) is TracedArray and repeats.ndim and not is_constant(repeats.value):
        return call_library(trace, "Numpy", ("repeat", a, repeats, axis), {})
    if type(repeats) is TracedArray and repeats.ndim:
        repeats = constant_value(repeats.value)
    x = shaping.spread_scalar(as_traced(trace, a))
    x = shaping.ravel(trace, x) if axis is None or not x.ndim else x
    position = _axis(trace, 0 if axis is None else axis, x.ndim)
    if isinstance(repeats, (list, tuple, np.ndarray)) and np.size(repeats) != 1:
        return _repeat_each(trace, x, repeats, position)
    if isinstance(repeats, (list, tuple, np.ndarray)):
        repeats = np.ravel(repeats)[0]
    if isinstance(repeats, float):
        repeats = int(repeats)  # as NumPy takes it
    count = static_number(trace, repeats, "np.repeat by a count")
    shape = list(x.shape)
    sizes.not_negative(trace, count * shape[position], _NEGATIVE)
    count = max(count, 0)  # of nothing
    wide = shaping.expand_dims(trace, x, position + 1)
    spread = shaping.broadcast_to(
        trace, wide, (*shape[: position + 1], count, *shape[position + 1:]))
    shape[position] *= count
    return _spread_out(trace, spread, tuple(shape))


@entry(np.tile)
def tile(trace: Trace, A: Any, reps: Any) -> Any:
    """``np.tile``: the array side by side; counts known while tracing."""
    x = shaping.spread_scalar(as_traced(trace, A))
    repetitions = reps if isinstance(reps, (list, tuple)) or (
        isinstance(reps, np.ndarray) and reps.ndim) else [reps]
    for n in repetitions:
        _check_is_number(trace, n, "unsupported operand type(s) for *: 'int' and {}")
    counts = [static_number(trace, n, "np.tile by a count") for n in repetitions]
    if all(n == 1 for n in counts) and len(counts) <= x.ndim:
        return shaping.copy_of(x)
    rank = max(len(counts), x.ndim)
    counts = [1] * (rank - len(counts)) + counts
    sizes = [1] * (rank - x.ndim) + list(x.shape)
    if x.type.is_static and x.size == 0:  # NumPy has nothing to copy
        return shaping.reshape(trace, x, tuple(n * s for n, s in zip(counts, sizes, strict=True)))
    if min(counts) < 0:
        raise trace.error(ValueError(_NEGATIVE))
    wide = shaping.expand_dims(trace, x, tuple(range(rank - x.ndim))) if rank > x.ndim else x
    wide = shaping.expand_dims(trace, wide, tuple(range(0, 2 * rank, 2)))
    pairs = [n for pair in zip(counts, sizes, strict=True) for n in pair]
    spread = shaping.broadcast_to(trace, wide, tuple(pairs))
    return _spread_out(trace, spread, tuple(n * s for n, s in zip(counts, sizes, strict=True)))


def _spread_out(trace: Trace, x: TracedArray, shape: tuple[int, ...]) -> TracedArray:
    """A broadcast array's elements in memory of their own, in another shape."""
    return from_value(trace, trace.emit("Reshape", trace.emit("Copy", x.value), shape=shape))


def _repeat_each(trace: Trace, x: TracedArray, repeats: Any, axis: int) -> Any:
    """Other counts for each position: slices joined."""
    counts = [static_number(trace, n, "np.repeat by a count") for n in repeats]
    if len(counts) != x.shape[axis]:
        raise trace.error(ValueError(
            f"operands could not be broadcast together with shape ({x.shape[axis]},) "
            f"({len(counts)},)"))
    if min(counts, default=0) < 0:
        raise trace.error(ValueError("repeats may not contain negative values."))
    before = (slice(None),) * axis
    parts = [x[(*before, slice(i, i + 1))] for i, n in enumerate(counts) for _ in range(n)]
    if not parts:
        return creation.ZEROS(trace, (*x.shape[:axis], 0, *x.shape[axis + 1:]), x.dtype)
    return _fresh_c(joining.concatenate(trace, parts, axis))


def _fresh_c(x: TracedArray) -> TracedArray:
    return shaping.copy_of(x, "C")


@entry(np.diagonal, method="diagonal")
def diagonal(trace: Trace, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> TracedArray:
    """``np.diagonal``: a read-only strided view."""
    x = as_traced(trace, a)
    if x.ndim < 2:
        raise trace.error(ValueError("diag requires an array of at least two dimensions"),
                          [x.value])
    axes = _axis(trace, axis1, x.ndim), _axis(trace, axis2, x.ndim)
    if axes[0] == axes[1]:
        raise trace.error(ValueError("axis1 and axis2 cannot be the same"))
    strides = tuple(s for d, s in enumerate(x.strides) if d not in axes)
    step = x.strides[axes[0]] + x.strides[axes[1]]
    return x.view_through("Diagonal", (*strides, step), axes=axes, offset=_whole(offset))


@entry(np.trace, method="trace")
def trace_(
    trace: Trace, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None,
    out: Any = None,
) -> Any:
    """``np.trace``: the sum of a diagonal."""
    return diagonal(trace, a, offset, axis1, axis2).sum(-1, dtype=dtype, out=out)


def _grid(trace: Trace, rows: int, columns: int) -> tuple[TracedArray, TracedArray]:
    """Row and column numbers, to be broadcast against each other."""
    return (arange(trace, rows)[:, None], arange(trace, columns)[None, :])


@entry(np.diag)
def diag(trace: Trace, v: Any, k: Any = 0) -> TracedArray:
    """``np.diag``: the diagonal of a matrix, or a matrix with this diagonal."""
    x, offset = as_traced(trace, v), _whole(k)
    if x.ndim == 2:
        return diagonal(trace, x, offset)
    _check_is_number(trace, k, "bad operand type for abs(): {}")
    if x.ndim != 1:
        raise trace.error(ValueError("Input must be 1- or 2-d."), [x.value])
    size = x.size + abs(offset)
    pad = creation.ZEROS(trace, (abs(offset),), x.dtype)
    padded = joining.concatenate(trace, [x, pad] if offset else [x])
    rows, columns = _grid(trace, size, size)
    spread = padded[:, None] if offset >= 0 else padded[None, :]
    on_diagonal = np.subtract(columns, rows) == offset
    return creation.where(trace, on_diagonal, spread, x.dtype.type(0))


@entry(np.diagflat)
def diagflat(trace: Trace, v: Any, k: Any = 0) -> TracedArray:
    """``np.diagflat``."""
    return diag(trace, shaping.ravel(trace, v), k)


@entry(np.fill_diagonal)
def fill_diagonal(trace: Trace, a: Any, val: Any, wrap: bool = False) -> None:
    """``np.fill_diagonal``: a number, or an array whose elements are repeated along it."""
    x, value = as_traced(trace, a), as_traced(trace, val)
    if x.ndim < 2:
        raise trace.error(ValueError("array must be at least 2-d"), [x.value])
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise trace.error(ValueError("All dimensions of input must be of equal length"))
    if value.size != 1 or wrap:
        _fill_diagonal_with(trace, x, value, wrap)
        return
    numbers = [arange(trace, n)[(slice(None), *[None] * (x.ndim - d - 1))]
               for d, n in enumerate(x.shape)]
    mask = numbers[0] == numbers[1]
    for other in numbers[2:]:
        mask = mask & (numbers[0] == other)
    one = value.reshape(()) if value.is_array else value
    x[...] = creation.where(trace, mask, astype_like(trace, one, x), x)


def _fill_diagonal_with(trace: Trace, x: TracedArray, value: TracedArray, wrap: bool) -> None:
    """``x.flat[:end:step] = value``, as NumPy's own source says."""
    if not (is_static(x.shape) and is_static(value.shape)) or not value.size:
        raise unsupported("np.fill_diagonal with an array of such a size", loc=trace.loc,
                          values=[("array", x.type), ("value", value.type)],
                          cure="give a number, or an array of a known length")
    step = 1 + int(np.cumprod(x.shape[:-1]).sum()) if x.ndim > 2 else x.shape[1] + 1
    end = x.size if wrap or x.ndim > 2 else min(x.size, x.shape[1] * x.shape[1])
    places = np.unravel_index(np.arange(0, end, step), x.shape)
    order = np.arange(len(places[0])) % value.size
    x[places] = shaping.ravel(trace, value)[order] if value.is_array else value


def astype_like(trace: Trace, value: TracedArray, x: TracedArray) -> TracedArray:
    """A number in the dtype of an array, by assignment's rules."""
    return TracedArray(trace, None, (), cast(trace, _scalar(trace, value), x.dtype))


def _scalar(trace: Trace, x: TracedArray) -> Any:
    return trace.emit("Squeeze", x.value, axes=(), kind="scalar") if x.is_array else x.value


def _triangle(lower: bool) -> Any:
    def select(trace: Trace, m: Any, k: Any = 0) -> TracedArray:
        x = shaping.spread_scalar(as_traced(trace, m))
        if x.ndim == 0:
            raise trace.error(TypeError("tri() missing 1 required positional argument: 'M'"))
        rows, columns = _grid(trace, (x.shape * 2)[-2], x.shape[-1])
        zero = x.dtype.type(0)
        if lower:
            return creation.where(trace, rows >= columns - k, x, zero)
        return creation.where(trace, rows >= columns - (k - 1), zero, x)

    return select


tril, triu = entry(np.tril)(_triangle(True)), entry(np.triu)(_triangle(False))


@entry(np.broadcast_arrays)
def broadcast_arrays(trace: Trace, *arrays: Any, subok: bool = False) -> tuple[Any, ...]:
    """``np.broadcast_arrays``: read-only views (NumPy's warn when written to)."""
    operands = [shaping.spread_scalar(as_traced(trace, a)) for a in arrays]
    try:
        shape = _common_shape([x.shape for x in operands])
    except ValueError as error:
        raise trace.error(error, [x.value for x in operands]) from None
    return tuple(x if x.shape == shape else shaping.broadcast_to(trace, x, shape)
                 for x in operands)


def _common_shape(shapes: list[tuple[Size, ...]]) -> tuple[Size, ...]:
    """The shape that all are broadcast to; raises in NumPy's words."""
    if not any(map(is_symbolic, shapes)):
        return np.broadcast_shapes(*shapes)
    try:
        return broadcast(shapes)
    except ValueError:
        return np.broadcast_shapes(*map(plain, shapes))


@entry(np.putmask)
def putmask(trace: Trace, a: Any, mask: Any, values: Any) -> None:
    """``np.putmask``: values of the array's size, or repeated to it."""
    x, given = as_traced(trace, a), as_traced(trace, values)
    if given.type.is_weak:
        given = from_value(trace, cast(trace, given.value, x.dtype))
    v = shaping.spread_scalar(given)
    test = truth(trace, as_traced(trace, mask).value)
    if test.type.size != x.size:
        raise trace.error(ValueError("putmask: mask and data must be the same size"))
    if not v.size:
        return
    if type(values) in (list, tuple):
        check_items(trace, values, x.dtype)
    elif given.is_array and not np.can_cast(v.dtype, x.dtype, "safe"):
        raise trace.error(TypeError(
            f"Cannot cast array data from {v.dtype!r} to {x.dtype!r} according to the rule "
            f"'safe'"))
    flat = trace.emit("Reshape", test, shape=x.shape) if test.shape != x.shape else test
    filled = _repeated(trace, v, x)
    x.write(trace.emit("Where", flat, cast(trace, filled.value, x.dtype), x.value, kind="array"))


def _repeated(trace: Trace, v: TracedArray, x: TracedArray) -> TracedArray:
    """``np.resize(v, x.shape)``; a single value stays single."""
    if v.size == 1:
        return shaping.reshape(trace, v, (1,) * x.ndim)
    flat = shaping.ravel(trace, v)
    parts = [flat] * -(-x.size // v.size)
    joined = joining.concatenate(trace, parts) if len(parts) > 1 else flat
    return shaping.reshape(trace, joined[: x.size], x.shape)


@entry(np.place)
def place(trace: Trace, arr: Any, mask: Any, vals: Any) -> None:
    """``np.place``: a single value by selection, several by NumPy."""
    v = as_traced(trace, vals)
    if type(vals) in (list, tuple):  # of numbers, which are assigned
        dtype = as_traced(trace, arr).dtype
        check_items(trace, vals, dtype)
        vals = v = creation.astype(trace, v, dtype)
    if v.size != 1:
        call_library(trace, "Place", (arr, mask, vals), {})
        return
    # Arrays must convert safely; numbers are assigned.
    putmask(trace, arr, mask, shaping.reshape(trace, v, (1,)) if v.is_array else v)


def scaled(x: TracedArray, y: TracedArray, out: Any = None) -> Any:
    """A product with a number in linear algebra: in C order where NumPy takes BLAS for it."""
    if out is not None:
        product = scaled(x, y)
        if not product.is_array:
            return np.multiply(x, y, out=out)
        np.copyto(out, product)
        return out
    dtype = np.result_type(x.dtype, y.dtype)
    x, y = (creation.astype(v.trace, v, dtype, copy=False) for v in (x, y))
    result: Any = np.multiply(x, y)
    is_blas = result.dtype.kind in "fc" and result.itemsize >= 4 and result.ndim <= 2
    if not result.is_array or not is_blas or result.size == 1:
        return result
    zero = result.dtype.type(0)
    added: Any = result + zero  # BLAS adds to zeros, and does nothing where the number is zero
    kept: Any = np.where((y if y.ndim == 0 else x) == 0, zero, added)
    if isinstance(result.size, Dim):  # one element is multiplied, which only the run knows
        kept = np.where(sizes.number(x.trace, result.size) == 1, result, kept)
    return shaping.copy_of(kept, "C")


@entry(np.inner)
def inner(trace: Trace, a: Any, b: Any, /) -> Any:
    """``np.inner``: products summed over the last axes."""
    x, y = strong(trace, a), strong(trace, b)
    if x.ndim == 0 or y.ndim == 0:
        return scaled(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise trace.error(ValueError(
            f"shapes {x.shape} and {y.shape} not aligned: {x.shape[-1]} (dim {x.ndim - 1}) != "
            f"{y.shape[-1]} (dim {y.ndim - 1})"), [x.value, y.value])
    if x.ndim <= 2 and y.ndim <= 2:
        return np.dot(x, y.T)
    if "c" in (x.dtype.kind, y.dtype.kind):  # vector by vector: overflow gives other infinities
        return call_by_name(trace, np.inner, (x, y), {})
    left, right = (v.reshape(math.prod(v.shape[:-1]), v.shape[-1]) for v in (x, y))
    return np.matmul(left, right.T).reshape(*x.shape[:-1], *y.shape[:-1])


@entry(np.vdot)
def vdot(trace: Trace, a: Any, b: Any, /) -> Any:
    """``np.vdot``: the inner product of the flattened operands, the first conjugated."""
    x, y = (shaping.ravel(trace, strong(trace, v)) for v in (a, b))
    if x.size != y.size:
        raise trace.error(ValueError("vectors have different lengths"), [x.value, y.value])
    return np.matmul(np.conjugate(x) if x.dtype.kind == "c" else x, y)


@entry(np.kron)
def kron(trace: Trace, a: Any, b: Any) -> Any:
    """``np.kron``: all products, the axes of ``a`` outside those of ``b``."""
    x, y = strong(trace, a), strong(trace, b)
    if not (x.ndim and y.ndim):
        return np.multiply(x, y)
    rank = max(x.ndim, y.ndim)
    sizes = [(1,) * (rank - v.ndim) + v.shape for v in (x, y)]
    outer = tuple(n for size in sizes[0] for n in (size, 1))
    inner = tuple(n for size in sizes[1] for n in (1, size))
    product: Any = np.multiply(shaping.reshape(trace, x, outer), shaping.reshape(trace, y, inner))
    return product.reshape(tuple(m * n for m, n in zip(*sizes, strict=True)))


@entry(np.unstack)
def unstack(trace: Trace, x: Any, /, *, axis: Any = 0) -> tuple[Any, ...]:
    """``np.unstack``: the sub-arrays along an axis."""
    a = as_traced(trace, x)
    if a.ndim == 0:
        raise trace.error(ValueError("Input array must be at least 1-d."))
    return tuple(shaping.moveaxis(trace, a, axis, 0))
