"""How partial results of blocks are joined, and what becomes of the last one.

A *partial* is a tuple of arrays, and a count of elements where joining needs it.  They are joined
in groups of neighbours, pairs of neighbours first, so that the order depends on the blocks alone:
not on workers, nor on which block is ready first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

GROUP = 8  # partials that one task joins
Partial = tuple[Any, ...]
_UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "or": np.logical_or, "and": np.logical_and,
}


def joined(name: str, partials: Sequence[Partial]) -> Partial:
    """Partials of neighbouring blocks, in order, as one: pairs first, then pairs of these."""
    join, row = _join_of(name), list(partials)
    with np.errstate(all="ignore"):
        while len(row) > 1:
            pairs = [join(a, b) for a, b in zip(row[::2], row[1::2], strict=False)]
            row = [*pairs, *row[2 * len(pairs):]]
    return row[0]


def finished(name: str, partial: Partial, options: Mapping[str, Any]) -> Any:
    """The result, of the partial of all blocks."""
    if name == "moments":
        return _variance(*partial, **options)
    return partial[1] if name in ("argmax", "argmin") else partial[0]


def _join_of(name: str) -> Callable[[Partial, Partial], Partial]:
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
