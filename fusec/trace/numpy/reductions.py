"""Reductions with NumPy's signatures: accumulator dtypes, axes, ``keepdims``, ``out``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.dims import Dim
from fusec.ops.shapes import normalise_axes

from ..facts import this_numpy
from ..facts.layout import broadcast_strides, contiguous, k_order
from ..facts.refusals import target_dtype
from ..index.masks import add_up
from ..library.calls import call_by_name
from ..operands.operands import BOOL, as_traced, cast, spread, spread_scalar, store, strong, truth
from ..operands.python_numbers import weak
from ..ufuncs.complex_numbers import variance
from ..ufuncs.composed import _scaled
from ..ufuncs.methods import call_method_of_library
from ..values.array import TracedArray, from_value
from ..values.operations import operation, traced_source
from ..values.trace import Trace
from .creation import astype

_NO_VALUE = np._NoValue
_BY_UFUNC: dict[Any, str] = {
    np.add: "Sum", np.multiply: "Prod", np.maximum: "Max", np.minimum: "Min",
    np.logical_or: "Any", np.logical_and: "All",
}


def is_kept(keepdims: Any) -> bool:
    return keepdims is not _NO_VALUE and bool(keepdims)


def _axes(trace: Trace, x: TracedArray, axis: Any, strict: bool = False) -> tuple[int, ...]:
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


def _finish(
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
    mask = None if _all(where) else as_traced(x.trace, where)
    full = k_order(x.shape, [x.strides] if mask is None else [
        x.strides, broadcast_strides(mask.shape, mask.strides, x.shape)])
    if keepdims:
        return contiguous(result.shape, result.dtype.itemsize, full)
    kept = [d for d in range(x.ndim) if d not in axes]
    order = [kept.index(d) for d in full if d not in axes]
    return contiguous(result.shape, result.dtype.itemsize, order)


def _accumulator(trace: Trace, x: Value, dtype: Any, out: Any = None) -> np.dtype:
    """NumPy adds small integers and booleans in the platform's int64 or uint64.

    With ``out`` it computes in what holds both.
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


def _in_single(trace: Trace, op: str, value: Value, **attrs: Any) -> Value:
    """A reduction that rounds; of halves it is done in float32 and rounded in the end, as NumPy."""
    if value.dtype != np.float16:
        chosen = add_up(trace, op, value, attrs["axes"]) if op in ("Sum", "Mean") else None
        return trace.emit(op, value, **attrs) if chosen is None else chosen
    wide = cast(trace, value, np.dtype(np.float32))
    return cast(trace, trace.emit(op, wide, **attrs), value.dtype)


def _added_to_zero(trace: Trace, value: Value) -> Value:
    """A sum over no axes: NumPy adds each element to zero, which -0.0 does not survive."""
    return trace.emit("Add", value, trace.builder.const(value.dtype.type(0)))


def _all(where: Any) -> bool:
    return where is True or where is _NO_VALUE or where is None


def _selected(trace: Trace, value: Value, where: Any, neutral: Any) -> Value:
    """The value with ``neutral`` where the mask leaves an element out."""
    if _all(where):
        return value
    mask = truth(trace, as_traced(trace, where).value)
    other = cast(trace, trace.builder.const(value.dtype.type(neutral)), value.dtype)
    try:
        np.broadcast_to(np.empty(mask.shape, bool), value.shape)
    except ValueError as error:
        raise trace.error(error, [mask, value], ("where", "array")) from None
    return trace.emit("Where", mask, value, other, kind="array" if value.shape else None)


def _with_initial(trace: Trace, op: str, result: Value, initial: Any) -> Value:
    """The result joined with ``initial=``."""
    if initial is _NO_VALUE or initial is None:
        return result
    return trace.emit({"Sum": "Add", "Prod": "Mul", "Max": "Maximum", "Min": "Minimum",
                       "Any": "LogicalOr", "All": "LogicalAnd"}[op],
                      element(trace, initial, result.dtype), result)


def element(trace: Trace, initial: Any, dtype: np.dtype) -> Value:
    """``initial=``, or what `ndarray.fill` is given, in this dtype.

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


def _lowest(op: str, dtype: np.dtype) -> Any:
    """The neutral element of Max or Min."""
    if dtype == BOOL:
        return op == "Min"
    if dtype.kind in "fc":  # complex numbers are ordered by their real parts
        return -np.inf if op == "Max" else np.inf
    return np.iinfo(dtype).min if op == "Max" else np.iinfo(dtype).max


def _by_source(trace: Trace, name: str, *args: Any, **kwargs: Any) -> Any:
    """``mean``, ``var`` or ``std`` with arguments that only NumPy's own source knows."""
    core: Any = np._core
    function = getattr(core._methods, f"_{name}")
    if type(kwargs["where"]) is TracedArray:  # of Python's booleans NumPy asks which they are
        kwargs["where"] = strong(trace, kwargs["where"])
    return traced_source(function, True)(trace, *args, **kwargs)


def _accumulate(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
        keepdims: Any = False, initial: Any = _NO_VALUE, where: Any = True,
    ) -> Any:
        x = strong(trace, a)
        axes = _axes(trace, x, axis)
        value = cast(trace, x.value, _accumulator(trace, x.value, dtype, out))
        plain = _all(where) and (initial is _NO_VALUE or initial is None)
        if op == "Prod" and value.dtype.kind == "c" and not plain:
            given = {"keepdims": keepdims, "initial": initial, "where": where}
            if out is not None:
                given["out"] = out
            return call_by_name(trace, np.prod, (x, axis, dtype), given)
        value = _selected(trace, value, where, 0 if op == "Sum" else 1)
        of_booleans = {"Sum": "Any", "Prod": "All"}[op]
        result = value
        if axes:
            result = _in_single(trace, op if value.dtype != BOOL else of_booleans, value, axes=axes)
        elif op == "Sum" and value.dtype.kind in "fc":
            result = _added_to_zero(trace, value)
        elif value.dtype.kind == "c":
            result = trace.emit("Mul", trace.builder.const(value.dtype.type(1)), value)
        result = _with_initial(trace, op, result, initial)
        return _finish(trace, x, result, axes, is_kept(keepdims), out, where)

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
        initial: Any = _NO_VALUE, where: Any = True,
    ) -> Any:
        is_bounded = initial is not _NO_VALUE and initial is not None
        x = _as_bounded(trace, strong(trace, a), out) if is_bounded else strong(trace, a)
        axes = _axes(trace, x, axis)
        if type(where) is TracedArray and where.type.is_weak and not is_bounded:
            where = bool(where)  # True is no mask, False one that needs an initial value
        if not _all(where) and not is_bounded:
            raise trace.error(ValueError(
                f"reduction operation '{name}imum' does not have an identity, so to use a where "
                f"mask one has to specify 'initial'"), [x.value])
        if any(x.shape[d] == 0 for d in axes) and not is_bounded:
            raise trace.error(ValueError(
                f"zero-size array to reduction operation {name}imum which has no identity"
            ), [x.value])
        value = _selected(trace, x.value, where, _lowest(op, x.dtype))
        if any(x.shape[d] == 0 for d in axes):
            start = element(trace, initial, x.dtype)
            kept = tuple(n for d, n in enumerate(x.shape) if d not in axes)
            result = spread(trace, start, kept) if kept else start
            return _finish(trace, x, result, axes, is_kept(keepdims), out, where)
        if is_bounded:
            value = _never_empty(trace, value, axes, initial)
        result = trace.emit(op, value, axes=axes) if axes else value
        result = _with_initial(trace, op, result, initial)
        return _finish(trace, x, result, axes, is_kept(keepdims), out, where)

    return reduce


def _never_empty(
    trace: Trace, value: Value, axes: tuple[int, ...], initial: Any
) -> Value:
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
        where: Any = True, initial: Any = _NO_VALUE,
    ) -> Any:
        x = strong(trace, a)
        axes = _axes(trace, x, axis)
        value = _selected(trace, truth(trace, x.value), where, op == "All")
        result = trace.emit(op, value, axes=axes) if axes else value
        result = _with_initial(trace, op, result, initial)
        return _finish(trace, x, result, axes, is_kept(keepdims), out, where)

    return reduce


def _position(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False,
    ) -> Any:
        x = strong(trace, a)
        if isinstance(axis, bool | np.bool_):
            raise trace.error(TypeError("an integer is required for the axis"), [x.value])
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
            return _finish(trace, x, result, axes, is_kept(keepdims), out)
        if is_kept(keepdims):
            result = trace.emit("ExpandDims", result, axes=axes)
        return from_value(trace, result)  # in C order, unlike other reductions

    return reduce


def _is_integer(dtype: Any) -> bool:
    """Whether the mean is asked for in integers: then NumPy's code truncates at every step."""
    return dtype is not None and np.dtype(dtype).kind in "biu"


def _is_narrower(trace: Trace, x: TracedArray, dtype: Any) -> bool:
    """Whether a spread is asked for in a dtype that the elements' distances do not have."""
    if dtype is None:
        return False
    target = target_dtype(dtype, "a reduction", trace.loc)
    return bool(np.promote_types(x.dtype, target) != target)


def _float_type(trace: Trace, x: Value, dtype: Any) -> np.dtype:
    if dtype is not None:
        return target_dtype(dtype, "a reduction", trace.loc)
    return x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)


def mean(
    trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = False, *, where: Any = True,
) -> Any:
    """``np.mean``: sum over count, integers in float64."""
    x = strong(trace, a)
    if not _all(where) or _is_integer(dtype):
        return _by_source(trace, "mean", x, axis, dtype, out, is_kept(keepdims),
                          where=True if _all(where) else where)
    axes = _axes(trace, x, axis, strict=True)
    value = cast(trace, x.value, _float_type(trace, x.value, dtype))
    if axes:
        result = _in_single(trace, "Mean", value, axes=axes)
    elif value.dtype.kind == "c":  # the division by one gives zeros another sign
        total = _added_to_zero(trace, value)
        result = trace.emit("Div", total, trace.builder.const(value.dtype.type(1)))
    else:
        result = _added_to_zero(trace, value)
    return _finish(trace, x, result, axes, is_kept(keepdims), out)


def _divided(trace: Trace, value: Value, count: int, ddof: Any) -> Value:
    """By the count less ``ddof``; NaN where there is nothing to divide by."""
    number = trace.builder.const(value.dtype.type(max(count - ddof, 0)))
    return trace.emit("Div", value, number)


def _spread(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = False, *, where: Any = True, mean: Any = _NO_VALUE,
        correction: Any = _NO_VALUE,
    ) -> Any:
        x = strong(trace, a)
        if dtype is not None and x.dtype.kind != "c" and np.dtype(dtype).kind == "c":
            raise unsupported(f"a {op.lower()} of real numbers in a complex dtype", loc=trace.loc,
                              cure="convert the array first: x.astype(dtype)")
        if correction is not _NO_VALUE:
            if ddof != 0:
                raise trace.error(ValueError(
                    "ddof and correction can't be provided simultaneously."), [x.value])
            ddof = correction
        if type(ddof) is TracedArray:
            ddof = np.asarray(ddof.concrete("the number ddof", "pass it as a Python number")).item()
        if op == "Std" and out is not None and as_traced(trace, out).dtype.kind in "biu":
            target = as_traced(trace, out).dtype
            raise trace.error(TypeError(
                f"Cannot cast ufunc 'sqrt' output from dtype('float64') to {target!r} with "
                f"casting rule 'same_kind'"), [x.value])
        given = None if mean is _NO_VALUE else mean
        if not _all(where) or given is not None or _is_integer(dtype) or (
                _is_narrower(trace, x, dtype)):
            return _by_source(trace, op.lower(), x, axis, dtype, out, ddof, is_kept(keepdims),
                              where=True if _all(where) else where, mean=given)
        axes = _axes(trace, x, axis, strict=True)
        value = cast(trace, x.value, _float_type(trace, x.value, dtype))
        if value.dtype == np.float16:  # NumPy rounds each step to halves, whose squares overflow
            return _by_source(trace, op.lower(), x, axis, dtype, out, ddof, is_kept(keepdims),
                              where=True)
        if value.dtype.kind == "c":
            return _complex_spread(op, x, axes, value.dtype, dtype is not None, ddof,
                                   is_kept(keepdims), out)
        if not x.ndim:  # a number differs from itself by NaN at most
            result = _divided(trace, trace.emit("Sub", value, value), 1, ddof)
        else:
            result = _in_single(trace, op, value, axes=axes, ddof=ddof)
        return _finish(trace, x, result, axes, is_kept(keepdims), out)

    return reduce


def _complex_spread(
    op: str, x: TracedArray, axes: tuple[int, ...], dtype: np.dtype, asked: bool, ddof: Any,
    keepdims: bool, out: Any,
) -> Any:
    """Variance of complex numbers: a real number, in the dtype if that was asked for."""
    kept = variance(x, axes, ddof, dtype, asked)
    kept = np.sqrt(kept) if op == "Std" else kept
    result = x.trace.emit("Squeeze", kept.value, axes=axes) if axes else kept.value
    if not result.shape:
        result = x.trace.emit("Squeeze", result, axes=(), kind="scalar")
    return _finish(x.trace, x, result, axes, keepdims, out)


def count_nonzero(
    trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False
) -> Any:
    """``np.count_nonzero`` as a sum of truth values in int64."""
    x = astype(trace, strong(trace, a), np.bool_, copy=False)
    axes = _axes(trace, x, axis)
    value = cast(trace, x.value, np.dtype(np.int64))
    result = trace.emit("Sum", value, axes=axes) if axes else value
    count = _finish(trace, x, result, axes, is_kept(keepdims), None)
    if axis is None and this_numpy.COUNTS_ARE_INTS and not count.is_array:
        return TracedArray(trace, None, (), weak(trace, count.value, value.dtype))
    return count


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


def _ignoring_nan(name: str, extreme: float) -> Any:
    """``np.fmin.reduce`` and ``np.fmax.reduce``: NaN only where all, ``initial`` too, are."""
    ufunc = np.fmin if name == "min" else np.fmax

    def reduce(
        x: TracedArray, axis: Any, out: Any, keepdims: Any, where: Any, initial: Any = _NO_VALUE
    ) -> Any:
        options: dict[str, Any] = {"axis": axis, "keepdims": is_kept(keepdims)}
        is_bounded = initial is not _NO_VALUE and initial is not None
        x = _as_bounded(x.trace, x, out) if is_bounded else x
        if x.dtype.kind == "c" or not (_all(where) or is_bounded):
            return _by_library(x.trace, ufunc, x, **options, out=_outs(out), where=where,
                               initial=initial)
        method = getattr(x, name)
        if x.dtype.kind != "f":
            return method(axis, _outs(out), is_kept(keepdims), initial=initial, where=where)
        hole = np.isnan(x)
        kept = getattr(np.where(hole, x.dtype.type(extreme), x), name)
        best = kept(**options, where=where, initial=extreme if is_bounded else _NO_VALUE)
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


def nan_extremum(ufunc: np.ufunc) -> Any:
    """``np.nanmin`` and ``np.nanmax``, which on arrays are ``np.fmin.reduce`` and its twin."""
    def reduce(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = _NO_VALUE, where: Any = True,
    ) -> Any:
        x = as_traced(trace, a)
        plain = x.dtype.kind not in "fc" or (
            x.dtype.kind == "f" and _all(where) and initial is _NO_VALUE)
        if x.is_array or plain:  # a complex NaN has another part, which by hand becomes 0
            return reduce_by_ufunc(
                trace, ufunc, a, axis, None, out, is_kept(keepdims), initial, where)
        return _nan_extremum_of_scalar(ufunc, x, out, initial, where)

    return reduce


def _nan_extremum_of_scalar(
    ufunc: np.ufunc, x: TracedArray, out: Any, initial: Any, where: Any
) -> Any:
    """NumPy takes NaN out of what is no array by hand: then all of nothing is NaN as well."""
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
    keepdims: Any = False, initial: Any = _NO_VALUE, where: Any = True,
) -> Any:
    """``np.add.reduce`` and its kin; the default axis is 0."""
    op = _BY_UFUNC.get(ufunc)
    if op is None and ufunc in _IGNORING_NAN and dtype is None:
        x = spread_scalar(strong(trace, a))
        return _IGNORING_NAN[ufunc](x, axis, out, keepdims, where, initial)
    if op is None and ufunc is np.logical_xor and dtype is None and initial is _NO_VALUE:
        return _parity(strong(trace, a), axis, out, keepdims, where)
    if op is None:
        return _by_library(trace, ufunc, a, axis=axis, dtype=dtype, out=out, keepdims=keepdims,
                           initial=initial, where=where)
    out = out[0] if isinstance(out, tuple) else out
    function = REDUCTIONS[op.lower()]
    if op in ("Sum", "Prod"):
        return function(trace, a, axis, dtype, out, keepdims, initial, where)
    if op in ("Max", "Min"):
        if dtype is not None:
            x = strong(trace, a)
            asked = target_dtype(dtype, "a reduction", trace.loc)
            layout = _scaled(x, asked) if x.is_array else None
            a = from_value(trace, cast(trace, x.value, asked), layout)
        return function(trace, a, axis, out, keepdims, initial, where)
    return function(trace, a, axis, out, keepdims, where=where, initial=initial)


def _by_library(trace: Trace, ufunc: np.ufunc, a: Any, **kwargs: Any) -> Any:
    """A reduction by a function that no accumulator combines with: NumPy's own call."""
    given = {k: v for k, v in kwargs.items() if v is not None and v is not _NO_VALUE}
    if kwargs["axis"] is None:
        given["axis"] = None
    if given["where"] is True:
        del given["where"]
    return call_method_of_library(trace, ufunc, "reduce", (a,), given)


__all__ = ["BOOL", "REDUCTIONS", "count_nonzero", "element", "nan_extremum", "reduce_by_ufunc"]
