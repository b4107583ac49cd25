"""Results of any size in native loops: there is room for some thousand elements; a run that has
more is repeated step by step, from the state before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.structured.analyses.bounds import ROOM
from fusec.runtime.plan.control_flow import NO_ROOM

RNG = np.random.default_rng(35)


def impurity(x: Any, y: Any) -> Any:
    """Gini's, of the parts into which each column's mean splits the classes."""
    found = np.zeros(x.shape[1])
    for j in range(x.shape[1]):
        side = x[:, j] > x[:, j].mean()
        for part in (y[side], y[~side]):
            p = np.bincount(part, minlength=3) / max(len(part), 1)
            found[j] += (1.0 - (p * p).sum()) * len(part)
    return found


def weighted(x: Any, y: Any) -> Any:
    total = 0.0
    for j in range(x.shape[1]):
        total += np.bincount(y + j, weights=x[:, j])[-1] + len(np.bincount(y + 2 * j))
    return total


def written(x: Any, y: Any) -> Any:
    """Changes an array before a result has no room."""
    x = x.copy()
    for j in range(x.shape[1]):
        x[:, j] += 1.0
        counted = np.bincount(y * (j + 1))
        x[0, j] += counted.max() + len(counted)
    return x


def repeated(x: Any, y: Any) -> Any:
    total = 0.0
    for j in range(x.shape[1]):
        total += (np.repeat(x[:, j], y) ** 2).sum()
    return total


def chosen(x: Any, y: Any) -> Any:
    most = 0
    for j in range(x.shape[1]):
        if x[j, j] > 0.0:
            most = max(most, np.bincount(y, minlength=j).max())
    return most


PROGRAMS: list[Callable[..., Any]] = [impurity, weighted, written, repeated, chosen]


def given(most: int, rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
    return RNG.normal(size=(rows, 20)), RNG.integers(0, most, rows)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_small_results_are_native_and_large_ones_are_right(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    for most in (3, 1, ROOM - 20, 3 * ROOM, 5):
        x, y = given(most)
        np.testing.assert_allclose(jitted(x, y), program(x, y), rtol=1e-12)
    assert all(control.is_native for control in jitted.traces[0].control)
    assert NO_ROOM in str(fusec.explain(jitted, x, y))


def test_an_argument_is_as_numpy_leaves_it_where_a_result_had_no_room() -> None:
    def program(x: Any, y: Any) -> Any:
        for j in range(x.shape[1]):
            x[:, j] *= 2.0
            x[0, j] += len(np.bincount(y * j))

    jitted = fusec.jit(program)
    for most in (3, 3 * ROOM):
        x, y = given(most)
        ours = x.copy()
        jitted(ours, y)
        program(x, y)
        np.testing.assert_array_equal(ours, x)


def test_what_is_negative_raises_as_numpy_does() -> None:
    def program(x: Any, y: Any) -> Any:
        for j in range(x.shape[1]):
            x[0, j] = np.bincount(y - j, minlength=4)[0]

    jitted = fusec.jit(program)
    x, y = given(3)
    ours, y = x.copy(), y + 5
    y[7] = 5
    for function, array in ((jitted, ours), (program, x)):
        with pytest.raises(ValueError, match="must have no negative elements"):
            function(array, y)
    np.testing.assert_array_equal(ours[:, :5], x[:, :5])


def test_the_largest_int_has_no_counter() -> None:
    """One more is negative.  NumPy is not asked: it makes few counters, and counts outside of them.
    """
    def program(x: Any, y: Any) -> Any:
        for j in range(x.shape[1]):
            x[0, j] = len(np.bincount(y + 0 * j, minlength=4))

    jitted = fusec.jit(program)
    x, y = given(3)
    jitted(x, y)
    assert jitted.traces[0].control[0].is_native
    y[7] = 2**63 - 1
    with pytest.raises((ValueError, MemoryError)):
        jitted(x, y)
