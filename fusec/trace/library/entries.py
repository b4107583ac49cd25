"""NumPy's functions and methods that are called when the code runs, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.errors import UnsupportedError, unsupported
from fusec.ops.calls.library import LIBRARY

from ..operands.operands import as_traced
from ..values.handlers import entry
from ..values.trace import Trace
from .calls import call_library
from .failures import numpys_answer


def _handler(op: str) -> Callable[..., Any]:
    def handler(trace: Trace, /, *args: Any, **kwargs: Any) -> Any:
        return call_library(trace, op, args, kwargs)

    handler.__name__ = LIBRARY[op].function.__name__
    return handler


def _refused(function: Callable[..., Any], why: str, cure: str) -> Callable[..., Any]:
    """A handler that answers calls that no argument decides, and refuses all others."""
    module = (function.__module__ or "numpy").replace("numpy", "np")
    name = f"{module}.{function.__name__}"

    def handler(trace: Trace, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return numpys_answer(trace, name, function, args, kwargs)
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


for _op, _call in LIBRARY.items():
    if _call.is_public:
        entry(_call.function, is_library=True, of_scalars=_call.function is np.choose)(
            _handler(_op))
entry(np.poly, hooked="traced")(refused_for_complex(np.poly, _handler("Poly")))
entry(np.trim_zeros)(_refused(
    np.trim_zeros, "its result is a view of a size that depends on data",
    "find the ends with np.flatnonzero(x) and slice"))
for _function, _hooked in ((np.linalg.eig, ""), (np.linalg.eigvals, ""), (np.roots, "traced")):
    entry(_function, hooked=_hooked)(_refused(
        _function, "whether its result is complex depends on the data", "call it before or after "
        "the compiled function, or use eigh and eigvalsh"))
for _name, _op in {
    "sort": "SortInPlace", "partition": "PartitionInPlace", "argsort": "Argsort",
    "argpartition": "Argpartition", "put": "Put", "nonzero": "Nonzero",
}.items():
    entry(method=_name)(_handler(_op))


@entry(method="compress")
def _compress(trace: Trace, a: Any, /, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return call_library(trace, "Compress", (condition, a, axis), {"out": out})


@entry(method="choose", of_scalars=True)
def _choose(trace: Trace, a: Any, /, *choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """``x.choose(a, b)`` or ``x.choose([a, b])``."""
    given = choices[0] if len(choices) == 1 else list(choices)
    return call_library(trace, "Choose", (a, given), {"out": out, "mode": mode})
