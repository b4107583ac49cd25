"""Reductions with NumPy's signatures: accumulator dtypes, axes, ``keepdims``, ``out``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ops.shapes import normalise_axes

from .array import TracedArray, from_value
from .context import Trace
from .layout import contiguous
from .refusals import target_dtype
from .ufuncs import BOOL, as_traced, cast, store, truth

_NO_VALUE = np._NoValue
_BY_UFUNC: dict[Any, str] = {
    np.add: "Sum", np.multiply: "Prod", np.maximum: "Max", np.minimum: "Min",
    np.logical_or: "Any", np.logical_and: "All",
}


def _axes(trace: Trace, x: TracedArray, axis: Any, strict: bool = False) -> tuple[int, ...]:
    # As NumPy's reductions, but not its mean.
    if not strict and x.ndim == 0 and axis in (0, -1, (0,), (-1,)):
        return ()
    try:
        return normalise_axes(axis, x.ndim)
    except (ValueError, TypeError) as error:
        raise trace.error(error, [x.value]) from None


def _finish(
    trace: Trace, x: TracedArray, result: Value, axes: tuple[int, ...], keepdims: bool, out: Any
) -> Any:
    if keepdims and axes:
        result = trace.emit("ExpandDims", result, axes=axes)
    if out is not None:
        target = as_traced(trace, out)
        store(trace, target, result, "unsafe", "reduction output")
        return target
    if not result.shape and result.type.kind == "array":  # of a rank-0 array
        result = trace.emit("Squeeze", result, axes=(), kind="scalar")
    return from_value(trace, result, _strides(x, result, axes, keepdims))


def _strides(x: TracedArray, result: Value, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The kept axes lie in memory as they do in the operand."""
    if result.type.rank < 2:
        return None
    kept = [d for d in range(x.ndim) if d not in axes]
    order = sorted(range(len(kept)), key=lambda i: -abs(x.strides[kept[i]]))
    if keepdims:
        full = sorted(range(x.ndim), key=lambda d: -abs(x.strides[d]))
        return contiguous(result.shape, result.dtype.itemsize, full)
    return contiguous(result.shape, result.dtype.itemsize, order)


def _accumulator(trace: Trace, x: Value, dtype: Any) -> np.dtype:
    """NumPy adds small integers and booleans in the platform's int64 or uint64."""
    if dtype is not None:
        return target_dtype(dtype, "a reduction", trace.loc)
    if x.dtype.kind in "bi" and x.dtype.itemsize < 8:
        return np.dtype(np.int64)
    if x.dtype.kind == "u" and x.dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return x.dtype


def _refuse(trace: Trace, name: str, initial: Any, where: Any) -> None:
    if initial is not _NO_VALUE or not (where is True or where is _NO_VALUE):
        raise unsupported(
            f"the argument {'where' if initial is _NO_VALUE else 'initial'}= of np.{name}",
            loc=trace.loc, cure="select before the reduction: np.where(mask, x, neutral)",
        )


def _plain_value(x: TracedArray) -> Value:
    """A weak number reduced is a NumPy scalar."""
    return x.value


def _accumulate(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
        keepdims: Any = False, initial: Any = _NO_VALUE, where: Any = True,
    ) -> Any:
        x = as_traced(trace, a)
        _refuse(trace, op.lower(), initial, where)
        axes = _axes(trace, x, axis)
        value = cast(trace, x.value, _accumulator(trace, x.value, dtype))
        result = trace.emit(op, value, axes=axes) if axes else value
        return _finish(trace, x, result, axes, keepdims is True, out)

    return reduce


def _extremum(op: str, name: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = _NO_VALUE, where: Any = True,
    ) -> Any:
        x = as_traced(trace, a)
        _refuse(trace, name, initial, where)
        axes = _axes(trace, x, axis)
        if any(x.shape[d] == 0 for d in axes):
            raise trace.error(ValueError(
                f"zero-size array to reduction operation {name}imum which has no identity"
            ), [x.value])
        result = trace.emit(op, x.value, axes=axes) if axes else x.value
        return _finish(trace, x, result, axes, keepdims is True, out)

    return reduce


def _logical(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *,
        where: Any = True,
    ) -> Any:
        x = as_traced(trace, a)
        _refuse(trace, op.lower(), _NO_VALUE, where)
        axes = _axes(trace, x, axis)
        value = truth(trace, x.value)
        result = trace.emit(op, value, axes=axes) if axes else value
        return _finish(trace, x, result, axes, keepdims is True, out)

    return reduce


def _position(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False,
    ) -> Any:
        x = as_traced(trace, a)
        if axis is not None and not isinstance(axis, (int, np.integer)):
            raise trace.error(TypeError(f"axis must be an integer or None, got {axis!r}"))
        axes = _axes(trace, x, axis)
        if any(x.shape[d] == 0 for d in axes):
            raise trace.error(ValueError(
                f"attempt to get {op.lower()} of an empty sequence"), [x.value])
        if not axes:
            return as_traced(trace, np.int64(0))
        result = trace.emit(op, x.value, axes=axes)
        if out is not None:
            return _finish(trace, x, result, axes, keepdims is True, out)
        if keepdims is True:
            result = trace.emit("ExpandDims", result, axes=axes)
        return from_value(trace, result)  # in C order, unlike other reductions

    return reduce


def _float_type(trace: Trace, x: Value, dtype: Any) -> np.dtype:
    if dtype is not None:
        return target_dtype(dtype, "a reduction", trace.loc)
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)


def mean(
    trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = False, *, where: Any = True,
) -> Any:
    """``np.mean``: sum over count, integers in float64."""
    x = as_traced(trace, a)
    _refuse(trace, "mean", _NO_VALUE, where)
    axes = _axes(trace, x, axis, strict=True)
    value = cast(trace, x.value, _float_type(trace, x.value, dtype))
    result = trace.emit("Mean", value, axes=axes) if axes else value
    return _finish(trace, x, result, axes, keepdims is True, out)


def _spread(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = False, *, where: Any = True, mean: Any = _NO_VALUE,
        correction: Any = _NO_VALUE,
    ) -> Any:
        x = as_traced(trace, a)
        _refuse(trace, op.lower(), _NO_VALUE, where)
        if mean is not _NO_VALUE:
            raise unsupported(f"np.{op.lower()}(mean=...)", loc=trace.loc)
        ddof = ddof if correction is _NO_VALUE else correction
        axes = _axes(trace, x, axis, strict=True)
        value = cast(trace, x.value, _float_type(trace, x.value, dtype))
        result = trace.emit(op, value, axes=axes, ddof=ddof)
        return _finish(trace, x, result, axes, keepdims is True, out)

    return reduce


def count_nonzero(
    trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False
) -> Any:
    """``np.count_nonzero`` as a sum of truth values in int64."""
    x = as_traced(trace, a)
    axes = _axes(trace, x, axis)
    value = cast(trace, truth(trace, x.value), np.dtype(np.int64))
    result = trace.emit("Sum", value, axes=axes) if axes else value
    return _finish(trace, x, result, axes, keepdims is True, None)


def peak_to_peak(
    trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    """``np.ptp``: maximum minus minimum."""
    high = REDUCTIONS["max"](trace, a, axis, None, keepdims)
    low = REDUCTIONS["min"](trace, a, axis, None, keepdims)
    return np.subtract(high, low, out=out) if out is not None else high - low


REDUCTIONS: dict[str, Any] = {
    "sum": _accumulate("Sum"), "prod": _accumulate("Prod"),
    "max": _extremum("Max", "max"), "min": _extremum("Min", "min"),
    "any": _logical("Any"), "all": _logical("All"),
    "argmax": _position("ArgMax"), "argmin": _position("ArgMin"),
    "mean": mean, "var": _spread("Var"), "std": _spread("Std"), "ptp": peak_to_peak,
}


def reduce_by_ufunc(
    trace: Trace, ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
    keepdims: Any = False, initial: Any = _NO_VALUE, where: Any = True,
) -> Any:
    """``np.add.reduce`` and its kin; the default axis is 0."""
    op = _BY_UFUNC.get(ufunc)
    if op is None:
        raise unsupported(
            f"np.{ufunc.__name__}.reduce", [f"np.{u.__name__}.reduce" for u in _BY_UFUNC],
            loc=trace.loc,
        )
    out = out[0] if isinstance(out, tuple) else out
    function = REDUCTIONS[op.lower()]
    if op in ("Sum", "Prod"):
        return function(trace, a, axis, dtype, out, keepdims, initial, where)
    if op in ("Max", "Min"):
        return function(trace, a, axis, out, keepdims, initial, where)
    return function(trace, a, axis, out, keepdims, where=where)


__all__ = ["BOOL", "REDUCTIONS", "count_nonzero", "reduce_by_ufunc"]
