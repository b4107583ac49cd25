"""Philox4x32-10: random bits as a function of a key and a counter.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*,
SC'11 (2011).  Element i of an array depends on its key and on i alone, so any part can be computed
anywhere: in a kernel with its readers, on any number of threads, or here in NumPy, always with
the same bits.  The code runs on arrays and on traced arrays alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusec.trace.arrays.creation import full
from fusec.trace.arrays.ranges import arange
from fusec.trace.operands.operands import as_traced
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.trace import current

MULTIPLIERS = np.uint32(0xD2511F53), np.uint32(0xCD9E8D57)
WEYL = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
ROUNDS = 10
MASK = 0xFFFFFFFF
# The counter's last word says what the numbers are for, so that no two uses share a counter.
DRAW, SPLIT, FOLD = 0, 1, 2

Words = tuple[Any, Any, Any, Any]


def philox(counter: Words, key: tuple[Any, Any]) -> Words:
    """Four words of 32 random bits for each counter; operands are uint32 arrays that broadcast."""
    a, b, c, d = counter
    first, second = key
    for _ in range(ROUNDS):
        high0, low0 = mul_high(a, MULTIPLIERS[0]), a * MULTIPLIERS[0]
        high1, low1 = mul_high(c, MULTIPLIERS[1]), c * MULTIPLIERS[1]
        a, b, c, d = high1 ^ b ^ first, low1, high0 ^ d ^ second, low0
        first, second = first + WEYL[0], second + WEYL[1]
    return a, b, c, d


def mul_high(a: Any, b: Any) -> Any:
    """The upper half of the product of two uint32."""
    if type(a) is not TracedArray:
        return (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32)
    return from_value(a.trace, a.trace.emit("MulHigh", a.value, as_traced(a.trace, b).value))


def words(key: Any, shape: tuple[Any, ...], use: int = DRAW) -> Words:
    """Four words for each element of an array of this shape (at least one axis).

    ``key`` is a uint32 array of length 2; element i, counted in C order, has the counter i.
    """
    zero, last = (constant(x, len(shape)) for x in (0, use))
    low, high = _positions(shape)
    pair = (_axes(key[0:1], len(shape)), _axes(key[1:2], len(shape)))
    return philox((low, zero if high is None else high, zero, last), pair)


def _axes(x: Any, rank: int) -> Any:
    """A one-element array with ``rank`` axes."""
    return x[(slice(None), *[None] * (rank - 1))]


def _positions(shape: tuple[Any, ...]) -> tuple[Any, Any]:
    """Each element's number in C order as two words; the upper one is None where it is 0."""
    position: Any = 0
    for axis, size in enumerate(shape):
        counted = range_of(size)
        counted = counted[(slice(None), *[None] * (len(shape) - 1 - axis))]
        position = position * size + counted if axis else counted
    static = all(type(n) is int for n in shape)  # traced numbers say that they are ints
    if static and math.prod(shape) <= 1 << 32:
        return position.astype(np.uint32), None
    return position.astype(np.uint32), (position >> 32).astype(np.uint32)


def constant(word: int, rank: int) -> Any:
    """A word as an array with one element and ``rank`` axes; traced inside a trace."""
    trace, shape = current(), (1,) * rank
    if trace is None:
        return np.full(shape, word, np.uint32)
    return full(trace, shape, np.uint32(word), np.uint32)


def range_of(size: Any) -> Any:
    """0, 1, … as int64; traced inside a trace."""
    trace = current()
    if trace is None:
        return np.arange(size)
    return arange(trace, size)


def folded(key: Any, low: Any, high: Any) -> Any:
    """A key made of a key and 64 more bits, words of length 1."""
    counter = (low, high, constant(0, 1), constant(FOLD, 1))
    a, b, _, _ = philox(counter, (key[0:1], key[1:2]))
    return np.concatenate([a, b])
