"""Scans with NumPy's signatures: ``cumsum`` and its kin, ``accumulate`` of ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.ops.scans import IDENTITIES

from ..library.calls import call_library, result_like
from ..library.stand_ins import ask_on_stand_ins
from ..operands.operands import BOOL, ROWS_OF_UFUNCS, as_traced, cast, truth
from ..values.array import TracedArray
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
    found = trace.emit("Scan", value, combine=combine, axes=(axis % x.ndim,))
    return result_like(trace, like, found)


def _cumulative(name: str, combine: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def handler(
        trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None
    ) -> Any:
        x = as_traced(trace, a)
        if not _is_plain(axis, dtype, out) or not x.is_array or not x.value.type.is_static:
            options = {k: v for k, v in (("axis", axis), ("dtype", dtype), ("out", out))
                       if v is not None}
            return call_library(trace, _ROW_NAMES[name], (a,), options)
        like = ask_on_stand_ins(trace, lambda x: function(x, axis=axis), [x])
        if name.startswith("nan") and x.dtype.kind in "fc":
            neutral = x.dtype.type(combine == "Mul")
            x = as_traced(trace, np.where(np.isnan(x), neutral, x))
        return _scan(trace, x, combine, axis, like)

    handler.__name__ = name
    return handler


_ROW_NAMES = {"cumsum": "Cumsum", "cumprod": "Cumprod", "nancumsum": "Nancumsum",
              "nancumprod": "Nancumprod"}
_NAMES = {"cumsum": "Add", "cumprod": "Mul", "nancumsum": "Add", "nancumprod": "Mul"}
SCAN_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    getattr(np, name): _cumulative(name, combine) for name, combine in _NAMES.items()
}


@operation
def accumulate(trace: Trace, ufunc: np.ufunc, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.accumulate(array, axis)`` as a scan; None where it is not one."""
    row, axis = ROWS_OF_UFUNCS.get(ufunc), kwargs.get("axis", args[1] if len(args) > 1 else 0)
    x = as_traced(trace, args[0])
    if row is None or row.name not in IDENTITIES or len(args) > 2 or set(kwargs) - {"axis"} or (
            type(axis) is not int or not x.ndim or not x.value.type.is_static):
        return None
    like = ask_on_stand_ins(trace, lambda a: ufunc.accumulate(a, axis=axis), [x])
    return _scan(trace, x, row.name, axis, like)


def _method(name: str) -> Callable[..., Any]:
    handler = SCAN_FUNCTIONS[getattr(np, name)]

    def method(self: TracedArray, /, *args: Any, **kwargs: Any) -> Any:
        return handler(self.trace, self, *args, **kwargs)

    return method


SCAN_METHODS: dict[str, Callable[..., Any]] = {
    name: _method(name) for name in ("cumsum", "cumprod")
}
