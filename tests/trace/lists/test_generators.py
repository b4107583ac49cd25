"""Generator functions whose items are taken all at once: loops of the graph."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import fusec

X = np.random.default_rng(8).random(50)


def doubled(x):
    for v in x:
        yield v * 2


def running(x, start=0.0):
    s = start
    for i in range(len(x)):
        s += x[i]
        yield s
    yield -1.0




def listed(x):
    return np.array(list(doubled(x)))


def summed(x):
    return sum(running(x, start=1.0)), max(doubled(x)), len(tuple(running(x)))


def filled(x):
    return np.fromiter(doubled(x), dtype=np.float32)


def half_taken(x):
    items = running(x)
    first = next(items)
    return first, sum(items)


def taken_in_turns(x):
    y, s = x.copy(), 0.0
    for v in doubled(y):
        y[-1] += 1.0
        s += v
    return s


@pytest.mark.parametrize("program", [listed, summed, filled, half_taken, taken_in_turns])
def test_items(program: Any) -> None:
    got, expected = fusec.jit(program)(X), program(X)
    if not isinstance(expected, tuple):
        got, expected = (got,), (expected,)
    for a, b in zip(got, expected, strict=True):
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("program", [listed, summed, filled])
def test_a_first_call_does_not_grow(program: Any) -> None:
    x = np.random.default_rng(9).random(30_000)
    fusec.jit(program)(X)
    begun = time.process_time()
    got = fusec.jit(program)(x)
    assert time.process_time() - begun < 2.0  # minutes, item by item
    np.testing.assert_allclose(np.ravel(got), np.ravel(program(x)), rtol=1e-6)
