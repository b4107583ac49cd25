"""Methods of ndarray (and of NumPy scalars) on traced values, and how a call comes to a handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import creation, shaping
from ..index import sliding_windows
from ..library.failures import guarded, numpys_answer
from ..operands.operands import as_traced
from ..operands.scalar_stores import none_in
from ..ufuncs.complex_numbers import conjugated
from ..values.array import TracedArray, from_value
from ..values.handlers import FUNCTIONS, Entry, array_method, entry
from ..values.operations import operation
from ..values.trace import Trace
from . import functions, histograms, moments, more_functions, reductions, rolls, scans, splitting
from .accumulation import element


def _as_method_gives(x: Any, result: Any) -> Any:
    """A method's result of ``x`` that computed ``result``: scalars have no arrays of rank 0."""
    if type(x) is TracedArray and not x.is_array and type(result) is TracedArray and (
            result.is_array and not result.ndim):
        return result[()]
    return result


@operation
def call_function(trace: Trace, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """``__array_function__`` of traced operands."""
    module = (getattr(func, "__module__", None) or "numpy").replace("numpy", "np")
    name = f"{module}.{func.__name__}"
    row = FUNCTIONS.get(func)
    if row is None:
        return numpys_answer(trace, name, func, args, kwargs)
    result = guarded(trace, name, row.handler, func, args, kwargs, (trace,))
    return _as_method_gives(args[0], result) if args and row.of_scalars else result


@operation
def call_method(x: TracedArray, name: str, row: Entry, args: Any, kwargs: Any) -> Any:
    """A method, whose failures are reported in NumPy's words."""
    def plain(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    plain.method = name  # type: ignore[attr-defined]
    if "correction" in kwargs:  # which only the functions take
        raise x.trace.error(TypeError(
            f"_{name}() got an unexpected keyword argument 'correction'"))
    owner = "ndarray" if x.is_array else x.kind_name.replace("numpy.", "np.")
    result = guarded(x.trace, f"{owner}.{name}", row.handler, plain, (x, *args), kwargs,
                     () if row.of_array else (x.trace,))
    return _as_method_gives(x, result) if row.of_scalars else result


@array_method("reshape")
def _reshape(self: TracedArray, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    sizes = shape[0] if len(shape) == 1 else shape
    return shaping.reshape(self.trace, self, sizes, order, copy=copy)


@array_method("transpose")
def _transpose(self: TracedArray, *axes: Any) -> Any:
    single = len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list, np.ndarray)))
    order = axes[0] if single else axes
    return shaping.transpose(self.trace, self, order or None)


@array_method("copy")
def _copy(self: TracedArray, order: str = "C") -> TracedArray:
    return shaping.copy_of(self, order) if self.is_array else self


entry(method="astype")(creation.astype)


@array_method("fill")
def _fill(self: TracedArray, value: Any) -> None:
    value = none_in(self) if value is None else value
    if as_traced(self.trace, value).ndim:
        value = from_value(self.trace, element(self.trace, value, self.dtype))
    if self.is_array:  # of a scalar it changes nothing
        self[...] = value


@array_method("flatten")
def _flatten(self: TracedArray, order: str = "C") -> TracedArray:
    return shaping.copy_of(shaping.ravel(self.trace, self, order))


@entry(method="clip", of_scalars=True)
def _clip(
    trace: Trace, x: TracedArray, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    return functions.clip(trace, x, min, max, out, **kwargs)


@array_method("conj", "conjugate")
def _conjugate(self: TracedArray) -> Any:
    return conjugated(self) if self.dtype.kind == "c" else self.real


# Modules that are imported for the entries in them.
ENTRIES = (
    functions, histograms, more_functions, moments, reductions, rolls, scans, sliding_windows,
    splitting)
