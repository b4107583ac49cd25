"""Clipping, products, rounding, differences and queries with NumPy's signatures."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..arrays import creation, joining, shaping
from ..arrays.arranging import scaled
from ..facts import this_numpy
from ..facts.layout import contiguous, is_c_contiguous, like_order
from ..library.calls import call_library
from ..operands import sizes
from ..operands.dtypes import resolve
from ..operands.operands import as_traced, cast, store, strong
from ..ufuncs.complex_numbers import by_parts, squared_size
from ..ufuncs.ufunc_calls import call_ufunc
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.trace import Trace
from .reductions import sum_

_CLIP: Any = np._core.umath.clip  # type: ignore[attr-defined]


@entry(np.clip, of_scalars=True)
def clip(
    trace: Trace, a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, *,
    min: Any = None, max: Any = None, **kwargs: Any,
) -> Any:
    """``np.clip``: maximum with the lower bound, then minimum with the upper one."""
    if (a_min is np._NoValue) != (a_max is np._NoValue):
        missing = "a_min" if a_min is np._NoValue else "a_max"
        raise trace.error(TypeError(
            f"clip() missing 1 required positional argument: {missing!r}"))
    if a_min is np._NoValue:
        a_min = a_max = None
    if kwargs.get("where", True) is not True and out is not None:
        result = clip(trace, a, a_min, a_max, min=min, max=max)
        if result.dtype == np.bool_:  # which np.positive does not take
            np.copyto(out, result, where=kwargs["where"])
            return out
        return np.positive(result, out=out, **kwargs)
    low = min if a_min is None else a_min
    high = max if a_max is None else a_max
    x = as_traced(trace, a)
    how: dict[str, Any] = {name: kwargs[name] for name in ("dtype", "casting") if name in kwargs}
    if x.dtype.kind in "iu":  # bounds that no value exceeds are none, as in NumPy
        info = np.iinfo(x.dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return np.positive(x, out=out, **how)
    if low is None:
        return np.minimum(x, high, out=out, **how)
    if high is None:
        return np.maximum(x, low, out=out, **how)
    bounds = [as_traced(trace, bound).value for bound in (low, high)]
    if how or any(b.dtype != x.dtype for b in bounds):  # both decide what it is computed in
        asked = np.dtype(how["dtype"]) if how.get("dtype") is not None else None
        casting = how.get("casting", "same_kind")
        dtype = resolve(trace, _CLIP, [x.value, *bounds], asked, casting)[-1]
        how = {} if x.dtype == dtype else {"dtype": dtype, "casting": casting}
    result = call_ufunc(trace, np.maximum, "__call__", (x, low), how)
    if out is not None:
        how = {**how, "out": (out,)}
    return call_ufunc(trace, np.minimum, "__call__", (result, high), how)


@entry(np.dot, method="dot")
def dot(trace: Trace, a: Any, b: Any, out: Any = None) -> Any:
    """``np.dot`` for scalars, vectors and matrices."""
    x, y = strong(trace, a), strong(trace, b)
    if out is not None and max(x.ndim, y.ndim) <= 2:
        _check_target(trace, x, y, out)
    if x.ndim == 0 or y.ndim == 0:
        return scaled(x, y, out)[()] if x.ndim == y.ndim else scaled(x, y, out)
    if x.ndim > 2 or y.ndim > 2:
        return call_library(trace, "Dot", (x, y), {} if out is None else {"out": out})
    fits = x.shape[-1] == y.shape[max(y.ndim - 2, 0)]  # or else that is what is wrong
    extra = {"out": (out,)} if out is not None and fits else {}
    if _is_one_product(x, y):
        shape = (*x.shape[:-1], *y.shape[1:])
        factors = [shaping.reshape(trace, z, shape) for z in (x, y)]
        result = call_ufunc(trace, np.multiply, "__call__", factors, extra)
    else:
        result = call_ufunc(trace, np.matmul, "__call__", (x, y), extra)
    return result[()] if x.ndim == y.ndim == 1 else result


def _is_one_product(x: TracedArray, y: TracedArray) -> bool:
    """NumPy multiplies a product that BLAS would add to a zero, and so lose the sign of zeros."""
    return x.type.is_static and y.type.is_static and x.size == y.size == 1 and (
        np.result_type(x.dtype, y.dtype).char in "fdFD")


def _check_target(trace: Trace, x: TracedArray, y: TracedArray, out: Any) -> None:
    """That ``np.dot`` may put its result there; sizes that do not fit are another error."""
    scalar, dtype = x.ndim == 0 or y.ndim == 0, np.result_type(x.dtype, y.dtype)
    if scalar and dtype.char not in "fdFD":
        return  # not by BLAS: a product like others
    if not scalar and x.shape[-1] != y.shape[max(y.ndim - 2, 0)]:
        return
    shape = x.shape + y.shape if scalar else (*x.shape[:-1], *y.shape[:-2], *y.shape[1:][-1:])
    target = as_traced(trace, out)
    if target.dtype != dtype or target.shape != shape or not (
            is_c_contiguous(shape, target.strides, target.itemsize)):
        raise trace.error(ValueError(
            "output array is not acceptable (must have the right datatype, number of dimensions, "
            "and be a C-Array)"), [target.value])


@entry(np.outer)
def outer(trace: Trace, a: Any, b: Any, out: Any = None) -> Any:
    """``np.outer``: products of all pairs of the flattened operands."""
    x, y = (shaping.ravel(trace, strong(trace, v)) for v in (a, b))
    return np.multiply(x[:, None], y[None, :], out=out)


@entry(np.linalg.norm)
def norm(trace: Trace, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``np.linalg.norm``: 2-norm of vectors and Frobenius norm; others are NumPy's."""
    a = as_traced(trace, x)
    many = len(axis) if isinstance(axis, (tuple, list)) else a.ndim if axis is None else 1
    if (axis is not None and many > 2) or ord not in (None, 2) or (ord == 2 and many != 1):
        return call_library(trace, "LinalgNorm", (x, ord, axis, keepdims), {})
    if a.dtype.kind not in "fc":
        a = astype(trace, a, np.float64)
    each = squared_size(a) if a.dtype.kind == "c" else np.square(a)
    squares = sum_(trace, each, axis, None, None, keepdims)
    return np.sqrt(squares)


@entry(np.round, np.around, method="round", of_scalars=True)
def round_(trace: Trace, a: Any, decimals: int = 0, out: Any = None) -> Any:
    """``np.round``: scale, round half to even, scale back, as NumPy does."""
    x = as_traced(trace, a)
    decimals = _integer(trace, decimals)
    if out is not None and x.dtype.kind in "iu" and decimals >= 0 and shaping.is_same_view(x, out):
        return out  # which NumPy finds before it asks whether it may be written to
    if (out is None and x.is_array and x.dtype.kind in "iu" and decimals >= 0
            and this_numpy.ROUNDS_INTS_TO_THEMSELVES):
        return x
    is_plain = x.dtype.kind in "fb" and decimals == 0
    if x.dtype.kind == "c":
        parts: Any = by_parts(x, lambda part: round_(trace, part, decimals))
        layout = contiguous(x.shape, x.itemsize, like_order(x.strides))  # NumPy writes to a copy
        result = from_value(trace, parts.value, layout) if x.is_array else parts
    else:
        result = np.rint(x) if is_plain else _rounded(x, decimals)
    if out is None:
        return result
    target = as_traced(trace, out)
    store(trace, target, result.value, "unsafe", "rounded")
    return target


def _integer(trace: Trace, x: Any) -> int:
    try:
        return operator.index(x)
    except TypeError as error:
        raise trace.error(error) from None


def _rounded(x: TracedArray, decimals: int) -> TracedArray:
    """To some digits; the result is in C order unless the operand is in Fortran's."""
    if x.dtype == np.bool_ and decimals:
        raise x.trace.error(TypeError(
            f"Cannot cast ufunc '{'multiply' if decimals > 0 else 'divide'}' output from "
            f"dtype('float64') to dtype('bool') with casting rule 'same_kind'"), [x.value])
    if x.type.is_weak and x.dtype.kind == "i":
        x = as_traced(x.trace, np.positive(x))  # NumPy's integer, not Python's
    if x.dtype.kind != "f" and decimals < 0:  # worked in float64, as NumPy does
        wide = _rounded(x.astype(np.float64, order=_order_of(x)), decimals)
        return wide.astype(x.dtype)
    if x.dtype.kind != "f":
        return shaping.copy_of(x)[()] if x.is_array else x
    factor = x.dtype.type(10.0 ** abs(decimals))
    result = np.rint(x * factor) / factor if decimals > 0 else np.rint(x / factor) * factor
    return shaping.copy_of(result, _order_of(x)) if result.is_array else result


def _order_of(x: TracedArray) -> str:
    is_fortran = x.ndim > 1 and is_c_contiguous(x.shape[::-1], x.strides[::-1], x.itemsize)
    return "F" if is_fortran else "C"


@entry(np.diff)
def diff(
    trace: Trace, a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue,
    append: Any = np._NoValue,
) -> Any:
    """``np.diff`` by slices, ``n`` times."""
    x = as_traced(trace, a)
    if n == 0:
        return x
    if n < 0:
        raise trace.error(ValueError(f"order must be non-negative but got {n!r}"), [x.value])
    position = shaping.normalise_axis(axis, x.ndim)
    if prepend is not np._NoValue or append is not np._NoValue:
        x = _extended(trace, x, position, prepend, append)
    before = (slice(None),) * position
    for _ in range(n):
        after, first = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = after != first if x.dtype == np.bool_ else after - first
    return x


def _extended(trace: Trace, x: TracedArray, axis: int, prepend: Any, append: Any) -> TracedArray:
    """With a number or an array before and after, along one axis."""
    def piece(v: Any) -> Any:
        y = as_traced(trace, v)
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1:])
        return y if y.ndim else np.broadcast_to(y, shape)

    before = [] if prepend is np._NoValue else [piece(prepend)]
    after = [] if append is np._NoValue else [piece(append)]
    return joining.concatenate(trace, (*before, x, *after), axis)


@entry(np.nan_to_num)
def nan_to_num(
    trace: Trace, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None,
) -> Any:
    """``np.nan_to_num`` by selection."""
    a = as_traced(trace, x)
    if not copy and a.is_array:
        if a.dtype.kind in "fc":
            a[...] = nan_to_num(trace, a, True, nan, posinf, neginf)
        return a if a.ndim else a[()]
    if a.dtype.kind == "c":
        replaced = by_parts(a, lambda part: nan_to_num(trace, part, True, nan, posinf, neginf))
        return _in_order_of(a, replaced) if a.ndim else replaced
    if a.dtype.kind != "f":
        return shaping.copy_of(a) if a.ndim else shaping.spread_scalar(a)[()]
    info = np.finfo(a.dtype)
    low = info.min if neginf is None else neginf
    high = info.max if posinf is None else posinf
    result: Any = np.where(np.isnan(a), _filling(a, nan), a)
    result = np.where(a == a.dtype.type(np.inf), _filling(a, high), result)
    result = np.where(a == a.dtype.type(-np.inf), _filling(a, low), result)
    if not a.ndim:
        return result[()]
    return _in_order_of(a, result)


def _filling(a: TracedArray, x: Any) -> Any:
    """A number in the dtype of an array; one that follows from sizes is converted in the graph."""
    if type(x) is not Symbolic:
        return a.dtype.type(x)
    return from_value(a.trace, cast(a.trace, as_traced(a.trace, x).value, a.dtype))


def _in_order_of(a: TracedArray, result: Any) -> Any:
    """The result in the memory order of a copy of ``a``, which NumPy writes to."""
    copied = contiguous(a.shape, a.itemsize, like_order(a.strides))
    return from_value(a.trace, result.value, copied)


@entry(np.ndim)
def ndim(trace: Trace, a: Any) -> Any:
    """``np.ndim``."""
    return as_traced(trace, a).ndim


@entry(np.shape)
def shape(trace: Trace, a: Any) -> Any:
    """``np.shape``."""
    return sizes.numbers(trace, as_traced(trace, a).shape)


@entry(np.size)
def size(trace: Trace, a: Any, axis: Any = None) -> Any:
    """``np.size``."""
    x = as_traced(trace, a)
    axes = (axis,) if isinstance(axis, int) else axis
    count: Any = x.size if axes is None else math.prod(x.shape[d] for d in axes)
    return sizes.number(trace, count)


@entry(np.copy)
def copy(trace: Trace, a: Any, order: str = "K", subok: bool = False) -> Any:
    """``np.copy``."""
    return shaping.copy_of(shaping.spread_scalar(as_traced(trace, a)), order)


@entry(np.astype)
def astype(trace: Trace, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """``np.astype``."""
    return creation.astype(trace, as_traced(trace, x), dtype, copy=copy)


@entry(np.atleast_1d)
def atleast_1d(trace: Trace, *arrays: Any) -> Any:
    """``np.atleast_1d``."""
    results = [shaping.at_least(1)(trace, shaping.spread_scalar(as_traced(trace, a)))
               for a in arrays]
    return results[0] if len(results) == 1 else tuple(results)
