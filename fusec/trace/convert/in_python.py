"""Python's builtins over long arrays, written in Python: converted like a program of the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.code_roles import CONVERTED

FUSEC_ROLE = CONVERTED


def _words(function: Any) -> str:
    """This Python's message about no items."""
    try:
        function(())
    except ValueError as error:
        return str(error)
    raise AssertionError("internal error: there is an item")


OF_NONE = _words(max), _words(min)


def total(items: Any, start: Any = 0) -> Any:
    """``sum``: one after the other."""
    for item in items:
        start = start + item
    return start


def product(items: Any, start: Any) -> Any:
    """``math.prod``"""
    for item in items:
        start = start * item
    return start


def largest(items: Any) -> Any:
    """``max``: the first of those that none is larger than."""
    if len(items) == 0:
        raise ValueError(OF_NONE[0])
    best = items[0]
    for item in items[1:]:
        if item > best:
            best = item
    return best


def smallest(items: Any) -> Any:
    """``min``: the first of those that none is smaller than."""
    if len(items) == 0:
        raise ValueError(OF_NONE[1])
    best = items[0]
    for item in items[1:]:
        if item < best:
            best = item
    return best


def largest_by(keys: Any, items: Any) -> Any:
    """``max(items, key=…)`` with the items' keys."""
    best, result = keys[0], items[0]
    for key, item in zip(keys[1:], items[1:], strict=True):
        if key > best:
            best, result = key, item
    return result


def smallest_by(keys: Any, items: Any) -> Any:
    """``min(items, key=…)`` with the items' keys."""
    best, result = keys[0], items[0]
    for key, item in zip(keys[1:], items[1:], strict=True):
        if key < best:
            best, result = key, item
    return result


BY_KEY: dict[Any, Any] = {max: largest_by, min: smallest_by}


def largest_in_loop(key: Any, item: Any, count: Any, best: Any) -> Any:
    """The same of items by their positions, ``best`` the first key."""
    result = item(0)
    for k in range(1, count):
        other = item(k)
        value = key(other)
        if value > best:
            best, result = value, other
    return result


def smallest_in_loop(key: Any, item: Any, count: Any, best: Any) -> Any:
    """And of the other."""
    result = item(0)
    for k in range(1, count):
        other = item(k)
        value = key(other)
        if value < best:
            best, result = value, other
    return result


BEST_OF: dict[Any, Any] = {max: largest_in_loop, min: smallest_in_loop}


def exchanged(a: Any, b: Any) -> Any:
    """Two neighbours in order; equal ones stay in theirs."""
    if b < a:
        return b, a
    return a, b


def total_where(items: Any, element: Any, condition: Any) -> Any:
    """``sum(element for item in items if condition)``"""
    total = 0
    for item in items:
        if condition(item):
            total = total + element(item)
    return total


def largest_where(items: Any, element: Any, condition: Any) -> Any:
    """``max`` of the same."""
    return best_where("max", lambda a, b: a > b, items, element, condition)


def smallest_where(items: Any, element: Any, condition: Any) -> Any:
    """``min`` of the same."""
    return best_where("min", lambda a, b: a < b, items, element, condition)


def best_where(name: str, is_better: Any, items: Any, element: Any, condition: Any) -> Any:
    """The first of those that none is better than."""
    best = None
    for item in items:
        if condition(item):
            value = element(item)
            if best is None or is_better(value, best):
                best = value
    if best is None:
        raise ValueError(OF_NONE[name == "min"])
    return best


def total_of(element: Any, count: Any, start: Any = 0) -> Any:
    """``sum(element(k) for k in range(count))``, and others of the same; there is an element."""
    total = start
    for k in range(count):
        total = total + element(k)
    return total


def largest_of(element: Any, count: Any) -> Any:
    """``max``"""
    if count == 0:
        raise ValueError(OF_NONE[0])
    best = element(0)
    for k in range(1, count):
        value = element(k)
        if value > best:
            best = value
    return best


def smallest_of(element: Any, count: Any) -> Any:
    """``min``"""
    if count == 0:
        raise ValueError(OF_NONE[1])
    best = element(0)
    for k in range(1, count):
        value = element(k)
        if value < best:
            best = value
    return best


def is_any_of(element: Any, count: Any) -> Any:
    """``any``"""
    for k in range(count):  # noqa: SIM110
        if element(k):
            return True
    return False


def are_all_of(element: Any, count: Any) -> Any:
    """``all``"""
    for k in range(count):  # noqa: SIM110
        if not element(k):
            return False
    return True


def power_modulo(base: Any, exponent: Any, modulus: Any) -> Any:
    """``pow(base, exponent, modulus)`` of ints"""
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    base = base % modulus
    if exponent < 0:
        base, exponent = inverse_modulo(base, modulus), -exponent
    result = 1 % modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        exponent = exponent >> 1
        if exponent > 0:
            base = base * base % modulus
    return result


def inverse_modulo(base: Any, modulus: Any) -> Any:
    """The number whose product with ``base`` has the remainder 1, by Euclid's algorithm."""
    size = abs(modulus)
    rest, divisor, factor, following = base % size, size, 1, 0
    while divisor != 0:
        quotient = rest // divisor
        rest, divisor = divisor, rest - quotient * divisor
        factor, following = following, factor - quotient * following
    if rest != 1:
        raise ValueError("base is not invertible for the given modulus")
    return factor % modulus


def polynomial(coefficients: Any, x: Any) -> Any:
    """``np.polyval`` of more than one coefficient, by Horner's rule as there."""
    y = np.zeros_like(x) * x + coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


OF: dict[Any, Any] = {
    sum: total_of, max: largest_of, min: smallest_of, any: is_any_of, all: are_all_of}
WHERE: dict[Any, Any] = {sum: total_where, max: largest_where, min: smallest_where}


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
