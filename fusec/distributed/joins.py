"""How partial results of blocks are joined, and what becomes of the last one.

A *partial* is a tuple of arrays, and a count of elements where joining needs it.  Neighbours are
joined in pairs, then pairs of these, so that the order depends on the blocks alone: not on workers,
nor on which block is ready first.  One task joins a group of them; the number of a group is a power
of two, which leaves the pairs as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

FEW, MANY = 8, 32  # partials that one task joins
MANY_BYTES = 1 << 16  # of larger ones few are joined: all are in memory
Partial = tuple[Any, ...]
_UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "or": np.logical_or, "and": np.logical_and,
}


def group_of(partial_bytes: int) -> int:
    """How many partials of this size one task joins."""
    return MANY if partial_bytes <= MANY_BYTES else FEW


class JoinOf(NamedTuple):
    """What a task joins of its arguments.  ``slots``: where in the results of a block's task the
    arrays of a partial are, or the number of the partial in those of a task that joined some;
    ``counts``: of elements that each is of, where joining needs them and the partial has none."""

    name: str
    slots: tuple[int, ...] | int
    counts: tuple[int, ...] | None

    def part(self, part: slice) -> JoinOf:
        """The same of some of the arguments."""
        return self._replace(counts=self.counts and self.counts[part])

    def row(self, results: Sequence[Any]) -> list[Partial]:
        """The partials."""
        if isinstance(self.slots, int):
            return [result[self.slots] for result in results]
        row = [tuple(result[slot] for slot in self.slots) for result in results]
        if self.counts is None:
            return row
        return [(count, *partial) for count, partial in zip(self.counts, row, strict=True)]


def joined(name: str, partials: Sequence[Partial]) -> Partial:
    """Partials of neighbouring blocks, in order, as one: pairs first, then pairs of these."""
    row = list(partials)
    if len(row) == 1:  # of what one block has, too, which is not joined
        return row[0]
    join = _join_of(name)
    with np.errstate(all="ignore"):
        while len(row) > 1:
            pairs = [join(a, b) for a, b in zip(row[::2], row[1::2], strict=False)]
            row = [*pairs, *row[2 * len(pairs):]]
    return row[0]


def finished(name: str, partial: Partial, options: Mapping[str, Any]) -> Any:
    """The result, of the partial of all blocks."""
    if name == "moments":
        return _variance(*partial, **options)
    if name == "totals":
        return _before(partial, **options)
    return partial[1] if name in ("argmax", "argmin") else partial[0]


def _join_of(name: str) -> Callable[[Partial, Partial], Partial]:
    if name == "totals":
        return lambda a, b: (*a, *b)
    if name in _UFUNCS:
        ufunc = _UFUNCS[name]
        return lambda a, b: (ufunc(a[0], b[0]),)
    return {"moments": _joined_moments, "argmax": _first_greatest, "argmin": _first_least}[name]


def _joined_moments(a: Partial, b: Partial) -> Partial:
    """(count, mean, squared distances) of two blocks together; Chan, Golub and LeVeque, "Algorithms
    for Computing the Sample Variance", The American Statistician 37 (1983), p. 243."""
    count = a[0] + b[0]
    if count == 0:
        return a
    distance = b[1] - a[1]
    part = np.asarray(distance).dtype.type(b[0] / count)
    mean = a[1] + distance * part
    squares = a[2] + b[2] + distance * distance * (part * part.dtype.type(a[0]))
    return count, mean, squares


def _variance(count: int, mean: Any, squares: Any, ddof: int, root: bool) -> Any:
    with np.errstate(all="ignore"):
        variance = squares / np.asarray(squares).dtype.type(max(count - ddof, 0))
        return np.sqrt(variance) if root else variance


def _before(totals: Partial, combine: str, axis: int, start: Any) -> np.ndarray:
    """By block what those before it come to; the first one has the start, which changes nothing."""
    before = [np.full_like(totals[0], start), *totals[:-1]]
    with np.errstate(all="ignore"):
        return np.asarray(_UFUNCS[combine].accumulate(
            np.concatenate(before, axis), axis, dtype=totals[0].dtype))


def _first_greatest(a: Partial, b: Partial) -> Partial:
    return _first(a, b, np.greater(b[0], a[0]))


def _first_least(a: Partial, b: Partial) -> Partial:
    return _first(a, b, np.less(b[0], a[0]))


def _first(a: Partial, b: Partial, is_better: Any) -> Partial:
    """NumPy's choice: the first NaN, else the first extremum."""
    takes = is_better | (np.isnan(b[0]) & ~np.isnan(a[0])) if (
        np.asarray(a[0]).dtype.kind == "f") else is_better
    values, places = (np.asarray(np.where(takes, b[k], a[k])) for k in (0, 1))
    return values[()], places[()]
