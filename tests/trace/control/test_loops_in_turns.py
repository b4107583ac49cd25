"""Loops that exchange arrays which they write: two or three iterations are one of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def ping_pong(u: Any, n: Any) -> Any:
    new = u.copy()
    for _t in range(n):
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u, new = new, u
    return u


def both_arguments(u: Any, new: Any, n: Any) -> Any:
    for t in range(n):
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - u[:-2]) + t
        u, new = new, u
    return u.sum()


def three_in_turn(a: Any, b: Any, c: Any, n: Any) -> Any:
    for _t in range(n):
        c[1:-1] = 2 * b[1:-1] - a[1:-1] + 0.1 * (b[2:] - 2 * b[1:-1] + b[:-2])
        a, b, c = b, c, a
    return b * 1


PROGRAMS = {ping_pong: 1, both_arguments: 2, three_in_turn: 3}


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7, 400, 401])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_numpy(program: Callable[..., Any], trips: int) -> None:
    """Results and the arguments after it, for a length known while tracing and for one of data."""
    for count in (trips, np.int64(trips)):
        wanted_arrays = [np.sin(np.arange(20.0)) for _ in range(PROGRAMS[program])]
        arrays = [a.copy() for a in wanted_arrays]
        wanted = program(*wanted_arrays, count)
        found = fusec.jit(program, fp="strict")(*arrays, count)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        for a, b in zip(arrays, wanted_arrays, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_loop_is_one_of_the_graph() -> None:
    """Whatever its length, its body is there twice and not once for each iteration."""
    sizes = {len(fusec.jit(ping_pong).concrete(np.ones(20), n).graph.nodes) for n in (400, 4000)}
    assert len(sizes) == 1 and max(sizes) < 60
