"""NumPy's functions and methods that are called when the code runs, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.errors import UnsupportedError, unsupported
from fusec.ops.library import LIBRARY

from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.trace import Trace
from .calls import call_library
from .failures import on_known


def _handler(op: str) -> Callable[..., Any]:
    def handler(trace: Trace, /, *args: Any, **kwargs: Any) -> Any:
        return call_library(trace, op, args, kwargs)

    handler.__name__ = LIBRARY[op].function.__name__
    return handler


_REAL_OR_COMPLEX: tuple[Callable[..., Any], ...] = (
    np.linalg.eig, np.linalg.eigvals, np.roots,
)


def _refused(function: Callable[..., Any], why: str, cure: str) -> Callable[..., Any]:
    """A handler that answers calls that no argument decides, and refuses all others."""
    module = (function.__module__ or "numpy").replace("numpy", "np")
    name = f"{module}.{function.__name__}"

    def handler(trace: Trace, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return on_known(trace, name, function, args, kwargs)
        except UnsupportedError:
            raise unsupported(name, loc=trace.loc, cure=cure, notes=(why,)) from None

    handler.__name__ = function.__name__
    return handler


def refused_for_complex(
    function: Callable[..., Any], handler: Callable[..., Any]
) -> Callable[..., Any]:
    """The handler, where the first argument is not complex."""
    refused = _refused(function, "whether its result is complex depends on the data",
                       "call it after the compiled function")

    def choose(trace: Trace, /, *args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else next(iter(kwargs.values()))
        is_complex = as_traced(trace, first).dtype.kind == "c"
        return (refused if is_complex else handler)(trace, *args, **kwargs)

    choose.__name__ = function.__name__
    return choose


LIBRARY_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **{call.function: _handler(op) for op, call in LIBRARY.items() if call.is_public},
    np.poly: refused_for_complex(np.poly, _handler("Poly")),
    np.trim_zeros: _refused(np.trim_zeros, "its result is a view of a size that depends on data",
                            "find the ends with np.flatnonzero(x) and slice"),
    **{f: _refused(f, "whether its result is complex depends on the data", "call it before or "
                   "after the compiled function, or use eigh and eigvalsh")
       for f in _REAL_OR_COMPLEX},
}


def _method(op: str) -> Callable[..., Any]:
    def method(self: TracedArray, /, *args: Any, **kwargs: Any) -> Any:
        return call_library(self.trace, op, (self, *args), kwargs)

    return method


def _compress(
    self: TracedArray, /, condition: Any, axis: Any = None, out: Any = None
) -> Any:
    return call_library(self.trace, "Compress", (condition, self, axis), {"out": out})


def _choose(self: TracedArray, /, *choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """``x.choose(a, b)`` or ``x.choose([a, b])``."""
    given = choices[0] if len(choices) == 1 else list(choices)
    return call_library(self.trace, "Choose", (self, given), {"out": out, "mode": mode})


LIBRARY_METHODS: dict[str, Callable[..., Any]] = {
    "sort": _method("SortInPlace"), "partition": _method("PartitionInPlace"),
    "argsort": _method("Argsort"), "argpartition": _method("Argpartition"),
    "put": _method("Put"),
    "choose": _choose,
    "nonzero": _method("Nonzero"), "compress": _compress,
}
