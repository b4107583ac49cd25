"""Operands of Python's operators: repeated lists, texts, and what is compared part by part."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.code_roles import ON_BEHALF
from fusec.errors import unsupported

from ..choice.flat_results import identity
from ..convert.operators import BINARY
from ..facts.constant_values import constant_value
from ..guards.array_values import guard_identity
from ..operands.python_numbers import BOOL, weak
from ..rewrite.transformer import Where
from ..values.array import TracedArray, number
from .control import ControlHooks

FUSEC_ROLE = ON_BEHALF

WORDS = (str, bytes)
_SMALL_SETS = (tuple, list, set, frozenset)
_MOST_ALTERNATIVES = 64


def as_repeated(op: str, a: Any, b: Any) -> tuple[Any, Any]:
    """``[0.0] * n``: an integer scalar of NumPy's repeats a list, as a Python int does."""
    if op == "mul" and type(a) in (list, tuple) and _is_integer_scalar(b):
        return a, operator.index(b)
    if op == "mul" and type(b) in (list, tuple) and _is_integer_scalar(a):
        return operator.index(a), b
    return a, b


def _is_integer_scalar(x: Any) -> bool:
    return type(x) is TracedArray and not x.is_array and x.dtype.kind in "iu"


def holds_open(*values: Any) -> bool:
    """Whether numbers that only the run knows lie in tuples or lists."""
    return any(
        (type(x) is TracedArray and not x.ndim and constant_value(x.value) is None)
        or (type(x) in (tuple, list) and holds_open(*x))
        for value in values if type(value) in (tuple, list) for x in value)


def check_words(hooks: ControlHooks, where: Where, op: str, a: Any, b: Any) -> None:
    """An array and a text: what NumPy says of them, where it has nothing else to say."""
    hooks.where = where
    if type(b) is TracedArray and not isinstance(a, TracedArray) and op == "mod":
        return  # formatted
    if TracedArray not in (type(a), type(b)):
        return
    found = [_like(x) if type(x) is TracedArray else x for x in (a, b)]
    try:
        BINARY[op](*found)
    except TypeError as error:
        raise hooks.trace.error(error, [
            x.value for x in (a, b) if type(x) is TracedArray]) from None


def equal_items(hooks: ControlHooks, where: Where, a: Any, b: Any) -> Any:
    """Whether two tuples or lists are equal, item by item as far as Python would go."""
    if len(a) != len(b):
        return False
    found: Any = True
    for one, other in zip(a, b, strict=True):
        if one is not other:
            found = hooks.and_(where, "test", found, _equality(hooks, where, one, other))
    decided = hooks.decide(found)
    return decided if decided is not None else number(
        hooks.trace, weak(hooks.trace, hooks.truth(found), BOOL))


def _equality(hooks: ControlHooks, where: Where, item: Any, other: Any) -> Callable[[], Any]:
    return lambda: hooks.compare(where, "eq", item, other)


def is_one_of(hooks: ControlHooks, where: Where, item: Any, container: Any) -> Any:
    """``item in (a, b)``: each is compared, as far as Python would go."""
    found: Any = False
    for other in container:
        found = hooks.or_(where, "test", found, _equality(hooks, where, item, other))
    decided = hooks.decide(found)
    return decided if decided is not None else number(
        hooks.trace, weak(hooks.trace, hooks.truth(found), BOOL))


def _like(x: TracedArray) -> Any:
    """An array or number of this type."""
    one = np.ones((1,) * x.ndim, x.dtype)
    if x.is_array:
        return one
    return one.item() if x.type.is_weak else one[()]


def identity_of(hooks: ControlHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """``a is b`` and ``a is not b`` of what the trace knows more of; else NotImplemented."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        for x in (a, b):
            if type(x) is not TracedArray:
                guard_identity(hooks.trace, x)
    if TracedArray in (type(a), type(b)):
        same = identity(hooks.trace, a, b)
        if same is not None:
            hooks.where = where
            return same if op == "is" else hooks.not_(where, same)
    if a is not b and a is not None and b is not None and (
            id(a) in hooks.trace.local.chosen or id(b) in hooks.trace.local.chosen):
        raise unsupported(f"{op!r} of a {type(a).__name__} that data chooses", loc=hooks.loc,
                          cure="compare what the branches depend on")
    return NotImplemented


def is_small_set(container: Any) -> bool:
    """Whether `is_one_of` may compare each of its items."""
    return type(container) in _SMALL_SETS and len(container) <= _MOST_ALTERNATIVES
