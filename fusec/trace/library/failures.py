"""The cause of an exception that a handler of the trace met: the user's fault, or ours?

NumPy is asked: the same call on plain arrays of the same types.  Where NumPy raises, the user gets
NumPy's exception; where it does not, the call is one that fusec lacks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.core.code_roles import ON_BEHALF
from fusec.errors import FusecError, InternalError, UnsupportedError, unsupported
from fusec.ir.sizes.dims import UndecidedSizeError

from ..facts.constant_values import constant_value
from ..facts.layout import like_order
from ..facts.this_numpy import signature_of
from ..facts.trees import leaves_in
from ..values.array import TracedArray
from ..values.operations import OPERATIONS, operation
from ..values.trace import Trace

FUSEC_ROLE = ON_BEHALF

_USER = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)
_MOST_ELEMENTS = 1 << 20


def guarded(
    trace: Trace, name: str, handler: Callable[..., Any], plain: Callable[..., Any],
    args: Sequence[Any], kwargs: dict[str, Any], context: tuple[Any, ...] = (),
) -> Any:
    """``handler(*context, *args, **kwargs)``; an exception becomes the user's (see above).

    ``plain`` is NumPy's own function for the same arguments and ``name`` the user's name for it.
    """
    try:
        return handler(*context, *args, **kwargs)
    except UndecidedSizeError:
        return _by_numpy(trace, plain, args, kwargs)
    except (FusecError, InternalError) as error:
        if not isinstance(error, ValueError) or not _of_run_time_sizes((*args, *kwargs.values())):
            raise
        return _by_numpy_or(error, trace, plain, args, kwargs)
    except Exception as error:
        failure = explained(trace, name, handler, plain, args, kwargs, context, error)
        raise failure from failure.__cause__


def _by_numpy(
    trace: Trace, plain: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """NumPy itself, called at run time, where a handler needed a value that only the run has."""
    args, kwargs = _out_by_keyword(plain, list(args), kwargs)
    return OPERATIONS.call_by_name(trace, plain, args, kwargs)


def _by_numpy_or(
    error: FusecError, trace: Trace, plain: Callable[..., Any], args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """The same, where sizes that differ as expressions may be equal; ``error`` if none fit."""
    try:
        return _by_numpy(trace, plain, args, kwargs)
    except UnsupportedError as refusal:
        if refusal.__cause__ is None:  # they may be, but fusec cannot compile it
            raise
        raise error from None


def _of_run_time_sizes(args: Sequence[Any]) -> bool:
    return any(type(x) is TracedArray and not x.type.is_static for x in leaves_in(args))


def _out_by_keyword(
    plain: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The call with ``out``, which may have been given by position, as a keyword."""
    names = list(signature_of(plain).parameters)
    place = names.index("out") if "out" in names else len(args)
    named = dict(zip(names[place:], args[place:], strict=False))
    return args[:place], {**named, **kwargs}


_ON_RESULTS = {
    "save": "save", "savez": "save", "savez_compressed": "save", "savetxt": "save",
    "tofile": "save", "dump": "save", "dumps": "pickle", "tobytes": "take the bytes of",
    "array2string": "format", "array_repr": "format", "array_str": "format",
    "format_float_positional": "format", "format_float_scientific": "format",
}


@operation
def cure_for_use(name: str) -> str:
    """The cure for a call of a function that is not compiled."""
    verb = _ON_RESULTS.get(name.rpartition(".")[2])
    return f"{verb} the result after the call" if verb else (
        "call it before or after the compiled function")


def numpys_answer(
    trace: Trace, name: str, plain: Callable[..., Any], args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """A function without a handler: NumPy's own result when no argument of the call decides it.

    Raises `UnsupportedError` otherwise.
    """
    refusal = unsupported(name, loc=trace.loc, cure=cure_for_use(name))
    if isinstance(kwargs.get("out"), np.ndarray):  # what it writes would be lost
        raise refusal
    try:
        plain_args = [_known(a, refusal) for a in args]
        plain_kwargs = {k: _known(v, refusal) for k, v in kwargs.items()}
    except UnsupportedError:
        raise refusal from None
    result = plain(*plain_args, **plain_kwargs)
    if any(_shares(result, a) for a in (*plain_args, *plain_kwargs.values())):
        raise refusal  # a view of what may be written to later, or is the caller's
    if type(result) is np.ndarray:
        trace.local.memory.note(result)
        trace.local.arrays[id(result)] = result
    return result


def _private(x: TracedArray, constant: np.ndarray) -> np.ndarray:
    """A copy that lies in memory as ``x`` does: it may be written to where ``x`` may be."""
    axes = like_order(x.strides)
    copied = np.empty([constant.shape[d] for d in axes], constant.dtype).transpose(np.argsort(axes))
    copied[...] = constant
    copied.flags.writeable = x.is_writeable
    return copied


def _shares(result: Any, argument: Any) -> bool:
    return isinstance(result, np.ndarray) and isinstance(argument, np.ndarray) and (
        np.may_share_memory(result, argument))


def _known(x: Any, refusal: FusecError) -> Any:
    """The concrete value of an argument; raises ``refusal`` when there is none."""
    if type(x) is TracedArray:
        constant = constant_value(x.value)
        if constant is None:
            raise refusal
        return _private(x, constant) if type(constant) is np.ndarray else constant
    if type(x) in (tuple, list):
        return type(x)(_known(i, refusal) for i in x)
    return x


def explained(
    trace: Trace, name: str, handler: Callable[..., Any], plain: Callable[..., Any],
    args: Sequence[Any], kwargs: dict[str, Any], context: tuple[Any, ...], error: Exception,
) -> FusecError:
    """The exception to raise for ``error``."""
    operands = [x.value for x in (*args, *kwargs.values()) if type(x) is TracedArray]
    theirs = _numpys_error(plain, args, kwargs)
    if theirs is not None:
        return trace.error(theirs, operands)
    missing = _missing_argument(handler, context, args, kwargs)
    if missing:
        return unsupported(f"the argument {missing} of {name}", loc=trace.loc,
                           cure=f"leave {missing} out and write out what it does")
    if isinstance(error, _USER):
        return trace.error(error, operands)
    ours = InternalError(f"{name} failed while it was traced: {type(error).__name__}: {error}",
                         loc=trace.loc)
    ours.__cause__ = error
    return ours


def _missing_argument(
    handler: Callable[..., Any], context: tuple[Any, ...], args: Sequence[Any],
    kwargs: dict[str, Any],
) -> str:
    """The keyword that a handler does not take; empty when it takes them all."""
    try:
        parameters = inspect.signature(handler).parameters
    except (TypeError, ValueError):  # handlers without a signature take what they are given
        return ""
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return ""
    unknown = [k for k in kwargs if k not in parameters]
    most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values())
    if unknown:
        return f"{unknown[0]}="
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if len(context) + len(args) > most and not takes_any:
        return f"number {most - len(context) + 1}"
    return ""


def _numpys_error(
    plain: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Exception | None:
    """NumPy's error for such arguments; None when it does not, or they are too large to try."""
    budget = [_MOST_ELEMENTS]
    try:
        stand_ins = [_stand_in(a, budget) for a in args]
        named = {k: _stand_in(v, budget) for k, v in kwargs.items()}
    except MemoryError:
        return None
    try:
        with np.errstate(all="ignore"):
            plain(*stand_ins, **named)
    except FusecError:
        return None
    except Exception as error:
        return error
    return None


def _stand_in(x: Any, budget: list[int]) -> Any:
    """A plain value of the same type; ``MemoryError`` when all together would be large."""
    if type(x) is TracedArray:
        budget[0] -= x.size
        if budget[0] < 0:
            raise MemoryError
        type_ = x.type
        array = np.ones(type_.shape, type_.dtype)
        return array if type_.kind == "array" else array.item() if type_.is_weak else array[()]
    if isinstance(x, np.ndarray):  # a copy: the call may write to it
        budget[0] -= x.size
        if budget[0] < 0:
            raise MemoryError
        return x.copy()
    if type(x) in (tuple, list):
        return type(x)(_stand_in(i, budget) for i in x)
    return x
