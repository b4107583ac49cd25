"""The arguments of library calls, written down as plain data with the traced ones as operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import unsupported
from fusec.ops.calls.library import LibraryCall

from ..facts.constant_values import is_constant
from ..facts.this_numpy import signature_of
from ..facts.trees import leaves_in
from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.operations import OPERATIONS
from ..values.trace import Trace


def has_open_numbers(x: Any) -> bool:
    """Whether numbers of the graph lie in lists or tuples, or it is one."""
    return any(type(item) is TracedArray and not item.is_array
               and not is_constant(item.value) for item in leaves_in(x))


@dataclass
class Encoder:
    """Turns arguments into forms; ``operands`` collects the traced ones."""

    trace: Trace
    name: str
    operands: list[TracedArray] = field(default_factory=list)

    def encode(self, x: Any, varies: bool) -> Any:
        """The form of an argument; ``varies``: it may be a number known only at run time."""
        if type(x) is TracedArray and not x.is_array and not varies:
            return self._literal(self._decided(x))
        if type(x) is range:
            x = np.asarray(x)
        if type(x) is list and not varies and has_open_numbers(x):
            # Numbers of the graph in a list are elements of an array.
            x = OPERATIONS.array(self.trace, x)
        if type(x) in (TracedArray, np.ndarray):
            self.operands.append(as_traced(self.trace, x))
            return ("operand", len(self.operands) - 1)
        if type(x) in (tuple, list):
            return (type(x).__name__, *[self.encode(item, varies) for item in x])
        if type(x) is slice:
            return ("slice", *[self.encode(p, False) for p in (x.start, x.stop, x.step)])
        return ("ellipsis",) if x is Ellipsis else self._literal(x)

    def _decided(self, x: TracedArray) -> Any:
        return x.concrete("a number that decides what is computed",
                          "pass it as a static argument, or as a plain number in the function")

    def _literal(self, x: Any) -> Any:
        if isinstance(x, str):
            return str.__str__(x)  # of a class of its own it has no text form
        if x is None or isinstance(x, (bool, int, float, complex, np.bool_, np.number)):
            return x
        if isinstance(x, (np.dtype, type)):
            return np.dtype(x)
        raise unsupported(f"an argument of type {type(x).__name__} of {self.name}",
                          loc=self.trace.loc)


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of positional parameters; a variadic one's name stands at the end."""
    try:
        params = signature_of(function).parameters.values()
    except ValueError:  # its arguments are given by position
        return ["a", "kth", "kind", "order"]
    return [p.name for p in params if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]


@functools.cache
def _takes_out(function: Callable[..., Any]) -> bool:
    """Whether it has a parameter ``out``, or says nothing about its parameters."""
    try:
        parameters = signature_of(function).parameters.values()
    except ValueError:
        return True
    return any(p.name == "out" or p.kind is p.VAR_KEYWORD for p in parameters)


def name_at(names: list[str], position: int) -> str:
    return names[min(position, len(names) - 1)]


def without_out(
    trace: Trace, call: LibraryCall, names: list[str], args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any], Any]:
    """The call without ``out``, and that."""
    if "out" in kwargs and not _takes_out(call.function):
        return args, kwargs, None  # NumPy says so when it is asked
    out = kwargs.pop("out", None)
    place = names.index("out") if "out" in names else len(args)
    if place < len(args):
        out = args.pop(place)
        kwargs.update(zip(names[place + 1:], args[place:], strict=False))
        del args[place:]
    out = out[0] if isinstance(out, tuple) else out
    if out is not None and call.function.__module__ == "numpy.fft" and _ignores_out(call.function):
        out = None
    return args, kwargs, None if out is None else as_traced(trace, out)


@functools.cache
def _ignores_out(function: Callable[..., Any]) -> bool:
    """Whether it is one of NumPy's two-dimensional transforms that pass ``out=None`` on."""
    x = np.ones((2, 2))
    out = np.zeros_like(function(x))
    return function(x, out=out) is not out
