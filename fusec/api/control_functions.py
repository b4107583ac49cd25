"""Control flow as functions: `cond`, `switch`, `while_loop`, `fori_loop`, `scan` and `map`.

Each is written in plain Python, which fusec converts like a program's own: in a compiled function
they are the branches and loops that ``if``, ``while`` and ``for`` would be, and outside of one they
run as they stand.  Names and argument order are those of JAX and TensorFlow.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from fusec.core.code_roles import CONVERTED

FUSEC_ROLE = CONVERTED
T = TypeVar("T")


def cond(
    pred: Any, true_fn: Callable[..., T], false_fn: Callable[..., T], *operands: Any
) -> T:
    """``true_fn(*operands)`` if ``pred``, else ``false_fn(*operands)``; only that one runs.

    ``pred`` is a number, or an array of one element.  Raises ``ValueError``, as
    Python does, for the truth of other arrays.
    """
    if pred:
        return true_fn(*operands)
    return false_fn(*operands)


def switch(index: Any, branches: Sequence[Callable[..., T]], *operands: Any) -> T:
    """``branches[index](*operands)``; only that one runs.

    Raises ``IndexError`` for an index that no branch has.  Negative ones count from the end, as a
    list's do.
    """
    count = len(branches)
    if index < -count or index >= count:
        raise IndexError("switch: the index is out of range")
    for position in range(count):
        if index == position or index == position - count:
            return branches[position](*operands)
    raise TypeError("switch: the index is no integer")


def while_loop(
    cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T
) -> T:
    """``init_val`` after as many ``body_fun`` as ``cond_fun`` holds for; the value may be a pytree.
    """
    value = init_val
    while cond_fun(value):
        value = body_fun(value)
    return value


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, T], T], init_val: T) -> T:
    """``init_val`` after ``value = body_fun(i, value)`` for each i of ``range(lower, upper)``."""
    value = init_val
    for i in range(lower, upper):
        value = body_fun(i, value)
    return value


def scan(
    f: Callable[[T, Any], tuple[T, Any]], init: T, xs: Any = None, length: int | None = None,
    reverse: bool = False,
) -> tuple[T, Any]:
    """``carry, y = f(carry, x)`` along the first axis of ``xs``, from the carry ``init`` on: the
    last carry, and every y.

    ``xs`` is an array, or a pytree of arrays that are equally long; None with ``length``.  The y
    (None, an array, a number, or a pytree of these) become arrays of which the first axis is that
    of ``xs``; with ``reverse`` the last element comes first, and its y stays last.

    Raises ``ValueError`` for lengths that differ, and for no elements, where nothing tells the type
    of y; ``TypeError`` where a later y has another dtype or shape than the first.
    """
    return _scanned("scan", f, init, xs, length, reverse)


def _scanned(
    name: str, f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, length: int | None,
    reverse: bool,
) -> tuple[Any, Any]:
    """See `scan`; ``name`` is that of the function that the program called."""
    count = _length(name, xs, length)
    start = count - 1 if reverse else 0
    carry, y = f(init, _element(xs, start))
    ys = _room(count, y)
    _store(name, ys, start, y)
    for step in range(1, count):
        position = count - 1 - step if reverse else step
        carry, y = f(carry, _element(xs, position))
        _store(name, ys, position, y)
    return carry, ys


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """``f`` of each element along the first axis of ``xs``, as `scan` gives its y."""
    return _scanned("map", lambda carry, x: (carry, f(x)), None, xs, None, False)[1]


# ------------------------------------------------------------------------------- trees of arrays


def _length(name: str, xs: Any, length: int | None) -> int:
    lengths = {} if length is None else {operator.index(length): "length"}
    for leaf in _leaves(xs):
        if not np.ndim(leaf):
            raise TypeError(
                f"{name}: xs holds a {type(leaf).__name__}, which has no first axis: lists and "
                "tuples are structures here, so make them arrays with np.asarray")
        lengths[len(leaf)] = "xs"
    if len(lengths) != 1:
        raise ValueError(
            f"{name}: xs (and length) differ in length: {sorted(lengths)}" if lengths else
            f"{name}: nothing says how many steps, " + (
                "give xs or length" if name == "scan" else "xs holds no array"))
    count = next(iter(lengths))
    if count < 1:
        raise ValueError(f"{name}: no elements, so nothing tells what the results would be")
    return count


def _leaves(tree: Any) -> list[Any]:
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in _leaves(part)]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [tree]


def _mapped(f: Callable[[Any], Any], tree: Any) -> Any:
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: _mapped(f, part) for key, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [_mapped(f, part) for part in tree]
        if hasattr(tree, "_fields"):
            return type(tree)(*parts)
        return parts if isinstance(tree, list) else tuple(parts)
    return f(tree)


def _element(xs: Any, position: Any) -> Any:
    return _mapped(lambda leaf: leaf[position], xs)


def _room(count: int, y: Any) -> Any:
    """Arrays for as many y."""
    return _mapped(lambda leaf: np.empty((count, *np.shape(leaf)), np.asarray(leaf).dtype), y)


def _store(name: str, ys: Any, position: Any, y: Any) -> None:
    if ys is None and y is None:
        return
    if isinstance(ys, dict):
        for key in ys:
            _store(name, ys[key], position, y[key])
    elif isinstance(ys, (list, tuple)):
        for room, part in zip(ys, y, strict=True):
            _store(name, room, position, part)
    else:
        value = np.asarray(y)
        if value.dtype != ys.dtype or value.shape != ys.shape[1:]:
            raise TypeError(
                f"{name}: y was {ys.dtype}{list(ys.shape[1:])} in the first step and is "
                f"{value.dtype}{list(value.shape)} in a later one: begin with a carry and xs "
                f"of the dtype and shape that the steps give")
        ys[position] = value
