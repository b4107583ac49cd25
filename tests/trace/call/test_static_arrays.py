"""Static arrays that the caller writes to between calls."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import fusec


@pytest.mark.parametrize("make", [np.ones, lambda n: array.array("d", [1.0] * n)])
def test_a_trace_keeps_the_numbers_it_was_made_with(make: Any) -> None:
    f = fusec.jit(lambda x, s: x + s, static="s")
    first = make(2)
    np.testing.assert_array_equal(f(np.zeros(2), first), [1, 1])
    first[0] = 5.0
    np.testing.assert_array_equal(f(np.zeros(2), first), [5, 1])
    np.testing.assert_array_equal(f(np.zeros(2), make(2)), [1, 1])


def test_one_array_that_is_static_and_written() -> None:
    @fusec.jit(static="s")
    def f(x: Any, s: Any) -> Any:
        x[0] = 5.0
        return s.sum()

    x = np.ones(3)
    with pytest.raises(fusec.errors.OverlapError, match="x is written and overlaps argument s"):
        f(x, x)
