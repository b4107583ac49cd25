"""``np.arange`` whose ends a loop counts: a native loop, as long as NumPy's, of its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

P = np.linspace(0.0, 1.0, 40)


def both_sides(p: Any) -> Any:
    best = 0.0
    for t in range(1, 40):
        low = (np.arange(t) * p[:t]).sum()
        high = (np.arange(t, 40) * p[t:]).sum()
        best = max(best, low * high)
    return best


def steps(p: Any) -> Any:
    total = np.zeros(40)
    for t in range(40):
        total[t] = np.arange(t, 45, 3).sum() + np.arange(50, 2 * t, -7, dtype=np.float32).sum()
    return total


def empty_ones(p: Any) -> Any:
    total = 0
    for t in range(30):
        total += len(np.arange(t - 20)) + np.arange(10, t).size
    return total + p[0]


def indices(p: Any) -> Any:
    out = np.zeros(40)
    for t in range(1, 40):
        out[t] = p[t - 1 - np.arange(t)].max() - p[np.arange(t) // 2].sum()
    return out


@pytest.mark.parametrize("program", [both_sides, steps, empty_ones, indices])
def test_ends_that_a_loop_counts(program: Any) -> None:
    f = fusec.jit(program)
    for p in (P, P[::-1].copy()):
        got, want = f(p), program(p)
        assert type(got) is type(want)
        np.testing.assert_allclose(got, want, rtol=1e-13)
    loops = f.concrete(P).control
    assert loops and all(loop.is_native and not loop.calls for loop in loops), loops


def test_a_length_of_any_size_is_numpys() -> None:
    f = fusec.jit(lambda x: np.arange(int(x[0]), int(x[1])).sum())
    for low, high in ((3, 9), (-4, 4), (5, 2)):
        x = np.array([low, high], float)
        assert f(x) == np.arange(low, high).sum()
