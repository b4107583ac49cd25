"""Scans with NumPy's signatures: ``cumsum`` and its kin, ``accumulate`` of ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ops.rows.scans import IDENTITIES

from ..library.calls import call_library, result_like
from ..library.stand_ins import ask_on_stand_ins
from ..operands.operands import BOOL, ROWS_OF_UFUNCS, as_traced, cast, truth
from ..values.array import TracedArray
from ..values.handlers import entry
from ..values.operations import operation
from ..values.trace import Trace


def _is_plain(axis: Any, dtype: Any, out: Any) -> bool:
    """Whether only the arrays vary: the rest is for the library."""
    return out is None and type(axis) in (int, type(None)) and dtype is None


def _scan(trace: Trace, x: TracedArray, combine: str, axis: int | None, like: np.ndarray) -> Any:
    """The scan whose answer on stand-ins is ``like``."""
    if axis is None or not x.ndim:
        x, axis = x.reshape(-1), 0
    value = truth(trace, x.value) if like.dtype == BOOL else cast(trace, x.value, like.dtype)
    if x.shape[axis] == 1:
        return result_like(trace, like, value)
    scanned = trace.emit("Scan", value, combine=combine, axes=(axis % x.ndim,))
    return result_like(trace, like, scanned)


def _cumulative(function: Any, op: str, combine: str) -> Callable[..., Any]:

    def handler(trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = as_traced(trace, a)
        if not _is_plain(axis, dtype, out) or not x.is_array or not x.value.type.is_static:
            options = {k: v for k, v in (("axis", axis), ("dtype", dtype), ("out", out))
                       if v is not None}
            return call_library(trace, op, (a,), options)
        like = ask_on_stand_ins(trace, lambda x: function(x, axis=axis), [x], axis)
        if op.startswith("Nan") and x.dtype.kind in "fc":
            neutral = x.dtype.type(combine == "Mul")
            x = as_traced(trace, np.where(np.isnan(x), neutral, x))
        return _scan(trace, x, combine, axis, like)

    handler.__name__ = function.__name__
    return handler


for _function, _op, _combine, _named in (
    (np.cumsum, "Cumsum", "Add", "cumsum"), (np.cumprod, "Cumprod", "Mul", "cumprod"),
    (np.nancumsum, "Nancumsum", "Add", ""), (np.nancumprod, "Nancumprod", "Mul", ""),
):
    entry(_function, method=_named)(_cumulative(_function, _op, _combine))


@operation
def accumulate(trace: Trace, ufunc: np.ufunc, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.accumulate(array, axis)`` as a scan; None where it is not one."""
    row, axis = ROWS_OF_UFUNCS.get(ufunc), kwargs.get("axis", args[1] if len(args) > 1 else 0)
    x = as_traced(trace, args[0])
    if row is None or row.name not in IDENTITIES or len(args) > 2 or set(kwargs) - {"axis"} or (
            type(axis) is not int or not x.ndim or not x.value.type.is_static):
        return None
    like = ask_on_stand_ins(trace, lambda a: ufunc.accumulate(a, axis=axis), [x], axis)
    return _scan(trace, x, row.name, axis, like)
