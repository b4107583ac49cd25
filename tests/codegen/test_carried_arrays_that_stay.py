"""Arrays that a branch or loop may change and leaves as they are: in place of them nothing is
computed, also where a copy would save their old elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


def one_side_changes_it(x: Any, c: Any) -> Any:
    x = x + 1.0
    if c > 0:
        x[1:] *= 2.0
        y = x.copy()
    else:
        y = x.copy()
        y[1:] *= 0.5
    return x, y


def one_side_changes_it_in_a_loop(x: Any, c: Any) -> Any:
    x = x + 1.0
    y = x
    for i in range(40):
        if c > i:
            x[1:] *= 2.0
            y = x * 0.25
        else:
            y = x.copy()
            y[1:] *= 0.5
    return x, y


@pytest.mark.parametrize("program", [one_side_changes_it, one_side_changes_it_in_a_loop])
def test_an_array_that_one_side_leaves_as_it_is(program: Any) -> None:
    x, jitted = np.array([1.0, 2.0, 4.0]), fusec.jit(program)
    for c in (1, -1, 5):
        for got, want in zip(jitted(x, c), program(x, c), strict=True):
            np.testing.assert_array_equal(got, want)
