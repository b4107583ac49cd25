"""Bounds of sizes that only the run knows."""

from __future__ import annotations

from collections.abc import Mapping

from .polynomials import Bounds, Call, Monomial, Polynomial, Size


def bounds(size: Size) -> Bounds:
    """The least and the greatest value, ``None``: no limit is known."""
    if not isinstance(size, Polynomial):
        return size, size
    try:
        return size._bounds
    except AttributeError:  # sizes are interned, and expressions share parts: once for each
        size._bounds = _bounds(size)
    return size._bounds


def _bounds(size: Polynomial) -> Bounds:
    plain, cases = _interval(size), _by_cases(size)
    low = max((x for x in (plain[0], cases[0]) if x is not None), default=None)
    return low, min((x for x in (plain[1], cases[1]) if x is not None), default=None)


def _by_cases(size: Polynomial) -> Bounds:
    """Over both choices of the first ``min`` or ``max`` in the sum: ``n - max(n-1,0)`` is >= 0."""
    for monomial, factor in size.terms:
        atom = monomial[0] if len(monomial) == 1 else ""
        if isinstance(atom, Call) and atom.function in ("min", "max"):
            rest = size.without(monomial)
            first, second = bounds(rest + atom.left * factor), bounds(rest + atom.right * factor)
            return _least(first[0], second[0]), _most(first[1], second[1])
    return None, None


def _interval(size: Polynomial) -> Bounds:
    low: int | None = 0
    high: int | None = 0
    for monomial, factor in size.terms:
        below, above = _scaled(_monomial_bounds(monomial), factor)
        low = None if low is None or below is None else low + below
        high = None if high is None or above is None else high + above
    return low, high


def _scaled(limits: Bounds, factor: int) -> Bounds:
    low, high = (None if x is None else x * factor for x in limits)
    return (low, high) if factor > 0 else (high, low)


def _least(a: int | None, b: int | None) -> int | None:
    """The smaller bound; none where one is missing."""
    return None if a is None or b is None else min(a, b)


def _most(a: int | None, b: int | None) -> int | None:
    """The larger bound; none where one is missing."""
    return None if a is None or b is None else max(a, b)


def _monomial_bounds(monomial: Monomial) -> Bounds:
    """Of a product: exact for factors that are not negative, else unknown."""
    low: int = 1
    high: int | None = 1
    for atom in monomial:
        below, above = _atom_bounds(atom)
        if below is None or below < 0:
            return _atom_bounds(monomial[0]) if len(monomial) == 1 else (None, None)
        low, high = low * below, None if high is None or above is None else high * above
    return low, high


def _atom_bounds(atom: str | Call) -> Bounds:
    if isinstance(atom, str):
        return 0, None
    (low, high), (below, above) = bounds(atom.left), bounds(atom.right)
    if atom.function == "min":
        finite = [x for x in (high, above) if x is not None]
        return None if low is None or below is None else min(low, below), min(finite, default=None)
    if atom.function == "max":
        finite = [x for x in (low, below) if x is not None]
        return max(finite, default=None), _most(high, above)
    if below is None or below <= 0:
        return None, None
    if atom.function == "%":
        return 0, None if above is None else above - 1
    return 0 if low is not None and low >= 0 else None, None if high is None else max(high, 0)


def range_of(size: Size, limits: Mapping[str, int]) -> tuple[int, int]:
    """The least and the greatest value, where each symbol is between 0 and its limit.

    By interval arithmetic: exact where no symbol occurs twice, too wide otherwise, and never
    narrower for wider limits.  ``KeyError`` names a symbol without a limit.
    """
    if not isinstance(size, Polynomial):
        return size, size
    low = high = 0
    for monomial, factor in size.terms:
        ends = [factor]
        for atom in monomial:
            ends = [a * b for a in (min(ends), max(ends)) for b in _atom_range(atom, limits)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _atom_range(atom: str | Call, limits: Mapping[str, int]) -> tuple[int, int]:
    if isinstance(atom, str):
        return 0, limits[atom]
    (low, high), (below, above) = range_of(atom.left, limits), range_of(atom.right, limits)
    if atom.function == "min":
        return min(low, below), min(high, above)
    if atom.function == "max":
        return max(low, below), max(high, above)
    if atom.function == "%":
        return min(below + 1, 0), max(above - 1, 0)
    if below <= 0:
        return min(low, -high, 0), max(high, -low, 0)  # no quotient is larger
    quotients = [a // b for a in (low, high) for b in (below, above)]
    return min(quotients), max(quotients)
