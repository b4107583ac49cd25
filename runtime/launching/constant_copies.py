"""A call's own copy of an array that is a constant of the graph.

Of a large one that is mostly zeros (``np.eye``) only the rest is written: fresh memory from the
system is zero, and pages that nobody writes are never touched.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LEAST_BYTES = 1 << 18  # below, a copy takes less than asking for fresh memory
MOST_WRITTEN = 16  # one element of so many


class Rest(NamedTuple):
    """Where an array in its memory's order is not zero, to the bit, and the elements there."""

    places: np.ndarray
    values: np.ndarray


_rests: dict[int, tuple[weakref.ref[np.ndarray], Rest | None]] = {}


def copy_of(constant: np.ndarray) -> np.ndarray:
    """A copy in the same order of memory."""
    if constant.nbytes < LEAST_BYTES or constant.dtype.hasobject or not constant.flags.forc:
        return constant.copy(order="K")
    known = _rests.get(id(constant))
    if known is None or known[0]() is not constant:
        known = weakref.ref(constant, _forgotten(id(constant))), _rest(constant)
        _rests[id(constant)] = known
    rest = known[1]
    if rest is None:
        return constant.copy(order="K")
    flat = np.zeros(constant.size, constant.dtype)
    flat[rest.places] = rest.values
    return flat.reshape(constant.shape, order="C" if constant.flags.c_contiguous else "F")


def _forgotten(key: int) -> Callable[[object], object]:
    return lambda _: _rests.pop(key, None)


def _rest(constant: np.ndarray) -> Rest | None:
    flat = constant.ravel(order="K")
    bits = flat.view(np.uint8).reshape(flat.size, -1)
    places = np.flatnonzero(bits.any(axis=1))
    return None if places.size * MOST_WRITTEN > flat.size else Rest(places, flat[places])
