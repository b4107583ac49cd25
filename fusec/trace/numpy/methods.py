"""Methods of ndarray (and of NumPy scalars) on traced values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import creation, shaping
from ..arrays.array_attributes import array_namespace, to_device
from ..index import reinterpret
from ..index.gathers import GATHER_METHODS
from ..library.entries import LIBRARY_METHODS
from ..library.failures import guarded
from ..operands.operands import as_traced
from ..operands.scalar_stores import none_in
from ..ufuncs.complex_numbers import conjugated
from ..values.array import TracedArray, from_value
from ..values.operations import OPERATIONS
from .accumulation import element
from .functions import BY_METHOD, as_method_gives, clip, dot, round_
from .more_functions import MORE_METHODS
from .reductions import REDUCTIONS
from .scans import SCAN_METHODS
from .table_search import searchsorted


def _method(handler: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A function's handler as a method."""
    @functools.wraps(handler)
    def method(self: TracedArray, /, *args: Any, **kwargs: Any) -> Any:
        if "correction" in kwargs:  # which only the functions take
            raise self.trace.error(TypeError(
                f"_{name}() got an unexpected keyword argument 'correction'"))
        return handler(self.trace, self, *args, **kwargs)

    method.__signature__ = _without_first(handler)  # type: ignore[attr-defined]
    return method


def _without_first(handler: Callable[..., Any]) -> inspect.Signature:
    """The handler's signature less the trace."""
    signature = inspect.signature(handler)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _guarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose failures are reported in NumPy's words."""
    def call(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        def plain(x: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(x, name)(*args, **kwargs)

        plain.method = name  # type: ignore[attr-defined]
        owner = "ndarray" if self.is_array else self.kind_name.replace("numpy.", "np.")
        result = guarded(self.trace, f"{owner}.{name}", method, plain, (self, *args), kwargs)
        return as_method_gives(self, result) if name in _SCALAR_METHODS else result

    call.__name__ = name
    return call


def _reshape(self: TracedArray, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    sizes = shape[0] if len(shape) == 1 else shape
    return shaping.reshape(self.trace, self, sizes, order, copy=copy)


def _transpose(self: TracedArray, *axes: Any) -> Any:
    single = len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list, np.ndarray)))
    order = axes[0] if single else axes
    return shaping.transpose(self.trace, self, order or None)


def _copy(self: TracedArray, order: str = "C") -> TracedArray:
    return shaping.copy_of(self, order) if self.is_array else self


def _astype(
    self: TracedArray, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
    copy: bool = True,
) -> TracedArray:
    return creation.astype(self.trace, self, dtype, order, casting, subok, copy)


def _fill(self: TracedArray, value: Any) -> None:
    value = none_in(self) if value is None else value
    if as_traced(self.trace, value).ndim:
        value = from_value(self.trace, element(self.trace, value, self.dtype))
    if self.is_array:  # of a scalar it changes nothing
        self[...] = value


def _flatten(self: TracedArray, order: str = "C") -> TracedArray:
    return shaping.copy_of(shaping.ravel(self.trace, self, order))


def _clip(
    self: TracedArray, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    return clip(self.trace, self, min, max, out, **kwargs)


def _conjugate(self: TracedArray) -> Any:
    return conjugated(self) if self.dtype.kind == "c" else self.real


_METHODS: dict[str, Callable[..., Any]] = {
    **LIBRARY_METHODS,
    **GATHER_METHODS,
    "searchsorted": _method(searchsorted),
    **SCAN_METHODS,
    **{name: _method(handler) for name, handler in MORE_METHODS.items()},
    **{name: _method(handler, name) for name, handler in REDUCTIONS.items() if name != "ptp"},
    "reshape": _reshape, "transpose": _transpose, "copy": _copy, "astype": _astype,
    "fill": _fill, "flatten": _flatten, "ravel": _method(shaping.ravel),
    "squeeze": _method(shaping.squeeze), "swapaxes": _method(shaping.swapaxes),
    "clip": _clip, "dot": _method(dot), "round": _method(round_),
    "item": reinterpret.item, "tolist": reinterpret.tolist, "view": reinterpret.view,
    "conj": _conjugate, "conjugate": _conjugate, "to_device": to_device,
    "__array_namespace__": array_namespace,
}
_SCALAR_METHODS = {function.__name__ for function in BY_METHOD}
METHODS = {name: _guarded(name, method) for name, method in _METHODS.items()}
OPERATIONS.methods.update(METHODS)
