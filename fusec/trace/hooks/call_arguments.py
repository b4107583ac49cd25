"""Arguments as the functions of NumPy, SciPy and Python that are called get them."""

from __future__ import annotations

import copy
from collections import deque
from types import FunctionType
from typing import Any

import numpy as np

from fusec.core.code_roles import ON_BEHALF
from fusec.state.variable import WRITERS, Variable

from ..guards.measures import ATOMS
from ..guards.plain_calls import goes_over, takes_at_once, takes_values
from ..library.randomness import TracedGenerator
from ..objects.tracing_hooks import Args, Named, TracingHooks
from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.handlers import FUNCTIONS, any_traced
from ..values.own_arrays import WRITING_METHODS

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


def with_values(hooks: TracingHooks, fn: Any, args: Args, kwargs: Named) -> tuple[Args, Named]:
    """The arguments as traced values where the function takes these; Python takes the values of
    those that it looks at.

    Containers keep which arrays they are where ``fn`` may change them."""
    owner, makes_arrays = type(getattr(fn, "__self__", None)), is_numeric(fn)
    lifted = hooks.lifted
    if not makes_arrays and hooks.table.find(fn) is None:
        if takes_values(fn):
            lifted = hooks.traced_if_outside
        elif owner not in (TracedArray, TracedGenerator):
            if issubclass(owner, ATOMS) or (owner in _INDEXED and fn.__name__ in _BY_VALUE):
                hooks.took(*args)
            return args, kwargs
    if goes_over(fn):
        lifted = hooks.lifted_items
    args = tuple(map(lifted, args))
    if makes_arrays or takes_at_once(fn):
        args = tuple(list(x) if type(x) is deque else x for x in args)
    return args, {name: lifted(value) for name, value in kwargs.items()}


def with_written_traced(
    hooks: TracingHooks, fn: Any, args: Args, kwargs: Named
) -> tuple[Any, Args, Named]:
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
    if is_writer and isinstance(args[0], Variable):
        raise args[0].in_place(f"np.{fn.__name__}")
    if is_writer and type(args[0]) is np.ndarray and (
            own.must_trace(args[0]) or any_traced(args, kwargs)):
        args = (as_traced(hooks.trace, args[0]), *args[1:])
    if own.must_trace(kwargs.get("out")):
        kwargs = {**kwargs, "out": as_traced(hooks.trace, kwargs["out"])}
    return fn, args, kwargs


def is_unseen_by_numpy(hooks: TracingHooks, fn: Any, args: Args, kwargs: Named) -> bool:
    """Whether NumPy's own dispatch would miss the traced values: in lists, or as arguments
    such as the counts of ``np.repeat``."""
    if not hooks.trace.active or not isinstance(fn, _DISPATCHED) or fn not in FUNCTIONS or (
            hooks.table.find(fn) is not None):
        return False
    first = next(iter(args), None)
    return type(first) is not TracedArray and any_traced(args, kwargs)
