"""Common to reductions: axes, the dtype that they add up in, masks, initial values, and the layout
of the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ops import get
from fusec.ops.shapes import normalise_axes

from ..facts import this_numpy
from ..facts.layout import broadcast_strides, contiguous, k_order
from ..facts.refusals import target_dtype
from ..index.masks import add_up
from ..operands.operands import BOOL, as_traced, cast, store, truth
from ..values.array import TracedArray, from_value
from ..values.trace import Trace

NO_VALUE = np._NoValue


def is_kept(keepdims: Any) -> bool:
    return keepdims is not NO_VALUE and bool(keepdims)


def axes_of(trace: Trace, x: TracedArray, axis: Any, strict: bool = False) -> tuple[int, ...]:
    if any(isinstance(a, bool | np.bool_) for a in (axis if isinstance(axis, tuple) else (axis,))):
        raise trace.error(TypeError("an integer is required"), [x.value])
    if type(axis) is list:
        raise trace.error(TypeError("'list' object cannot be interpreted as an integer"), [x.value])
    # As NumPy's reductions, but not its mean.
    if not strict and x.ndim == 0 and type(axis) is not tuple and axis in (0, -1):
        return ()
    try:
        return normalise_axes(axis, x.ndim)
    except (ValueError, TypeError) as error:
        raise trace.error(error, [x.value]) from None


def finished(
    trace: Trace, x: TracedArray, result: Value, axes: tuple[int, ...], keepdims: bool, out: Any,
    where: Any = True,
) -> Any:
    if keepdims and axes:
        result = trace.emit("ExpandDims", result, axes=axes)
    if out is not None:
        target = as_traced(trace, out)
        store(trace, target, result, "unsafe", "reduction output")
        return target
    if not result.shape and result.type.kind == "array":  # of a rank-0 array
        result = trace.emit("Squeeze", result, axes=(), kind="scalar")
    return from_value(trace, result, _strides(x, result, axes, keepdims, where))


def _strides(
    x: TracedArray, result: Value, axes: tuple[int, ...], keepdims: bool, where: Any
) -> Any:
    """The kept axes lie in memory as they do in the operand, if the mask lies so too."""
    if result.type.rank < 2:
        return None
    mask = None if takes_all(where) else as_traced(x.trace, where)
    full = k_order(x.shape, [x.strides] if mask is None else [
        x.strides, broadcast_strides(mask.shape, mask.strides, x.shape)])
    if keepdims:
        return contiguous(result.shape, result.dtype.itemsize, full)
    kept = [d for d in range(x.ndim) if d not in axes]
    order = [kept.index(d) for d in full if d not in axes]
    return contiguous(result.shape, result.dtype.itemsize, order)


def accumulator(trace: Trace, x: Value, dtype: Any, out: Any = None) -> np.dtype:
    """NumPy adds small integers and booleans in the platform's int64 or uint64.

    With ``out`` it computes in a dtype that holds both.
    """
    if dtype is not None:
        return target_dtype(dtype, "a reduction", trace.loc)
    if out is not None:
        return np.result_type(x.dtype, as_traced(trace, out).dtype)
    if x.dtype.kind in "bi" and x.dtype.itemsize < 8:
        return np.dtype(np.int64)
    if x.dtype.kind == "u" and x.dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return x.dtype


def in_single(trace: Trace, op: str, value: Value, **attrs: Any) -> Value:
    """A reduction that rounds; of halves it is done in float32 and rounded in the end, as NumPy."""
    if value.dtype != np.float16:
        chosen = add_up(trace, op, value, attrs["axes"]) if op in ("Sum", "Mean") else None
        return trace.emit(op, value, **attrs) if chosen is None else chosen
    wide = cast(trace, value, np.dtype(np.float32))
    return cast(trace, trace.emit(op, wide, **attrs), value.dtype)


def added_to_zero(trace: Trace, value: Value) -> Value:
    """A sum over no axes: NumPy adds each element to zero, which -0.0 does not survive."""
    return trace.emit("Add", value, trace.builder.const(value.dtype.type(0)))


def takes_all(where: Any) -> bool:
    return where is True or where is NO_VALUE or where is None


def selected(trace: Trace, value: Value, where: Any, neutral: Any) -> Value:
    """The value with ``neutral`` where the mask leaves an element out."""
    if takes_all(where):
        return value
    mask = truth(trace, as_traced(trace, where).value)
    other = cast(trace, trace.builder.const(value.dtype.type(neutral)), value.dtype)
    try:
        np.broadcast_to(np.empty(mask.shape, bool), value.shape)
    except ValueError as error:
        raise trace.error(error, [mask, value], ("where", "array")) from None
    return trace.emit("Where", mask, value, other, kind="array" if value.shape else None)


def with_initial(trace: Trace, op: str, result: Value, initial: Any) -> Value:
    """The result joined with ``initial=``."""
    if initial is NO_VALUE or initial is None:
        return result
    return trace.emit(get(op).joins, element(trace, initial, result.dtype), result)


def element(trace: Trace, initial: Any, dtype: np.dtype) -> Value:
    """``initial=``, or the argument of `ndarray.fill`, in this dtype.

    Of arrays only one truth value can be an element.
    """
    given = as_traced(trace, initial)
    if not given.ndim:
        value = given.value if dtype != BOOL else truth(trace, given.value)
        return cast(trace, value, dtype)
    if this_numpy.TAKES_VECTORS and given.size == 1:
        return element(trace, given.reshape(()), dtype)
    if dtype != BOOL or given.size != 1:
        error = TypeError(this_numpy.NO_NUMBER) if (
            dtype.kind == "c") else ValueError("setting an array element with a sequence.")
        raise trace.error(error, [given.value])
    return trace.emit("Squeeze", truth(trace, given.value), axes=tuple(range(given.ndim)),
                      kind="scalar")
