"""Callables that are run as they are, and take the values of their arguments.

An array from outside is lifted for them: they see a traced array, whose values they get from the
graph or not at all, and never the values of the call that is traced.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from ..facts.code_names import HEAP_TYPE
from ..facts.policy import stays_plain

# These look at what an object is, not at its values.
LOOKING = frozenset({
    isinstance, issubclass, callable, id, type, len, hasattr, getattr, setattr, delattr, vars, dir,
    super, property, staticmethod, classmethod, object,
    *(f for name, f in vars(inspect).items()
      if name.startswith("is") and type(f) is FunctionType)})
_ITERTOOLS = frozenset(f for f in vars(itertools).values() if isinstance(f, type))
# They take the items of what they are given; of containers these are lifted, too: none changes one.
_GOING_OVER = _ITERTOOLS | {
    list, tuple, set, frozenset, dict, sorted, sum, max, min, any, all, zip, enumerate, map, filter,
    iter, reversed, functools.reduce}


def takes_values(fn: Any) -> bool:
    """Whether ``fn`` is not converted, and computes with its arguments (``takes_variables``: of
    Variables it needs which they are)."""
    kind = type(fn)
    if kind is type:
        is_pythons = not fn.__flags__ & HEAP_TYPE or fn in _ITERTOOLS
        return is_pythons and fn not in LOOKING and not issubclass(fn, BaseException) and (
            fn.__module__ != "weakref")
    if kind is BuiltinFunctionType:
        return fn not in LOOKING and isinstance(fn.__self__, (ModuleType, str, bytes, type(None)))
    return kind is FunctionType and fn not in LOOKING and stays_plain(fn) and not hasattr(
        fn, "takes_variables")


def goes_over(fn: Any) -> bool:
    """Whether it takes the items of containers and iterators, and changes no container."""
    return type(fn) in (type, BuiltinFunctionType) and fn in _GOING_OVER


def takes_at_once(fn: Any) -> bool:
    """Whether it is one of these, and no iterator."""
    return goes_over(fn) and fn in (sorted, sum, max, min, any, all)
