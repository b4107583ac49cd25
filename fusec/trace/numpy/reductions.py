"""Reductions with NumPy's signatures: sums, extrema, their positions, and those of ufuncs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.sizes.dims import Dim
from fusec.ops import get

from ..arrays.creation import astype
from ..facts import this_numpy
from ..facts.refusals import target_dtype
from ..library.calls import call_by_name
from ..operands.operands import BOOL, as_traced, cast, spread, spread_scalar, strong, truth
from ..operands.python_numbers import weak
from ..operands.sizes import check_axis_is_int
from ..ufuncs.formulas import _scaled
from ..ufuncs.methods import call_method_of_library
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.operations import operation
from ..values.trace import Trace
from .accumulation import (
    NO_VALUE,
    accumulator,
    added_to_zero,
    axes_of,
    element,
    finished,
    in_single,
    is_kept,
    selected,
    takes_all,
    with_initial,
)


def _lowest(op: str, dtype: np.dtype) -> Any:
    """The neutral element of Max or Min."""
    if dtype == BOOL:
        return op == "Min"
    if dtype.kind in "fc":  # complex numbers are ordered by their real parts
        return -np.inf if op == "Max" else np.inf
    return np.iinfo(dtype).min if op == "Max" else np.iinfo(dtype).max


def _accumulate(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
        keepdims: Any = False, initial: Any = NO_VALUE, where: Any = True,
    ) -> Any:
        x = strong(trace, a)
        axes = axes_of(trace, x, axis)
        value = cast(trace, x.value, accumulator(trace, x.value, dtype, out))
        plain = takes_all(where) and (initial is NO_VALUE or initial is None)
        if op == "Prod" and value.dtype.kind == "c" and not plain:
            given = {"keepdims": keepdims, "initial": initial, "where": where}
            if out is not None:
                given["out"] = out
            return call_by_name(trace, np.prod, (x, axis, dtype), given)
        value = selected(trace, value, where, 0 if op == "Sum" else 1)
        result = value
        if axes:
            reduction = op if value.dtype != BOOL else get(op).of_booleans
            result = in_single(trace, reduction, value, axes=axes)
        elif op == "Sum" and value.dtype.kind in "fc":
            result = added_to_zero(trace, value)
        elif value.dtype.kind == "c":
            result = trace.emit("Mul", trace.builder.const(value.dtype.type(1)), value)
        result = with_initial(trace, op, result, initial)
        return finished(trace, x, result, axes, is_kept(keepdims), out, where)

    return reduce


def _as_bounded(trace: Trace, x: TracedArray, out: Any) -> TracedArray:
    """NumPy reduces in the dtype of ``out``, which matters to ``initial=`` alone."""
    target = _outs(out)
    if target is None or as_traced(trace, target).dtype == x.dtype:
        return x
    return astype(trace, x, as_traced(trace, target).dtype)


def _extremum(op: str, name: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = NO_VALUE, where: Any = True,
    ) -> Any:
        is_bounded = initial is not NO_VALUE and initial is not None
        x = _as_bounded(trace, strong(trace, a), out) if is_bounded else strong(trace, a)
        axes = axes_of(trace, x, axis)
        if type(where) is TracedArray and where.type.is_weak and not is_bounded:
            where = bool(where)  # True is no mask, False one that needs an initial value
        if not takes_all(where) and not is_bounded:
            raise trace.error(ValueError(
                f"reduction operation '{name}imum' does not have an identity, so to use a where "
                f"mask one has to specify 'initial'"), [x.value])
        if any(x.shape[d] == 0 for d in axes) and not is_bounded:
            raise trace.error(ValueError(
                f"zero-size array to reduction operation {name}imum which has no identity"
            ), [x.value])
        value = selected(trace, x.value, where, _lowest(op, x.dtype))
        if any(x.shape[d] == 0 for d in axes):
            start = element(trace, initial, x.dtype)
            kept = tuple(n for d, n in enumerate(x.shape) if d not in axes)
            result = spread(trace, start, kept) if kept else start
            return finished(trace, x, result, axes, is_kept(keepdims), out, where)
        if is_bounded:
            value = _never_empty(trace, value, axes, initial)
        result = trace.emit(op, value, axes=axes) if axes else value
        result = with_initial(trace, op, result, initial)
        return finished(trace, x, result, axes, is_kept(keepdims), out, where)

    return reduce


def _never_empty(trace: Trace, value: Value, axes: tuple[int, ...], initial: Any) -> Value:
    """The operand with ``initial=`` at one more place of each axis whose size the run decides."""
    for axis in axes:
        if isinstance(value.shape[axis], Dim):
            shape = tuple(1 if d == axis else n for d, n in enumerate(value.shape))
            start = spread(trace, element(trace, initial, value.dtype), shape)
            value = trace.emit("Concat", value, start, axis=axis)
    return value


def _logical(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *,
        where: Any = True, initial: Any = NO_VALUE,
    ) -> Any:
        x = strong(trace, a)
        axes = axes_of(trace, x, axis)
        value = selected(trace, truth(trace, x.value), where, op == "All")
        result = trace.emit(op, value, axes=axes) if axes else value
        result = with_initial(trace, op, result, initial)
        return finished(trace, x, result, axes, is_kept(keepdims), out, where)

    return reduce


def _position(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False,
    ) -> Any:
        x = strong(trace, a)
        check_axis_is_int(trace, axis)
        if axis is not None and not isinstance(axis, (int, np.integer)):
            raise trace.error(TypeError(f"axis must be an integer or None, got {axis!r}"))
        axes = axes_of(trace, x, axis)
        if any(x.shape[d] == 0 for d in axes):
            raise trace.error(ValueError(
                f"attempt to get {op.lower()} of an empty sequence"), [x.value])
        if not axes:
            return as_traced(trace, np.int64(0))
        result = trace.emit(op, x.value, axes=axes)
        if out is not None:
            return finished(trace, x, result, axes, is_kept(keepdims), out)
        if is_kept(keepdims):
            result = trace.emit("ExpandDims", result, axes=axes)
        return from_value(trace, result)  # in C order, unlike other reductions

    return reduce


@entry(np.count_nonzero)
def count_nonzero(trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """``np.count_nonzero`` as a sum of truth values in int64."""
    x = astype(trace, strong(trace, a), np.bool_, copy=False)
    axes = axes_of(trace, x, axis)
    value = cast(trace, x.value, np.dtype(np.int64))
    result = trace.emit("Sum", value, axes=axes) if axes else value
    count = finished(trace, x, result, axes, is_kept(keepdims), None)
    if axis is None and this_numpy.COUNTS_ARE_INTS and not count.is_array:
        return TracedArray(trace, None, (), weak(trace, count.value, value.dtype))
    return count


@entry(np.ptp)
def peak_to_peak(
    trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    """``np.ptp``: maximum minus minimum."""
    high, low = (reduce(trace, a, axis, None, keepdims) for reduce in (maximum, minimum))
    return np.subtract(high, low, out=out) if out is not None else high - low


_of_both = partial(entry, of_scalars=True)
sum_, prod = (_of_both(f, method=f.__name__)(_accumulate(op))
              for f, op in ((np.sum, "Sum"), (np.prod, "Prod")))
maximum = _of_both(np.max, np.amax, method="max")(_extremum("Max", "max"))
minimum = _of_both(np.min, np.amin, method="min")(_extremum("Min", "min"))
any_, all_ = (_of_both(f, method=f.__name__)(_logical(op))
              for f, op in ((np.any, "Any"), (np.all, "All")))
for _function, _op in ((np.argmax, "ArgMax"), (np.argmin, "ArgMin")):
    _of_both(_function, method=_function.__name__)(_position(_op))
_BY_UFUNC: dict[Any, Any] = {
    np.add: sum_, np.multiply: prod, np.maximum: maximum, np.minimum: minimum,
    np.logical_or: any_, np.logical_and: all_,
}


def _ignoring_nan(name: str, extreme: float) -> Any:
    """``np.fmin.reduce`` and ``np.fmax.reduce``: NaN only where all, ``initial`` too, are."""
    ufunc = np.fmin if name == "min" else np.fmax

    def reduce(
        x: TracedArray, axis: Any, out: Any, keepdims: Any, where: Any, initial: Any = NO_VALUE
    ) -> Any:
        options: dict[str, Any] = {"axis": axis, "keepdims": is_kept(keepdims)}
        is_bounded = initial is not NO_VALUE and initial is not None
        x = _as_bounded(x.trace, x, out) if is_bounded else x
        if x.dtype.kind == "c" or not (takes_all(where) or is_bounded):
            return _by_library(x.trace, ufunc, x, **options, out=_outs(out), where=where,
                               initial=initial)
        method = getattr(x, name)
        if x.dtype.kind != "f":
            return method(axis, _outs(out), is_kept(keepdims), initial=initial, where=where)
        hole = np.isnan(x)
        kept = getattr(np.where(hole, x.dtype.type(extreme), x), name)
        best = kept(**options, where=where, initial=extreme if is_bounded else NO_VALUE)
        all_are = hole.all(**options, where=where)
        result = np.where(all_are, x.dtype.type(np.nan), best)[()]
        if is_bounded:
            start = from_value(x.trace, element(x.trace, initial, x.dtype))
            result = ufunc(result, start)
        if _outs(out) is None:
            return result
        np.copyto(_outs(out), result, casting="unsafe")
        return _outs(out)

    return reduce


def _nan_extremum(ufunc: np.ufunc) -> Any:
    """``np.nanmin`` and ``np.nanmax``, which on arrays are ``np.fmin.reduce`` and its twin."""
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = NO_VALUE, where: Any = True,
    ) -> Any:
        x = as_traced(trace, a)
        plain = x.dtype.kind not in "fc" or (
            x.dtype.kind == "f" and takes_all(where) and initial is NO_VALUE)
        if x.is_array or plain:  # a complex NaN has another part, which by hand becomes 0
            return reduce_by_ufunc(
                trace, ufunc, a, axis, None, out, is_kept(keepdims), initial, where)
        return _nan_extremum_of_scalar(ufunc, x, out, initial, where)

    return reduce


entry(np.nanmin)(_nan_extremum(np.fmin))
entry(np.nanmax)(_nan_extremum(np.fmax))


def _nan_extremum_of_scalar(
    ufunc: np.ufunc, x: TracedArray, out: Any, initial: Any, where: Any
) -> Any:
    """NumPy takes NaN out of scalars by hand: then all of nothing is NaN as well."""
    reduce, extreme = (np.min, np.inf) if ufunc is np.fmin else (np.max, -np.inf)
    best = reduce(np.where(np.isnan(x), x.dtype.type(extreme), x), initial=initial, where=where)
    result = np.where(np.isnan(x).all(where=where), x.dtype.type(np.nan), best)[()]
    if _outs(out) is None:
        return result
    np.copyto(_outs(out), result)
    return _outs(out)


def _outs(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _parity(x: TracedArray, axis: Any, out: Any, keepdims: Any, where: Any) -> Any:
    """``np.logical_xor.reduce``: whether an odd number is true."""
    is_true: Any = np.not_equal(x, 0)
    count = is_true.sum(axis, keepdims=is_kept(keepdims), where=where)
    return np.not_equal(count & 1, 0, out=_outs(out)) if _outs(out) is not None else (
        count & 1) != 0


_IGNORING_NAN: dict[Any, Any] = {
    np.fmin: _ignoring_nan("min", np.inf), np.fmax: _ignoring_nan("max", -np.inf),
}


@operation
def reduce_by_ufunc(
    trace: Trace, ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
    keepdims: Any = False, initial: Any = NO_VALUE, where: Any = True,
) -> Any:
    """``np.add.reduce`` and its kin; the default axis is 0."""
    function = _BY_UFUNC.get(ufunc)
    if function is None and ufunc in _IGNORING_NAN and dtype is None:
        x = spread_scalar(strong(trace, a))
        return _IGNORING_NAN[ufunc](x, axis, out, keepdims, where, initial)
    if function is None and ufunc is np.logical_xor and dtype is None and initial is NO_VALUE:
        return _parity(strong(trace, a), axis, out, keepdims, where)
    if function is None:
        return _by_library(trace, ufunc, a, axis=axis, dtype=dtype, out=out, keepdims=keepdims,
                           initial=initial, where=where)
    out = out[0] if isinstance(out, tuple) else out
    if function is sum_ or function is prod:
        return function(trace, a, axis, dtype, out, keepdims, initial, where)
    if function is maximum or function is minimum:
        if dtype is not None:
            x = strong(trace, a)
            asked = target_dtype(dtype, "a reduction", trace.loc)
            layout = _scaled(x, asked) if x.is_array else None
            a = from_value(trace, cast(trace, x.value, asked), layout)
        return function(trace, a, axis, out, keepdims, initial, where)
    return function(trace, a, axis, out, keepdims, where=where, initial=initial)


def _by_library(trace: Trace, ufunc: np.ufunc, a: Any, **kwargs: Any) -> Any:
    """A reduction by a function that no accumulator combines with: NumPy's own call."""
    given = {k: v for k, v in kwargs.items() if v is not None and v is not NO_VALUE}
    if kwargs["axis"] is None:
        given["axis"] = None
    if given["where"] is True:
        del given["where"]
    return call_method_of_library(trace, ufunc, "reduce", (a,), given)
