"""Native loops over arrays of sizes that nothing bounds beforehand: ``np.repeat`` by counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


def gathered(rank: Any, counts: Any) -> Any:
    source = np.repeat(np.arange(len(counts)), counts)
    for _ in range(20):
        part = rank[source] * 0.5 + 1.0
        rank = rank * 0.9 + part[0] + part[-1]
    return rank


def scattered(rank: Any, counts: Any) -> Any:
    """Several elements are added to one, in the program's order."""
    source = np.repeat(np.arange(len(counts)), counts)
    for _ in range(20):
        new = np.zeros(len(rank))
        np.add.at(new, source, rank[source] * 0.25)
        rank = new / (1.0 + np.abs(new).max())
    return rank


def rows(rank: Any, counts: Any) -> Any:
    table = np.repeat(np.outer(rank, rank), counts, axis=0)
    for k in range(20):
        other = table * 0.5 + k
        rank = rank * 0.5 + other[0] + other[-1]
    return rank


def written(rank: Any, counts: Any) -> Any:
    values = np.repeat(rank, counts)
    for k in range(20):
        values[k % 3] = values[1] + values.shape[0]
        values[1:] = values[:-1] * 0.5 + values[1:]
    return values, rank


def parts(rank: Any, counts: Any) -> Any:
    values = np.repeat(rank, counts)
    for k in range(20):
        rank[k % 5] += (values[k:] * 2.0)[0] - (values + k)[::2][-1]
    return rank


def largest(rank: Any, counts: Any) -> Any:
    values = np.repeat(rank, counts)
    for k in range(20):
        rank[k % 5] += (values * k).max() + (values - k).sum()
    return rank


@pytest.mark.parametrize("each", [2, 30, 5000])
@pytest.mark.parametrize("f", [gathered, scattered, rows, written, parts, largest],
                         ids=lambda f: f.__name__)
def test_as_numpy_does(f: Any, each: int) -> None:
    """Untypical sizes too: more elements than any thread takes at once."""
    draw = np.random.default_rng(each)
    jitted = fusec.jit(f)
    for _ in range(2):
        rank, counts = draw.normal(size=40), draw.integers(each, 2 * each, 40)
        got, want = jitted(rank.copy(), counts), f(rank.copy(), counts)
        for a, b in zip(got if isinstance(got, tuple) else (got,),
                        want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)
    assert jitted.trace_count == 1


@pytest.mark.parametrize("f", [gathered, scattered, rows], ids=lambda f: f.__name__)
def test_is_native(f: Any) -> None:
    jitted = fusec.jit(f)
    jitted(np.arange(40.0), np.arange(1, 41))
    assert [c.is_native for c in jitted.traces[0].control] == [True], jitted.traces[0].control
