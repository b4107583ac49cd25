"""Conversions: every pair of dtypes, extremes first, in every path that compiles one differently.

A vector body, a loop's tail, a strided loop and rank 0 must give the same bits.  NumPy itself
gives two results for some floats that do not fit an unsigned integer: its loops over contiguous
memory and over strided memory differ.  fusec gives the strided loop's everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, specials
from harness import assert_engines, check, run
from tolerance import same_bits

import fusec
from fusec.dispatch.jit import Function
from fusec.ops.rows.elementwise import cast_reference

LENGTHS = [0, 1, 2, 3, 5, 7, 8, 9, 17, 31, 33]
EVERY = [*DTYPES, "c8", "c16"]
PAIRS = [(a, b) for a in EVERY for b in EVERY]
FLOATS = ["f2", "f4", "f8"]
EDGES = [2.0**n + d for n in (7, 8, 15, 16, 31, 32, 53, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)]


def extremes(dtype: str) -> np.ndarray:
    """The special values, and for floats both sides of every integer dtype's limits."""
    if np.dtype(dtype).kind not in "fc":
        return specials(dtype)
    with np.errstate(over="ignore"):
        edges = np.array([*EDGES, *(-e for e in EDGES)]).astype(dtype)
    return np.concatenate([specials(dtype), edges])


def scalar_loop(x: np.ndarray, target: str) -> np.ndarray:
    """NumPy's conversion by its loop over strided memory."""
    spread = np.repeat(x, 2)[::2]
    with np.errstate(all="ignore"):
        return spread.astype(target)


def converter(target: str) -> Function:
    return fusec.jit(lambda x: x.astype(target))


def assert_converts(
    function: Callable[..., Any], x: np.ndarray, want: np.ndarray, what: str
) -> None:
    got = function(x)
    assert got.dtype == want.dtype and got.shape == want.shape, what
    bad = ~same_bits(got, want)
    assert not bad.any(), f"{what}: {x[bad][:3]!r} gives {got[bad][:3]!r}, not {want[bad][:3]!r}"


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda p: p)
def test_one_result_in_body_tail_and_stride(source: str, target: str) -> None:
    function, x = converter(target), extremes(source)
    want = scalar_loop(x, target)
    assert_converts(function, x, want, "body")
    assert_converts(function, np.repeat(x, 3)[::3], want, "strided")
    assert_converts(function, x[::-1], want[::-1], "reversed")
    assert_converts(partial(cast_reference, dtype=np.dtype(target)), x, want, "the reference")
    for length in LENGTHS:
        for start in range(0, len(x), max(length, 1)) if length else (0,):
            part = slice(start, start + length)
            assert_converts(function, x[part], want[part], f"{length} elements from {start}")


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda p: p)
def test_rank_0_and_scalars(source: str, target: str) -> None:
    function, x = converter(target), extremes(source)
    want = scalar_loop(x, target)
    for value, expected in zip(x, want, strict=True):
        assert_converts(function, np.array(value), np.array(expected), "rank 0")
        got = function(value)
        assert type(got) is type(expected), f"{value!r}: {got!r} is not {expected!r}"
        assert same_bits(np.asarray(got), np.asarray(expected)), f"{value!r}: {got!r}"


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda p: p)
def test_engines_convert_alike(source: str, target: str) -> None:
    x = np.repeat(extremes(source), 2)[::2]
    function = converter(target)
    want = run(function.python_function, (x,))
    assert want.error is None
    assert_engines(function, (x,), want)


# What docs/ir.md states, as (NaN, +inf, -inf, 1e30, -1.0, 300.7) becomes in each dtype.
I4, I8 = -(2**31), -(2**63)
STATED = {
    "i1": [0, 0, 0, 0, -1, 44], "i2": [0, 0, 0, 0, -1, 300], "i4": [I4, I4, I4, I4, -1, 300],
    "i8": [I8, I8, I8, I8, -1, 300], "u1": [0, 0, 0, 0, 255, 44], "u2": [0, 0, 0, 0, 65535, 300],
    "u4": [0, 0, 0, 0, 2**32 - 1, 300],
    "u8": [2**63, 0, 2**63, 0, 2**64 - 1, 300],
}


@pytest.mark.parametrize("target", STATED)
@pytest.mark.parametrize("source", FLOATS)
def test_stated_results(source: str, target: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array([np.nan, np.inf, -np.inf, 1e30, -1.0, 300.7]).astype(source)
    assert converter(target)(x).tolist() == STATED[target]


@pytest.mark.parametrize("target", STATED)
def test_complex_numbers_become_integers_by_their_real_part(target: str) -> None:
    x = np.array([complex(300.7, np.nan), complex(-1.0, np.inf)])
    assert converter(target)(x).tolist() == [STATED[target][5], STATED[target][4]]


@pytest.mark.parametrize("source", FLOATS)
def test_nan_is_true(source: str) -> None:
    check(lambda x: (x.astype(bool), x != 0), np.array([np.nan, 0.0, -0.0, 5e-324, np.inf], source))
