"""Python's builtins over long arrays, written in Python: converted like a program of the user."""

from __future__ import annotations

from typing import Any


def total(items: Any, start: Any = 0) -> Any:
    """``sum``: one after the other."""
    for item in items:
        start = start + item
    return start


def largest(items: Any) -> Any:
    """``max``: the first of those that none is larger than."""
    best = items[0]
    for item in items[1:]:
        if item > best:
            best = item
    return best


def smallest(items: Any) -> Any:
    """``min``: the first of those that none is smaller than."""
    best = items[0]
    for item in items[1:]:
        if item < best:
            best = item
    return best


def is_any(items: Any) -> bool:
    """``any``"""
    for item in items:  # noqa: SIM110 (any is what this is)
        if item:
            return True
    return False


def are_all(items: Any) -> bool:
    """``all``"""
    for item in items:  # noqa: SIM110
        if not item:
            return False
    return True
