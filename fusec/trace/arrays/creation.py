"""Array creation inside a trace: every array made there is traced, so it can be written to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.dims import is_static

from ..facts import this_numpy
from ..facts.layout import broadcast_strides, contiguous, is_c_contiguous, k_order, order_like
from ..facts.refusals import target_dtype
from ..index.indexing import fit
from ..index.windows import new_shape
from ..library.calls import call_library
from ..lists.appended_items import restacked
from ..operands.operands import (
    as_traced,
    cast,
    check_cast,
    spread,
    spread_scalar,
    store,
    truth,
)
from ..operands.python_numbers import misses_dtype
from ..operands.scalar_stores import check_items, check_number
from ..values.array import TracedArray, copy_of, from_value
from ..values.handlers import entry, holds_symbols, is_traced_inside
from ..values.operations import operation
from ..values.own_arrays import array_of
from ..values.selected_arrays import with_one_layout
from ..values.storage import Storage
from ..values.trace import Trace
from .joining import stack
from .shaping import expand_dims


def _dtype(trace: Trace, dtype: Any, default: Any = float) -> np.dtype:
    return target_dtype(dtype, "an array", trace.loc, default)


def filled(trace: Trace, shape: Any, value: Any, dtype: np.dtype, strides: Any = None) -> Any:
    """A fresh array of one value."""
    constant = cast(trace, as_traced(trace, value).value, dtype)
    full = spread(trace, constant, new_shape(trace, shape))
    return TracedArray(trace, Storage(full, strides))


def _filled_with(value: Any) -> Any:
    def create(
        trace: Trace, shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None,
        like: Any = None,
    ) -> Any:
        target = _dtype(trace, dtype)
        dims = new_shape(trace, shape)
        axes = list(range(len(dims)))[::-1] if order == "F" else None
        return filled(trace, dims, target.type(value), target,
                      contiguous(dims, target.itemsize, axes))

    return create


@entry(np.full, hooked="always")
def full(
    trace: Trace, shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *,
    device: Any = None, like: Any = None,
) -> Any:
    """``np.full``."""
    value = as_traced(trace, fill_value)
    target = _dtype(trace, dtype, value.dtype)
    sizes = new_shape(trace, shape)
    axes = list(range(len(sizes)))[::-1] if order == "F" else None
    strides = contiguous(sizes, target.itemsize, axes)
    if value.shape and value.shape != sizes and not is_static((*sizes, *value.shape)):
        raise unsupported("np.full with an array, where data decides the size of one of them",
                          loc=trace.loc, values=[("fill_value", value.type)],
                          cure="make an array of the size, and write into it")
    if value.shape:
        result = filled(trace, sizes, 0, target, strides)
        result[...] = value
        return result
    return filled(trace, sizes, _unsafe(trace, value), target, strides)


def _like(value: Any) -> Any:
    def create(
        trace: Trace, a: Any, dtype: Any = None, order: str = "K", subok: bool = True,
        shape: Any = None, *, device: Any = None,
    ) -> Any:
        x = as_traced(trace, a)
        target = _dtype(trace, dtype, x.dtype)
        sizes = x.shape if shape is None else new_shape(trace, shape)
        axes = order_like(x.shape, x.strides, x.itemsize, order) if x.is_array else None
        if order == "F" or (order == "A" and axes is not None):
            axes = list(range(len(sizes)))[::-1]
        elif len(sizes) != x.ndim:
            axes = None
        elif shape is not None and axes is not None:
            axes = _order_of_new_shape(x, axes)
        strides = contiguous(sizes, target.itemsize, axes)
        return filled(trace, sizes, target.type(value), target, strides)

    return create


def _order_of_new_shape(x: TracedArray, axes: list[int]) -> list[int] | None:
    """Axes of length 1 say nothing where memory is dense, but in the new shape may be longer."""
    if is_c_contiguous(x.shape, x.strides, x.itemsize):
        return None
    is_fortran = is_c_contiguous(x.shape[::-1], x.strides[::-1], x.itemsize)
    return list(range(x.ndim))[::-1] if is_fortran else axes


def _unsafe(trace: Trace, fill_value: Any) -> TracedArray:
    """The number as ``copyto(casting="unsafe")`` takes it: converted, and ints alone checked."""
    value = as_traced(trace, fill_value)
    if value.type.is_weak and value.dtype.kind in "fc":
        return from_value(trace, cast(trace, value.value, value.dtype))
    return value


@entry(np.full_like)
def full_like(
    trace: Trace, a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
    shape: Any = None, *, device: Any = None,
) -> Any:
    """``np.full_like``."""
    result = _like(0)(trace, a, dtype, order, subok, shape)
    value = _unsafe(trace, fill_value)
    if not value.is_array:  # stored scalars would be checked
        value = from_value(trace, cast(trace, value.value, result.dtype))
    result[...] = value
    return result


@operation
def array_from_sequence(trace: Trace, items: Sequence[Any]) -> TracedArray:
    """A nested list or tuple; its elements may be traced."""
    if not is_traced_inside(items) and not (trace.builder.is_symbolic and holds_symbols(items)):
        return TracedArray(trace, trace.capture(array_of(trace, items)))
    whole = restacked(trace, items)
    if whole is not None:
        return whole
    parts = [
        array_from_sequence(trace, i) if isinstance(i, (list, tuple)) else as_traced(trace, i)
        for i in items
    ]
    dtype = np.result_type(*[p.dtype for p in parts])  # Python numbers count in full here
    return stack(trace, [_as_dtype(trace, p, dtype) for p in parts])


def _as_dtype(trace: Trace, x: TracedArray, dtype: np.dtype) -> TracedArray:
    return spread_scalar(from_value(trace, cast(trace, x.value, dtype)))


def _whether(copy: Any) -> bool | None:
    """``copy=`` as it was before NumPy 2, too."""
    if not isinstance(copy, np._CopyMode):
        return copy
    return None if copy is np._CopyMode.IF_NEEDED else bool(copy)


_NO_COPY = (
    "Unable to avoid copy while creating an array as requested.\n"
    "If using `np.array(obj, copy=False)` replace it with `np.asarray(obj)` to allow a copy when "
    "needed (no behavior change in NumPy 1.x).")


@entry(np.array, hooked="traced")
@operation
def array(
    trace: Trace, object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K",
    subok: bool = False, ndmin: int = 0, like: Any = None,
) -> Any:
    """``np.array``: a copy unless ``copy`` says otherwise."""
    copy = _whether(copy)
    given = as_traced(trace, object)
    x = spread_scalar(given)
    if copy is False and (x.storage is None or type(object) in (list, tuple) or (
            dtype is not None and _dtype(trace, dtype) != x.dtype)):
        raise trace.error(ValueError(_NO_COPY), [x.value])
    if dtype is not None and _dtype(trace, dtype) != x.dtype:
        if type(object) in (list, tuple):
            check_items(trace, object, _dtype(trace, dtype))
        else:
            check_number(trace, given.value, _dtype(trace, dtype))
        x = astype(trace, x, dtype, order)
    elif copy:
        x = copy_of(x, order)
    if ndmin > x.ndim:
        x = expand_dims(trace, x, tuple(range(ndmin - x.ndim)))
    return x


@entry(np.asarray, np.asanyarray, hooked="traced")
def asarray(
    trace: Trace, a: Any, dtype: Any = None, order: Any = None, *, device: Any = None,
    copy: Any = None, like: Any = None,
) -> Any:
    """``np.asarray``, ``asanyarray``, ``ascontiguousarray``: no copy unless needed."""
    x = array(trace, a, dtype, copy=copy)
    x = with_one_layout(x) if order in ("C", "F") else x
    if order == "C" and not is_c_contiguous(x.shape, x.strides, x.itemsize):
        return copy_of(x, "C")
    if order == "F" and not is_c_contiguous(x.shape[::-1], x.strides[::-1], x.itemsize):
        return copy_of(x, "F")
    return x


@entry(np.ascontiguousarray, hooked="traced")
def ascontiguousarray(trace: Trace, a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """``np.ascontiguousarray``: C order and at least one axis."""
    x = asarray(trace, a, dtype, "C")
    return x if x.ndim else x.reshape(1)


def astype(
    trace: Trace, x: TracedArray, dtype: Any, order: str = "K", casting: str = "unsafe",
    subok: bool = True, copy: bool = True,
) -> TracedArray:
    """``ndarray.astype``: a fresh array (or NumPy scalar) of another dtype."""
    target = _dtype(trace, dtype)
    rule: Any = casting
    if not np.can_cast(x.dtype, target, rule):
        raise trace.error(TypeError(
            f"Cannot cast array data from {x.dtype!r} to {target!r} according to the rule "
            f"{casting!r}"), [x.value])
    if target == x.dtype and not copy:
        return x
    value = cast(trace, x.value, target)
    if not x.is_array:
        return from_value(trace, value)
    axes = order_like(x.shape, x.strides, x.itemsize, order)
    return TracedArray(trace, Storage(value, contiguous(x.shape, target.itemsize, axes)))


@entry(np.where)
def where(trace: Trace, condition: Any, *choices: Any) -> Any:
    """``np.where`` with three arguments."""
    if len(choices) != 2:
        if choices:
            raise trace.error(ValueError("either both or neither of x and y should be given"))
        return call_library(trace, "Nonzero", (condition,), {})
    test = as_traced(trace, condition)
    sides = [as_traced(trace, c) for c in choices]
    values = [s.value for s in sides]
    dtype = np.result_type(*[
        v.type.zero if v.type.is_weak else v.dtype for v in values])
    operands = [_choice(trace, v, dtype) for v in values]
    value = trace.emit("Where", truth(trace, test.value), *operands, kind="array")
    given = [broadcast_strides(o.shape, o.strides, value.shape)
             for o in (test, *sides) if o.is_array]
    order = k_order(value.shape, given)
    return from_value(trace, value, contiguous(value.shape, dtype.itemsize, order))


def _choice(trace: Trace, value: Value, dtype: np.dtype) -> Value:
    """A side of ``np.where``: in older NumPys Python ints out of range wrap around."""
    if not value.type.is_weak or dtype.kind not in "iu" or not this_numpy.WHERE_WRAPS:
        return cast(trace, value, dtype)
    if not misses_dtype(value, dtype):
        return trace.emit("Cast", value, dtype=dtype)
    number = np.asarray(value.node.attrs["value"])
    if number.dtype == object:
        raise trace.error(OverflowError("Python int too large to convert to C long"), [value])
    return trace.builder.const(number.astype(dtype)[()])


@entry(np.copyto)
def copyto(trace: Trace, dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """``np.copyto``."""

    target = as_traced(trace, dst)
    if not target.is_array:
        name = type(target.type.dtype.type(0).item()) if target.type.is_weak else target.dtype.type
        raise trace.error(TypeError(
            f"copyto() argument 1 must be a numpy.ndarray, not {name.__name__}"), [target.value])
    if type(src) is TracedArray and (src.storage, src.steps) == (target.storage, target.steps):
        return  # onto itself, which NumPy allows of what is read-only
    source = as_traced(trace, src).value
    what = "array data" if source.shape else "scalar"
    check_cast(trace, target, source, casting, what + " from {} to {} according to the rule")
    value = fit(target, _unsafe(trace, from_value(trace, source)).value, target.shape)
    if where is not True:
        mask = truth(trace, as_traced(trace, where).value)
        value = trace.emit("Where", mask, cast(trace, value, target.dtype), target.value)
    store(trace, target, value, casting, "array data")


ZEROS = entry(np.zeros, np.empty, hooked="always")(_filled_with(0))
ONES = entry(np.ones, hooked="always")(_filled_with(1))
ZEROS_LIKE, ONES_LIKE = entry(np.zeros_like)(_like(0)), entry(np.ones_like)(_like(1))
entry(np.empty_like, hooked="always")(ZEROS_LIKE)
