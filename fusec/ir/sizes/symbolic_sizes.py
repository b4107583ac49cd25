"""Arithmetic of sizes, positions and slices that holds for symbolic numbers as for ints.

Python's own (`range`, `slice.indices`) asks for ``__index__``, which would limit the trace to one
size.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .symbolic_numbers import Symbolic, applied, stored, text_of_number


def is_symbolic(data: Any) -> bool:
    """Whether plain data (a number, or nested tuples) holds a symbolic number."""
    return type(data) is Symbolic or (type(data) is tuple and any(map(is_symbolic, data)))


def are_the_same(shape: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two shapes are equal by what they are computed from, which asks nothing."""
    return len(shape) == len(other) and all(
        a is b or (type(a) is type(b) is int and a == b)
        for a, b in zip(map(stored, shape), map(stored, other), strict=True))


def position(index: Any, size: Any) -> Any:
    """An index in range, counted from the start."""
    return index + size if index < 0 else index


def length_of_range(start: Any, stop: Any, step: Any) -> Any:
    """``len(range(start, stop, step))``."""
    if type(start) is type(stop) is type(step) is int:
        return len(range(start, stop, step))
    distance, stride = (stop - start, step) if step > 0 else (start - stop, -step)
    return (distance - 1) // stride + 1 if distance > 0 else 0


def slice_indices(key: slice, size: Any) -> tuple[Any, Any, Any]:
    """``key.indices(size)``, as Python's documentation of sequences has it."""
    if not any(type(x) is Symbolic for x in (key.start, key.stop, key.step, size)):
        return key.indices(size)
    first, last, step = (None if x is None else applied(operator.index, x)
                         for x in (key.start, key.stop, key.step))
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    ends = (low, high) if step > 0 else (high, low)
    start, stop = (end if x is None else _clamped(x, size, low, high)
                   for x, end in zip((first, last), ends, strict=True))
    return start, stop, step


def _clamped(bound: Any, size: Any, low: Any, high: Any) -> Any:
    if bound < 0:
        return max(bound + size, low)
    return min(bound, high)


def plain_int(x: Any) -> Any:
    """``int(x)`` of an integer."""
    return applied(int, x)


def text_of_shape(shape: Sequence[Any]) -> str:
    """A shape as Python prints it, expressions in braces: ``({s0}, 3)``.

    The braces mark the parts that `fusec.ir.sizes.instantiate` replaces by each call's numbers.
    """
    inner = ", ".join(f"{{{text_of_number(n)}}}" if type(n) is Symbolic else str(n) for n in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def plain(x: Any) -> Any:
    """Plain data with symbolic numbers replaced by their values in the traced call.

    The trace then serves only calls in which these values are the same.
    """
    if type(x) is tuple:
        return tuple(map(plain, x))
    return x.pinned() if type(x) is Symbolic else x
