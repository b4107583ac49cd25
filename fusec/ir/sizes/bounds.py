"""Bounds of sizes that only the run knows.

`bounds` proves comparisons of sizes, so it may be too wide and never too narrow.  Three rules bound
a sum from different sides, and the tightest bound counts: intervals term by term, both
cases of a ``min`` or ``max``, and growth from the least sizes of arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from .polynomials import (
    LEAST_ARGUMENT,
    MOST_ARGUMENT,
    Bounds,
    Call,
    Monomial,
    Polynomial,
    Size,
    is_argument,
)

_Terms = dict[Monomial, Fraction]  # of a polynomial
MOST_CASES = 5  # one in another


def bounds(size: Size) -> Bounds:
    """The least and the greatest value; None where no limit is known."""
    if not isinstance(size, Polynomial):
        return size, size
    try:
        return size._bounds
    except AttributeError:  # sizes are interned, and expressions share parts: once for each
        size._bounds = _bounds(size)
    return size._bounds


def _bounds(size: Size, cases: int = MOST_CASES) -> Bounds:
    """Bounds of a sum in which so many operands of ``min`` and ``max`` may be told apart."""
    if not isinstance(size, Polynomial):
        return size, size
    rules = [_interval(size), _growth(size)]
    if cases:
        rules.append(_by_cases(size, cases - 1))
    low = max((low for low, _ in rules if low is not None), default=None)
    return low, min((high for _, high in rules if high is not None), default=None)


def _growth(size: Polynomial) -> Bounds:
    """Bounds of a polynomial in sizes of arguments, which are at least 2.

    ``2 + t`` is written for each size: ``s0*s1 - s0`` becomes ``2 + t0 + 2*t1 + t0*t1``, and as no
    ``t`` is negative and no factor is, it is at least 2.
    """
    low, high = _constant(_relaxed(size, up=False), 1), _constant(_relaxed(size, up=True), -1)
    return None if low is None else math.ceil(low), None if high is None else math.floor(high)


def _constant(terms: _Terms | None, sign: int) -> Fraction | None:
    """The value where all sizes are least, if it is the least (``sign`` 1) or the greatest (-1).

    None where factors of both signs are left: larger sizes may then go either way.
    """
    if terms is None:
        return None
    shifted: _Terms = {}
    for monomial, factor in terms.items():
        for more, share in _expanded(monomial).items():
            shifted[more] = shifted.get(more, Fraction(0)) + share * factor
    constant = shifted.pop((), Fraction(0))
    return constant if all(share * sign >= 0 for share in shifted.values()) else None


def _relaxed(size: Size, up: bool) -> _Terms | None:
    """A polynomial without quotients that is nowhere less than the size (``up``), or nowhere more.

    ``a//2`` is at most ``a/2`` and at least ``(a-1)/2``.  None where there are symbols other than
    sizes of arguments, or calls that no such polynomial bounds.
    """
    if not isinstance(size, Polynomial):
        return {(): Fraction(size)}
    terms: _Terms = {}
    for monomial, factor in size.terms:
        part = _relaxed_product(monomial, up == (factor > 0))
        if part is None:
            return None
        for more, share in part.items():
            terms[more] = terms.get(more, Fraction(0)) + share * factor
    return terms


def _relaxed_product(monomial: Monomial, up: bool) -> _Terms | None:
    if len(monomial) <= MOST_FACTORS and all(map(_is_argument, monomial)):
        return {monomial: Fraction(1)}
    atom = monomial[0]
    if len(monomial) > 1 or isinstance(atom, str) or not isinstance(atom.right, int) or (
            atom.right <= 0):
        return None
    if atom.function == "%":
        return {(): Fraction(atom.right - 1 if up else 0)}
    whole = _relaxed(atom.left, up) if atom.function == "//" else None
    if whole is None:
        return None
    quotient = {more: share / atom.right for more, share in whole.items()}
    if not up:
        quotient[()] = quotient.get((), Fraction(0)) - Fraction(atom.right - 1, atom.right)
    return quotient


MOST_FACTORS = 8


def _expanded(monomial: Monomial) -> dict[Monomial, int]:
    """The product of ``2 + t`` for each of its symbols."""
    terms: dict[Monomial, int] = {(): 1}
    for atom in monomial:
        grown: dict[Monomial, int] = {}
        for other, share in terms.items():
            with_atom = tuple(sorted((*other, atom), key=str))
            grown[other] = grown.get(other, 0) + LEAST_ARGUMENT * share
            grown[with_atom] = grown.get(with_atom, 0) + share
        terms = grown
    return terms


def _is_argument(atom: str | Call) -> bool:
    return isinstance(atom, str) and is_argument(atom)


def _by_cases(size: Polynomial, cases: int) -> Bounds:
    """Bounds that hold for either operand of the first ``min`` or ``max`` in the sum.

    ``n - max(n-1,0)`` is ``1`` or ``n``, so at least 0.  `_interval` cannot see that: it takes the
    two terms for independent.  Each operand may bring more of them, so that a loop written out
    would double the work with each pass: hence the limit.
    """
    for monomial, factor in size.terms:
        atom = monomial[0] if len(monomial) == 1 else ""
        if isinstance(atom, Call) and atom.function in ("min", "max"):
            rest = size.without(monomial)
            first, second = (_bounds(rest + operand * factor, cases)
                             for operand in (atom.left, atom.right))
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
    """Bounds of a product: exact where no factor is negative, unknown elsewhere."""
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
        return (LEAST_ARGUMENT, MOST_ARGUMENT) if _is_argument(atom) else (0, None)
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
    return None if low is None else min(low, 0), None if high is None else max(high, 0)


def range_of(size: Size, limits: Mapping[str, int]) -> tuple[int, int]:
    """The least and the greatest value where each symbol is between 0 and its limit.

    By interval arithmetic: exact where no symbol occurs twice, too wide elsewhere, and never
    narrower for wider limits.  Raises ``KeyError`` for a symbol without a limit.
    """
    return _range_of(size, limits, {})


_Ranges = dict[Polynomial, tuple[int, int]]  # of sizes that were met: expressions share parts


def _range_of(size: Size, limits: Mapping[str, int], known: _Ranges) -> tuple[int, int]:
    if not isinstance(size, Polynomial):
        return size, size
    found = known.get(size)
    if found is not None:
        return found
    low = high = 0
    for monomial, factor in size.terms:
        ends = [factor]
        for atom in monomial:
            ends = [a * b for a in (min(ends), max(ends)) for b in _atom_range(
                atom, limits, known)]
        low, high = low + min(ends), high + max(ends)
    known[size] = low, high
    return low, high


def _atom_range(atom: str | Call, limits: Mapping[str, int], known: _Ranges) -> tuple[int, int]:
    if isinstance(atom, str):
        return 0, limits[atom]
    (low, high), (below, above) = (
        _range_of(part, limits, known) for part in (atom.left, atom.right))
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
