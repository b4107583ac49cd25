"""Ufuncs without a row, and methods of any, as library calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ops.calls.named_functions import ufunc_behind

from ..index.gathers import ufunc_at
from ..library.calls import call_library
from ..operands.index_uses import note_written, written_indices
from ..operands.operands import strong
from ..values.array import TracedArray
from ..values.operations import OPERATIONS
from ..values.trace import Trace
from .formulas import delivered


def call_ufunc_method(
    trace: Trace, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """A ufunc without a row, or ``accumulate``, ``reduceat`` and ``at`` of any."""
    name = ufunc.__name__ if getattr(np, ufunc.__name__, None) is ufunc else (
        f"special.{ufunc.__name__}")
    if method == "at":
        inputs = (*inputs[:2], *(_as_array(trace, x) for x in inputs[2:]))
        if len(inputs) == 3 and ufunc_at(trace, ufunc, *inputs):
            return None
        indices = written_indices(*inputs[:2])
        result = call_library(trace, "UfuncAt", (inputs[0], name, *inputs[1:]), kwargs)
        note_written(inputs[0], indices)
        return result
    if method == "accumulate":
        scanned = OPERATIONS.accumulate(trace, ufunc, tuple(inputs), kwargs)
        if scanned is not None:
            return scanned
    if method == "__call__":
        return _call_with_targets(trace, ufunc, name, inputs, dict(kwargs))
    return call_library(trace, "Ufunc", (name, method, *inputs), kwargs)


def _as_array(trace: Trace, x: Any) -> Any:
    """A Python number as the array that ``ufunc.at`` makes of it, with a dtype of its own."""
    if type(x) is TracedArray:
        return strong(trace, x)
    return np.asarray(x)[()] if type(x) in (bool, int, float, complex) else x


def _call_with_targets(
    trace: Trace, ufunc: np.ufunc, name: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The call without ``out`` and ``where``, its results then put where they are asked for."""
    out, where = kwargs.pop("out", None), kwargs.pop("where", True)
    result = call_library(trace, "Ufunc", (name, "__call__", *inputs), kwargs)
    return delivered(ufunc, result, out, where, kwargs.get("casting", "same_kind"))


def call_method_of_library(
    trace: Trace, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """``reduce`` and its kin of a ufunc of NumPy or SciPy as a library call."""
    if getattr(np, ufunc.__name__, None) is not ufunc and not is_scipys(ufunc):
        raise unsupported(f"{ufunc.__name__}.{method}", loc=trace.loc,
                          cure="only ufuncs of NumPy and SciPy have a name to call them by")
    return call_ufunc_method(trace, ufunc, method, inputs, kwargs)


def is_scipys(ufunc: np.ufunc) -> bool:
    """Whether it is a public function of ``scipy.special``, which the caller has imported."""
    module = sys.modules.get("scipy.special")
    return module is not None and ufunc_behind(getattr(module, ufunc.__name__, None)) is ufunc
