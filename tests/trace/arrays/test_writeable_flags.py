"""``x.flags.writeable`` of arguments: a trace that asked answers calls with the same flag only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


def asks(x: Any) -> Any:
    return x.flags.writeable, x * 2.0


def tries(x: Any) -> Any:
    try:
        x[0] = 2.0
    except ValueError:
        x = x.copy()
        x[0] = 3.0
    return x.sum()


def asks_in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(int(x[0]) + 1):
        total += x[k] if x.flags.writeable else 10.0 * x[k]
    return total


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("f", [asks, tries, asks_in_a_loop])
def test_both_ways(f: Any, first: bool) -> None:
    jitted = fusec.jit(f)
    for writeable in (first, not first, first, not first):
        x, y = np.ones(3), np.ones(3)
        x.flags.writeable = y.flags.writeable = writeable
        got, want = jitted(x), f(y)
        if isinstance(want, tuple):
            assert got[0] is want[0]
        else:
            assert got == want
        np.testing.assert_array_equal(x, y)
