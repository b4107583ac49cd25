"""A registry of operations on traced values: modules of rooms above register their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from fusec.errors import InternalError

Function = TypeVar("Function", bound=Callable[..., Any])


def _unregistered(*args: Any, **kwargs: Any) -> NoReturn:
    raise InternalError("an operation on traced values whose module was not imported")


class Operations:
    """Functions that arrays, operands and the trace call, by name; they have the docstrings."""

    # Of arrays and numbers: NumPy's protocols, operators, items and attributes.
    call_ufunc: Callable[..., Any]
    call_function: Callable[..., Any]
    call_method: Callable[..., Any]
    getitem: Callable[..., Any]
    setitem: Callable[..., None]
    value_of: Callable[..., Any]
    zero_imag: Callable[..., Any]
    ravel: Callable[..., Any]
    flags: Callable[..., Any]
    cure_for_use: Callable[..., str]
    methods: dict[str, Any]
    # Of operands: arrays from outside, and sequences.
    captured: Callable[..., Any]
    array_from_sequence: Callable[..., Any]
    array: Callable[..., Any]
    # Methods of ufuncs.
    reduce_by_ufunc: Callable[..., Any]
    accumulate: Callable[..., Any]
    call_special: Callable[..., Any]
    # A call of `np.vectorize`'s object.
    vectorized: Callable[..., Any]
    # A call of a function of `np.frompyfunc`.
    of_objects: Callable[..., Any]
    # A function of NumPy's, by its own Python source.
    run_source: Callable[..., Any]
    # A function of NumPy's, by name when the code runs.
    call_by_name: Callable[..., Any]
    # Of the trace: what has been assigned where it may raise.
    note_state: Callable[..., None]
    state_now: Callable[..., Any]


_NAMES = frozenset(Operations.__annotations__)
OPERATIONS = Operations()
OPERATIONS.methods = {}
for _name in _NAMES - {"methods"}:
    setattr(OPERATIONS, _name, _unregistered)


def missing() -> list[str]:
    """Operations that no module has registered."""
    return [name for name in sorted(_NAMES) if getattr(OPERATIONS, name) is _unregistered]


def operation(function: Function) -> Function:
    """Registers the function under its name."""
    assert function.__name__ in _NAMES
    setattr(OPERATIONS, function.__name__, function)
    return function


def traced_source(function: Any, assume: bool | None = None) -> Callable[..., Any]:
    """A handler that traces NumPy's own Python source of ``function``; see `numpy_source`."""
    def handler(trace: Any, *args: Any, **kwargs: Any) -> Any:
        return OPERATIONS.run_source(trace, function, assume, args, kwargs)

    handler.__name__ = function.__name__
    handler.__qualname__ = "traced_source"
    return handler
