"""Overlapping slices of one array, written and read in turn inside branches and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check


def read_between_writes(z: Any, c: Any) -> Any:
    s = z[0]
    if c[0] > 3:
        z[:4] += 1
        z[2:] -= 1
        s = z[2]
        z[2] = 100
    return s, z


def copied_between_writes(z: Any, c: Any) -> Any:
    w = z[:3] * 1
    if c[0] > 3:
        z[:4] = 1
        z[2:] = 2
        w = z[1:4].copy()
        z[2] = 100
    return w


def read_in_a_loop(z: Any, c: Any) -> Any:
    w = np.zeros(6)
    for k in range(6):
        z[:6] += 1
        z[2:] += 2
        w[k] = z[2]
        z[2:] += k
        if c[k] > 3:
            break
    return w, z


def summed_in_a_while(z: Any, c: Any) -> Any:
    w, k = np.zeros(8), 0
    while c[k] < 3:
        z[:6] += 1
        z[2:] += 2
        w[k] = z[:6].sum()
        z[2:] += k
        k += 1
    return w


def through_names(z: Any, c: Any) -> Any:
    x, y, w = z[:6], z[2:], np.zeros(6)
    if c[0] > 9:
        pass
    else:
        for k in range(5):
            x += 1
            y += 2
            w[k] = y[0]
            x[2:] -= k
    return w, z


@pytest.mark.parametrize("program", [
    read_between_writes, copied_between_writes, read_in_a_loop, summed_in_a_while, through_names])
@pytest.mark.parametrize("first", [5.0, 1.0])
def test_reads_see_what_was_written_before_them(program: Any, first: float) -> None:
    """A kernel with two results, both an operand with elements replaced, put both in its memory."""
    check(program, np.arange(10, 18.0) * 7, np.array([first, 2, 1, 0, 4, 5, 7, 8]))
