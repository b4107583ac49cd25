"""Mean, variance and standard deviation with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value

from ..facts.refusals import target_dtype
from ..operands.operands import as_traced, cast, strong
from ..ufuncs.complex_numbers import variance
from ..values.array import TracedArray
from ..values.handlers import entry
from ..values.operations import traced_source
from ..values.trace import Trace
from .accumulation import NO_VALUE, added_to_zero, axes_of, finished, in_single, is_kept, takes_all


def _by_source(trace: Trace, name: str, *args: Any, **kwargs: Any) -> Any:
    """``mean``, ``var`` or ``std`` with arguments that only NumPy's own source knows."""
    core: Any = np._core
    function = getattr(core._methods, f"_{name}")
    if type(kwargs["where"]) is TracedArray:  # of Python's booleans NumPy asks which they are
        kwargs["where"] = strong(trace, kwargs["where"])
    return traced_source(function, True)(trace, *args, **kwargs)


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


@entry(np.mean, method="mean", of_scalars=True)
def mean(
    trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = False, *, where: Any = True,
) -> Any:
    """``np.mean``: sum over count, integers in float64."""
    x = strong(trace, a)
    if not takes_all(where) or _is_integer(dtype):
        return _by_source(trace, "mean", x, axis, dtype, out, is_kept(keepdims),
                          where=True if takes_all(where) else where)
    axes = axes_of(trace, x, axis, strict=True)
    value = cast(trace, x.value, _float_type(trace, x.value, dtype))
    if axes:
        result = in_single(trace, "Mean", value, axes=axes)
    elif value.dtype.kind == "c":  # the division by one gives zeros another sign
        total = added_to_zero(trace, value)
        result = trace.emit("Div", total, trace.builder.const(value.dtype.type(1)))
    else:
        result = added_to_zero(trace, value)
    return finished(trace, x, result, axes, is_kept(keepdims), out)


def _divided(trace: Trace, value: Value, count: int, ddof: Any) -> Value:
    """By the count less ``ddof``; NaN where there is nothing to divide by."""
    number = trace.builder.const(value.dtype.type(max(count - ddof, 0)))
    return trace.emit("Div", value, number)


def _spread(op: str) -> Any:
    def reduce(
        trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = False, *, where: Any = True, mean: Any = NO_VALUE,
        correction: Any = NO_VALUE,
    ) -> Any:
        x = strong(trace, a)
        if dtype is not None and x.dtype.kind != "c" and np.dtype(dtype).kind == "c":
            raise unsupported(f"a {op.lower()} of real numbers in a complex dtype", loc=trace.loc,
                              cure="convert the array first: x.astype(dtype)")
        if correction is not NO_VALUE:
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
        given = None if mean is NO_VALUE else mean
        if not takes_all(where) or given is not None or _is_integer(dtype) or (
                _is_narrower(trace, x, dtype)):
            return _by_source(trace, op.lower(), x, axis, dtype, out, ddof, is_kept(keepdims),
                              where=True if takes_all(where) else where, mean=given)
        axes = axes_of(trace, x, axis, strict=True)
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
            result = in_single(trace, op, value, axes=axes, ddof=ddof)
        return finished(trace, x, result, axes, is_kept(keepdims), out)

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
    return finished(x.trace, x, result, axes, keepdims, out)


for _function in (np.std, np.var):
    entry(_function, method=_function.__name__, of_scalars=True)(
        _spread(_function.__name__.capitalize()))
