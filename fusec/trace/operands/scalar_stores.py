"""Numbers stored into arrays of integers: NumPy converts them to Python ints.

NaN, infinities and numbers out of the dtype's range raise.  Exceptions, which cast without a check:
NumPy scalars into unsigned arrays, and stores through masks and index arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import Symbolic, is_int

from ..facts.trees import leaves_in
from ..values.array import TracedArray
from ..values.trace import Trace
from .python_numbers import check_fits

F64 = np.dtype(np.float64)


def check_stored(trace: Trace, source: Value, dtype: np.dtype) -> None:
    """Before ``x[i] = source``: NumPy's error for a scalar out of the range of ``dtype``.

    Python numbers are checked where they are converted, see `check_number`.
    """
    if source.type.kind != "scalar" or dtype.kind != "i" or source.dtype.kind not in "iuf" or (
            np.can_cast(source.dtype, dtype, "safe")):
        return
    if source.dtype.kind == "f":
        _check_float(trace, source, dtype)
    else:
        _check_int(trace, source, dtype)


def check_number(trace: Trace, value: Value, dtype: np.dtype) -> None:
    """Before a Python number is converted to ``dtype``: NumPy's error for it."""
    if not value.type.is_weak:
        return
    if value.node.op == "Const" or value.dtype.kind == "c":
        _convert_by_numpy(trace, value, value.node.attrs.get("value", 0j), dtype)
    elif value.dtype.kind == "f" and dtype.kind in "iu":
        _check_float(trace, value, dtype)
    else:
        check_fits(trace, value, dtype)


def _convert_by_numpy(trace: Trace, value: Value, number: Any, dtype: np.dtype) -> None:
    if type(number) is Symbolic and _fits(number, dtype):
        return
    try:
        with np.errstate(all="ignore"):
            np.asarray(number, dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise trace.error(error, [value] if value.node.op != "Const" else []) from None


def _fits(number: Symbolic, dtype: np.dtype) -> bool:
    """Whether a number that follows from sizes can be converted, at these and others."""
    if dtype.kind in "iu" and is_int(number):
        info = np.iinfo(dtype)
        return bool(info.min <= number <= info.max)
    return dtype.kind in "fc" and (dtype.itemsize >= F64.itemsize or bool(abs(number) < 1 << 15))


def check_items(trace: Trace, items: Any, dtype: np.dtype) -> None:
    """`check_number` and `check_stored` for a nested list that becomes an array of ``dtype``."""
    if dtype.kind not in "iuf":
        return
    for item in leaves_in(items):
        if type(item) is Symbolic:
            check_number(trace, trace.builder.const(item), dtype)
        if type(item) is TracedArray and not item.is_array and not _is_any_float(item, dtype):
            check_number(trace, item.value, dtype)
            check_stored(trace, item.value, dtype)


def _is_any_float(item: TracedArray, dtype: np.dtype) -> bool:
    """Whether a real number becomes one that has infinity for large numbers."""
    return dtype.kind == "f" and item.dtype.kind in "biuf"


def _check_float(trace: Trace, source: Value, dtype: np.dtype) -> None:
    number = trace.emit("Cast", source, dtype=F64)
    is_nan = trace.emit("NotEqual", number, number)
    trace.check(trace.emit("LogicalNot", is_nan), ValueError(
        "cannot convert float NaN to integer"))
    info = np.iinfo(dtype)  # both bounds are exact in float64, or those of int64
    low = trace.emit("GreaterEqual", number, _number(trace, -2.0**63)) if (
        dtype == np.int64) else trace.emit("Greater", number, _number(trace, float(info.min) - 1))
    high = trace.emit("Less", number, _number(trace, float(info.max) + 1))
    fits = trace.emit("LogicalAnd", low, high)
    trace.check(trace.emit("LogicalOr", fits, is_nan), _too_large(dtype))


def _check_int(trace: Trace, source: Value, dtype: np.dtype) -> None:
    """Compared in the source's dtype, with bounds that it can hold."""
    info, source_info = np.iinfo(dtype), np.iinfo(source.dtype)
    high = trace.builder.const(source.dtype.type(min(info.max, source_info.max)))
    fits = trace.emit("LessEqual", source, high)
    if source_info.min < info.min:
        low = trace.builder.const(source.dtype.type(info.min))
        fits = trace.emit("LogicalAnd", fits, trace.emit("GreaterEqual", source, low))
    trace.check(fits, _too_large(dtype))


def _number(trace: Trace, x: float) -> Value:
    return trace.builder.const(np.float64(x))


def _too_large(dtype: np.dtype) -> OverflowError:
    return OverflowError("Python int too large to convert to C long" if dtype.itemsize == 8 else
                         f"Python integer out of bounds for {dtype}")


def are_ints(x: Any) -> bool:
    return all(type(item) is int for item in leaves_in(x))


def check_items_fit(array: TracedArray, numbers: Any) -> None:
    """Raise unless Python ints fit the dtype of the array that they are assigned to."""
    try:
        np.array(numbers, array.dtype)
    except OverflowError as error:
        raise array.trace.error(error, [array.value]) from None
    except ValueError:  # lists of different lengths
        return


def none_in(array: TracedArray) -> np.ndarray:
    """The value of ``x[...] = None``: NaN, or NumPy's error where the dtype has none."""
    try:
        return np.array(None, array.dtype)
    except TypeError as error:
        raise array.trace.error(error, [array.value]) from None
