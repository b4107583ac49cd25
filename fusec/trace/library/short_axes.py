"""Short axes in the place of long ones, while NumPy is asked for the type of a call's result.

NumPy's answer on arrays of some hundred elements tells the one on millions, where the lengths
keep the relations that decide: which of them are equal, which is longer, whether one is longer than
a number among the arguments, and the remainders by small divisors.  Asked with several sets
of lengths, the sizes of results are constants, lengths, or follow from them by simple rules, which
give them for the lengths that the arrays have.  Where a size follows no rule nothing is told, and
NumPy is asked on arrays as long as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fusec.ir.sizes.bindings import resolve

from ..facts.trees import leaves_in

Lengths = Mapping[int, int]  # of long axes, and what they are while NumPy is asked
AS_THEY_ARE: Lengths = {}
MOST = 1 << 12  # elements of an operand up to which axes stay as they are

# By how many long axes an array has: lengths up to the first number stay, others keep what is left
# by divisors of the second.
_KEPT = {1: (128, 120), 2: (20, 12), 3: (8, 4)}
_KEPT_OF_MANY = (8, 2)
# Of how many such steps each length is longer than the one before: no set is a multiple of another,
# and one is much longer, for which a wrong line is not right, too.
_STEPS = ((1, 2, 1, 3, 1), (2, 3, 3, 1, 2), (9, 1, 2, 2, 3))
_MOST_DIVIDED = 12
MOST_LENGTH = 1 << 33
_NEAR = 16  # lengths that are no further apart stay so


def short_lengths(
    shapes: Sequence[Sequence[int]], given: Any, most: int = MOST
) -> tuple[Lengths, ...]:
    """Sets of shorter lengths for operands of these shapes; none where all of them are short.

    ``given``: the call's other arguments.  Axes that may be compared with its numbers stay longer.
    """
    total = max(map(math.prod, shapes), default=0)
    if total <= most:
        return ()
    most_axes = max(sum(n > _KEPT_OF_MANY[0] for n in shape) for shape in shapes)
    kept, step = _KEPT.get(most_axes, _KEPT_OF_MANY)
    kept = max(kept, 2 * _largest(given))
    long = sorted({n for shape in shapes for n in shape if n > kept})
    sets = [_set(shapes, long, kept, step, steps) for steps in _STEPS]
    shortest = max(math.prod(in_short(shape, sets[-1])) for shape in shapes)
    return tuple(sets) if long and 2 * shortest < total else ()


def in_short(shape: Sequence[int], lengths: Lengths) -> tuple[int, ...]:
    return tuple(lengths.get(n, n) for n in shape)


def _largest(given: Any) -> int:
    """The largest whole number of the call's own, by its absolute value, that may be a length."""
    numbers = (resolve(n, {}) for n in leaves_in(given) if isinstance(n, (int, np.integer)))
    return max((size for n in numbers if (size := abs(int(n))) < MOST_LENGTH), default=0)


def _set(
    shapes: Sequence[Sequence[int]], long: Sequence[int], kept: int, step: int,
    steps: Sequence[int],
) -> Lengths:
    lengths, before, last = dict[int, int](), 0, kept
    for n, distance in zip(long, itertools.cycle(steps), strict=False):
        if before and n - before <= _NEAR:
            last += n - before
        else:
            last += step * distance
            last += (n - last) % step
        before, lengths[n] = n, last
    totals = {math.prod(shape): math.prod(in_short(shape, lengths))
              for shape in shapes if sum(n > kept for n in shape) > 1}
    return {**lengths, **totals}  # a row of all elements of a matrix


# ----------------------------------------------------------------------------- what that tells

_Term = tuple[int, tuple[int, ...]]  # a length, and what it is in each set


def told_length(
    found: Sequence[int], sets: Sequence[Lengths], shapes: Sequence[Sequence[int]]
) -> int | None:
    """The length that is ``found[i]`` with ``sets[i]``; None where it follows no rule."""
    if len(set(found)) == 1:
        return found[0]
    terms = _terms(sets, shapes)
    for full, short in terms:
        if short == tuple(found):
            return full
    lines = (_on_line(found, term) for term in terms)
    beside = (_beside(found, term) for term in _pairs(terms))
    return next((n for n in (*lines, *beside) if n is not None), None)


def _terms(sets: Sequence[Lengths], shapes: Sequence[Sequence[int]]) -> list[_Term]:
    """The long lengths, the numbers of elements, and of all elements together."""
    long = sorted({n for shape in shapes for n in shape if n in sets[0]})
    terms = [(n, tuple(lengths[n] for lengths in sets)) for n in long]
    totals = [(math.prod(shape), tuple(math.prod(in_short(shape, lengths)) for lengths in sets))
              for shape in shapes]
    whole = (sum(full for full, _ in totals),
             tuple(map(sum, zip(*(short for _, short in totals), strict=True))))
    return list(dict.fromkeys((*terms, *totals, whole)))


def _pairs(terms: Sequence[_Term]) -> Iterator[_Term]:
    """Sums, differences and products of two, and how many pairs one has."""
    for (a, short), (b, other) in itertools.combinations_with_replacement(terms[:12], 2):
        pairs = list(zip(short, other, strict=True))
        yield a + b, tuple(x + y for x, y in pairs)
        yield abs(a - b), tuple(abs(x - y) for x, y in pairs)
        yield a * b, tuple(x * y for x, y in pairs)
    for n, short in terms:
        yield math.comb(n, 2), tuple(math.comb(x, 2) for x in short)


def _on_line(found: Sequence[int], term: _Term) -> int | None:
    """The value of the line through the found sizes: half of the length, eight times, and one."""
    full, short = term
    other = next((i for i, n in enumerate(short) if n != short[0]), 0)
    if not other or len(set(short)) < len(_STEPS):
        return None
    slope = Fraction(found[other] - found[0], short[other] - short[0])
    value = found[0] + slope * (full - short[0])
    fits = all(n - found[0] == slope * (x - short[0]) for n, x in zip(found, short, strict=True))
    is_likely = slope > 0 and slope.denominator <= _MOST_DIVIDED
    return int(value) if fits and is_likely and value.denominator == 1 else None


def _beside(found: Sequence[int], term: _Term) -> int | None:
    """The term plus the distance that all found sizes have from it."""
    full, short = term
    distances = {n - x for n, x in zip(found, short, strict=True)}
    return full + distances.pop() if len(distances) == 1 else None
