"""Arguments as the functions of NumPy, SciPy and Python that are called get them."""

from __future__ import annotations

import copy
from collections import deque
from types import FunctionType
from typing import Any

import numpy as np

from fusec.code_roles import ON_BEHALF

from ..guards.measures import ATOMS
from ..guards.plain_calls import goes_over, takes_at_once
from ..guards.side_effects import check_unconsumed
from ..library.randomness import TracedGenerator
from ..objects.iteration import gone_over
from ..objects.object_reads import note_ordered
from ..operands.operands import as_traced
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.handlers import FUNCTIONS, any_traced
from ..values.own_arrays import WRITERS, WRITING_METHODS
from .attributes import AttributeHooks

FUSEC_ROLE = ON_BEHALF

_DISPATCHED = (FunctionType, type(np.argmax), type(np.concatenate))
_INDEXED = (list, tuple, deque, range)
_BY_VALUE = frozenset({"index", "count", "remove", "pop", "insert", "rotate"})
# Functions of Python that make arrays of arrays.
_OF_ARRAYS = frozenset({abs, divmod, round, pow, sum, copy.copy, copy.deepcopy})
_FUNCTIONS = (FunctionType, type(abs))


def is_numpys(fn: Any) -> bool:
    """Whether it is a function of NumPy or SciPy, or a method of an array."""
    owner = getattr(fn, "__self__", None)
    if isinstance(fn, np.ufunc) or type(owner) is np.ndarray or isinstance(
            owner, (np.generic, np.ufunc)):
        return True
    return home_of(fn) in ("numpy", "scipy")


def home_of(fn: Any) -> str:
    """The package that a function is from; SciPy's wrappers of LAPACK and BLAS name none."""
    home = getattr(fn, "__module__", None)
    if isinstance(home, str):
        return home.partition(".")[0]
    return "scipy" if type(fn).__name__ == "fortran" else ""


def is_numeric(fn: Any) -> bool:
    """Whether it is one of NumPy's, or one of Python's that makes arrays of arrays."""
    return is_numpys(fn) or (type(fn) in _FUNCTIONS and fn in _OF_ARRAYS)


def with_gone_over(
    hooks: AttributeHooks, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments of a function that goes over the items of some of them."""
    for taken in args:
        check_unconsumed(hooks.trace, taken, hooks.loc)
    if hooks.trace.active:
        args = gone_over(hooks, where, fn, args)
        note_ordered(hooks, fn, args, kwargs)
    return args


def with_lifted(
    hooks: AttributeHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
    makes_arrays: bool,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a function that takes traced values."""
    lifted = hooks.lifted_items if goes_over(fn) else hooks.lifted
    args = tuple(map(lifted, args))
    if makes_arrays or takes_at_once(fn):
        args = tuple(list(x) if type(x) is deque else x for x in args)
    return args, {name: lifted(value) for name, value in kwargs.items()}


def with_seen(
    hooks: AttributeHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of other calls: of methods of traced arrays, and of those that look at the
    values."""
    owner = type(getattr(fn, "__self__", None))
    if owner in (TracedArray, TracedGenerator):
        return with_lifted(hooks, fn, args, kwargs, False)
    if issubclass(owner, ATOMS) or (owner in _INDEXED and fn.__name__ in _BY_VALUE):
        hooks.took(*args)
    return args, kwargs


def with_values(
    hooks: AttributeHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments whose arrays from outside are traced; containers keep which they are where
    ``fn`` may change them."""
    lifted = hooks.lifted_items if goes_over(fn) else hooks.traced_if_outside
    return tuple(map(lifted, args)), {name: lifted(x) for name, x in kwargs.items()}


def with_written_traced(
    hooks: AttributeHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The call with an array made in the trace as a traced one where it is written.

    So is one whose method takes traced arguments, which NumPy's methods do not know.
    """
    own, owner = hooks.trace.local.memory, getattr(fn, "__self__", None)
    if type(owner) is np.ndarray and fn.__name__ in WRITING_METHODS:
        hooks.trace.local.changes += 1
    is_numpys_own = type(owner) is np.ndarray or issubclass(type(owner), np.generic)
    if is_numpys_own and (any_traced(args, kwargs) or (
            fn.__name__ in WRITING_METHODS and own.must_trace(owner)) or (
            hooks.is_from_outside(owner))):
        fn = getattr(as_traced(hooks.trace, owner), fn.__name__)
    is_writer = args and (is_numpys(fn) or isinstance(owner, np.ufunc)) and (
        getattr(fn, "__name__", "") in WRITERS)
    if is_writer and type(args[0]) is np.ndarray and (
            own.must_trace(args[0]) or any_traced(args, kwargs)):
        args = (as_traced(hooks.trace, args[0]), *args[1:])
    if own.must_trace(kwargs.get("out")):
        kwargs = {**kwargs, "out": as_traced(hooks.trace, kwargs["out"])}
    return fn, args, kwargs


def is_unseen_by_numpy(
    hooks: AttributeHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether NumPy's own dispatch would miss the traced values: in lists, or as arguments
    such as the counts of ``np.repeat``."""
    if not hooks.trace.active or not isinstance(fn, _DISPATCHED) or fn not in FUNCTIONS or (
            hooks.table.find(fn) is not None):
        return False
    first = next(iter(args), None)
    return type(first) is not TracedArray and any_traced(args, kwargs)
