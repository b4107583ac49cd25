"""The functions that rewrite rules may call in conditions, attributes and constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import Value, regions
from fusec.ir.regions import Region, shift, times
from fusec.ir.sizes.symbolic_numbers import Symbolic

Ints = Sequence[int]


def is_identity(perm: Ints) -> bool:
    return list(perm) == list(range(len(perm)))


def is_full(starts: Ints, steps: Ints) -> bool:
    """Whether a region starts at the origin with unit steps (its size is the type's business)."""
    return all(s == 0 for s in starts) and all(s == 1 for s in steps)


def compose(outer: Ints, inner: Ints) -> tuple[int, ...]:
    """The permutation that does ``inner`` first, then ``outer``."""
    return tuple(inner[p] for p in outer)


def is_disjoint(a: Ints, b: Ints, n: Ints, c: Ints, d: Ints, m: Ints) -> bool:
    """Whether two regions (starts, steps, sizes) have no element in common."""
    return regions.are_apart(Region(a, b, n), Region(c, d, m))


def is_inside(a: Ints, b: Ints, n: Ints, c: Ints, d: Ints, m: Ints) -> bool:
    """Whether the region (starts, steps, sizes) lies in the second one; both without gaps."""
    return regions.is_inside(Region(a, b, n), Region(c, d, m))


def less(starts: Ints, others: Ints) -> tuple[int, ...]:
    """The starts within a region that begins at others."""
    return tuple(a - c for a, c in zip(starts, others, strict=True))


def is_scalar(value: Value) -> bool:
    return not value.shape


def is_weak(value: Value) -> bool:
    return value.type.is_weak


def is_integer(value: Value) -> bool:
    return value.dtype.kind in "iu"


def is_bool(value: Value) -> bool:
    return value.dtype.kind == "b"


def is_power_of_two(number: Any) -> bool:
    """A positive integer power of two, smaller than the sign bit."""
    return int(number) > 0 and int(number) & (int(number) - 1) == 0


def log2(number: Any) -> int:
    return int(number).bit_length() - 1


def decrement(number: Any) -> int:
    return int(number) - 1


def has_exact_reciprocal(number: Any) -> bool:
    """Whether 1/number is exact in its dtype: a power of two whose inverse is finite."""
    if type(number) is Symbolic or not np.isfinite(number) or number == 0:
        return False
    with np.errstate(all="ignore"):
        inverse = np.divide(1, number, dtype=np.asarray(number).dtype)
    return abs(math.frexp(number)[0]) == 0.5 and bool(np.isfinite(inverse))


def reciprocal(number: Any) -> Any:
    return np.divide(1, number, dtype=np.asarray(number).dtype)


def is_lossless(value: Value, between: np.dtype, to: np.dtype) -> bool:
    """Whether casting through ``between`` changes nothing for any value of ``value``'s dtype."""
    return _holds(value.dtype, between) and not (between.kind in "fc" and to.kind in "iu")


def _holds(small: np.dtype, large: np.dtype) -> bool:
    """Whether every value of dtype ``small`` is one of dtype ``large``, in the same sense."""
    if small == large or small.kind == "b":
        return True
    if small.kind in "iu" and large.kind in "fc":
        return 8 * small.itemsize - (small.kind == "i") <= np.finfo(large).nmant + 1
    if small.kind == "c" or large.kind == "c":
        return small.kind == large.kind and small.itemsize <= large.itemsize
    return np.can_cast(small, large, "safe")


HELPERS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        compose, decrement, has_exact_reciprocal, is_bool, is_disjoint, is_full, is_identity,
        is_inside, is_integer, is_lossless, is_power_of_two, is_scalar, is_weak, less, log2,
        reciprocal, shift, times,
    )
}
