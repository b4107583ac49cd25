"""Parts of arrays that are set from others: kernels change the array itself, and read first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends


def rows_then_columns(u: Any) -> Any:
    u[0] = u[1]
    u[-1] = u[-2]
    u[:, 0] = u[:, -2]
    u[:, -1] = u[:, 1]
    return u


def moved_inwards(u: Any) -> Any:
    """Each border is added to its neighbours, and emptied."""
    u[:, 1] += u[:, -1]
    u[:, -2] += u[:, 0]
    u[:, -1] = u[:, 0] = 0
    u[2] += u[-1] * u[0]
    u[-1] = 0
    return u


def exchanged(u: Any) -> Any:
    """The new value of each part lies in the other: no order of the two does."""
    first = u[0].copy()
    u[0] = u[-1]
    u[-1] = first
    u[:, 0], u[:, 2] = u[:, 2].copy(), u[:, 0].copy()
    return u


def in_a_ring(u: Any) -> Any:
    """A row after the other is set from the one before it was set."""
    a, b, c = u[0].copy(), u[1].copy(), u[2].copy()
    u[1], u[2], u[0] = a, b, c
    return u


def overlapping(u: Any) -> Any:
    """A region that is read overlaps a part of one that is written."""
    u[1:3] = u[:2].copy()
    u[:, 1:] = u[:, :-1] + u[:, 1:]
    return u


def read_later(u: Any) -> Any:
    """The array as it was before is read at another place, and at this one."""
    before = u.copy()
    u[0] = u[1] + 1
    u[1, 2:] = before[2, 2:] + before[0, 2:]
    return u + before, u


def sum_in_place(u: Any) -> Any:
    """An array that nothing else reads gives its memory to the sum."""
    total, other = u * 2, u + 1
    for k in range(4):
        other = total * other - k
        total = total + other[::-1]
    return total, other


PROGRAMS = [rows_then_columns, moved_inwards, exchanged, in_a_ring, overlapping, read_later,
            sum_in_place]


def repeated(program: Any) -> Any:
    def loop(u: Any, steps: Any) -> Any:
        result = u = u * 1.0
        for _ in range(steps):
            result = program(u)
        return result, u
    return loop


def assert_same(got: Any, want: Any) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("using", ["cpu", "cudahost"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_numpy(program: Any, using: str) -> None:
    with backends.using(using):
        for dtype in (np.float64, np.complex128):
            got, want = (np.arange(30, dtype=dtype).reshape(5, 6) ** 2 for _ in range(2))
            assert_same(np.asarray(fusec.jit(program, fp="strict")(got)), np.asarray(program(want)))
            assert_same(got, want)


@pytest.mark.parametrize("using", ["cpu", "cudahost"])
@pytest.mark.parametrize("program", PROGRAMS[:-2], ids=lambda f: f.__name__)
def test_in_loops(program: Any, using: str) -> None:
    loop = repeated(program)
    with backends.using(using):
        jitted, u = fusec.jit(loop, fp="strict"), np.arange(30.0).reshape(5, 6) / 7
        for steps in (1, 3, 0, 2):
            assert_same(jitted(u, steps), loop(u, steps))


@pytest.mark.parametrize("program", [rows_then_columns, moved_inwards])
def test_nothing_is_copied(program: Any) -> None:
    """One array in the whole loop, and rows."""
    (control,) = fusec.jit(repeated(program)).concrete(np.ones((50, 60)), 400).control
    body = str(control.structured).partition("loop:")[2].partition("\n  r")[0]
    assert "of 24000 bytes" not in body and "exchange" not in body, body
