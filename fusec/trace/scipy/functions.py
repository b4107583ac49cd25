"""Functions of SciPy on traced values: library calls, and a few that are traced.

SciPy is never imported here.  Its functions get their handlers when the modules they are from have
been imported by someone else: see `register_imported`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from fusec.core.records import replace
from fusec.errors import unsupported
from fusec.ops.calls.library import LIBRARY, run_call
from fusec.ops.calls.named_functions import LIBRARY_CALLS

from ..arrays.creation import filled
from ..convert.call_table import CallTable
from ..facts.constant_values import constant_value
from ..facts.static_values import attributes_in
from ..library.arguments import Encoder
from ..library.asked_sizes import Asked, OperandLayout, Told, told
from ..library.calls import finish
from ..library.failures import guarded
from ..library.short_axes import AS_THEY_ARE, Lengths
from ..library.stand_ins import operand_of, stand_in, timed
from ..values.array import TracedArray
from ..values.handlers import when_traced
from ..values.trace import Trace
from . import log_sums

# Functions with an array to write to, which the call would change unseen.
_TARGETS = ("output", "out", "distances", "indices")


def call_scipy(trace: Trace, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The results of ``scipy.<name>`` on traced arguments; ``name`` is ``linalg.solve``.

    Floats may vary at run time; whole numbers decide shapes and must be known while tracing.
    ``overwrite_…=True`` permits SciPy to destroy an argument; nothing is destroyed here.
    """
    full = f"scipy.{name}"
    kwargs = {k: v for k, v in kwargs.items() if not k.startswith("overwrite_")}
    _refuse_targets(trace, full, kwargs)
    encoder = Encoder(trace, full)
    form = ("tuple", name, *[encoder.encode(a, _is_float(a)) for a in args])
    named = ("tuple", *[("tuple", k, encoder.encode(v, _is_float(v))) for k, v in kwargs.items()])
    with timed(trace, full):
        answer, asked, known = _ask(trace, encoder.operands, form, named)
        return finish(
            trace, "Scipy", full, encoder.operands, form, named, answer, (asked, known))


def _is_float(x: Any) -> bool:
    return type(x) is TracedArray and x.dtype.kind == "f"


def _refuse_targets(trace: Trace, full: str, kwargs: dict[str, Any]) -> None:
    for name in _TARGETS:
        if isinstance(kwargs.get(name), (TracedArray, np.ndarray)):
            raise unsupported(f"{name}= of {full}", loc=trace.loc,
                              cure="assign the result: x[...] = …")


# -------------------------------------------------------------------------------- asking SciPy


def _ask(
    trace: Trace, operands: Sequence[TracedArray], form: Any, named: Any
) -> tuple[Told, Asked, list[OperandLayout]]:
    """SciPy's answer on stand-ins, and the question; raises SciPy's exceptions, at the user's line.

    A matrix may be singular to one function and the bands of a regular one to another, so several
    kinds of values are tried.
    """
    first: Exception | None = None
    known = [replace(operand_of(x), contents=constant_value(x.value)) for x in operands]
    given = [n for x in known if x.contents is not None for n in np.shape(x.contents)]
    for fill in _FILLS:
        asked = Asked(_answer, partial(_filled, fill), (form, named), given)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return told(asked, known), asked, known
        except ValueError as error:  # LinAlgError is one: other values may do
            first = first or error
        except Exception as error:
            raise _users(trace, error, operands) from None
    assert first is not None
    raise _users(trace, first, operands)


def _answer(stand_ins: Sequence[Any], arguments: Any) -> Any:
    return run_call(LIBRARY["Scipy"], stand_ins, *arguments)


def _users(trace: Trace, error: Exception, operands: Sequence[TracedArray]) -> Exception:
    return trace.error(error, [x.value for x in operands],
                       [f"operand {i}" for i in range(len(operands))])


def _filled(
    fill: Callable[[np.ndarray], None], x: OperandLayout, lengths: Lengths = AS_THEY_ARE,
) -> Any:
    """A constant itself; else an array of the same layout with values of one kind."""
    if x.contents is not None:
        return x.contents
    array = stand_in(x, "", lengths=lengths)
    if type(array) is np.ndarray and array.size and (
            array.dtype.kind in "fc" or array.ndim > 1):  # a row of integers may be indices
        fill(array)
    return array


def _matrices(a: np.ndarray) -> None:
    """Identity matrices; vectors of ones."""
    a[...] = np.eye(*a.shape[-2:]) if a.ndim > 1 else 1


def _bands(row: int) -> Callable[[np.ndarray], None]:
    """The bands of a diagonal matrix, whose diagonal is this row; the first column of one."""
    def fill(a: np.ndarray) -> None:
        a[...] = 0
        if a.ndim > 1:
            a[..., row if row < a.shape[-2] else 0, :] = 1
        else:
            a[:1] = 1

    return fill


def _ones(a: np.ndarray) -> None:
    a[...] = 1


# Tried in this order: matrices; bands of symmetric ones, stored below and above; bands with some
# rows above; what must not be zero.
_FILLS: tuple[Callable[[np.ndarray], None], ...] = (
    _matrices, *map(_bands, (0, -1, 1, 2, 3, 4)), _ones,
)


# ------------------------------------------------------------------------------ registration


def _cho_factor(trace: Trace, a: Any, lower: bool = False, overwrite_a: bool = False,
                check_finite: bool = True) -> Any:
    """The factor, with the flag that says which half of it counts: that is known while tracing.

    SciPy decides its type, which in newer ones is an array.
    """
    from scipy import linalg

    factor, _ = call_scipy(trace, "linalg.cho_factor", (a, bool(lower)),
                           {"check_finite": check_finite})
    stack = factor.shape[:-2]
    shown = linalg.cho_factor(np.broadcast_to(np.eye(1), (*stack, 1, 1)), bool(lower))[1]
    is_array = isinstance(shown, np.ndarray)
    return factor, filled(trace, shown.shape, bool(lower), shown.dtype) if is_array else shown


def is_pythons(fn: Any) -> bool:
    """Whether it is a function of SciPy's that is written in Python."""
    return type(fn) is FunctionType and str(
        fn.__globals__.get("__name__") or "").partition(".")[0] == "scipy"


def is_method_of_traced(fn: Any) -> bool:
    """Whether it is such a method, of an object that holds a traced value."""
    return type(fn) is MethodType and is_pythons(fn.__func__) and any(
        type(value) is TracedArray for _, value in attributes_in(fn.__self__))


TRACED: dict[str, Callable[..., Any]] = {
    "linalg.cho_factor": _cho_factor,
    "special.logsumexp": log_sums.logsumexp,
    "special.softmax": log_sums.softmax,
    "special.log_softmax": log_sums.log_softmax,
}
_registered: set[str] = set()


def register_imported(table: CallTable) -> None:
    """Adds the functions of SciPy's modules that have been imported since the last time."""
    for module, names in LIBRARY_CALLS.items():
        _register_module(table, module, names.split())
    _register_module(table, "special", [])


def _register_module(table: CallTable, module: str, names: Sequence[str]) -> None:
    loaded = sys.modules.get(f"scipy.{module}")
    if loaded is None or module in _registered:
        return
    _registered.add(module)
    for name in names:
        if hasattr(loaded, name):
            full = f"{module}.{name}"
            _register(table, full, getattr(loaded, name), partial(_call, full))
    for full, function in TRACED.items():
        if full.rpartition(".")[0] == module:
            _register(table, full, getattr(loaded, full.rpartition(".")[2]), function)


def _call(full: str, trace: Trace, /, *args: Any, **kwargs: Any) -> Any:
    return call_scipy(trace, full, args, kwargs)


def _register(table: CallTable, full: str, plain: Any, function: Callable[..., Any]) -> None:
    @when_traced(table, plain)
    def handler(hooks: Any, *args: Any, **kwargs: Any) -> Any:
        return guarded(hooks.trace, f"scipy.{full}", function, plain, args, kwargs, (hooks.trace,))
