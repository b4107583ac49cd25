"""Branches and loops over arrays that hold one value when they begin: each changes alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check

import fusec


def one_in_each_side(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y = x.copy()
    if x.any():
        y[2:] *= 0.0
    else:
        x[3] = 1.0
    return y


def both_in_one_side(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y = x.copy()
    if x[0] > 0:
        y[1] += 2.0
        x[2] += 3.0
    return y


def three_of_them(x: np.ndarray, y: np.ndarray) -> Any:
    u, v = x.copy(), x.copy()
    if x[0] > 0:
        u[0] = 5.0
        v[1:] = u[1:] * 2
    else:
        v[0] = 6.0
        x[1] = 7.0
    return u, v


def one_becomes_the_other(x: np.ndarray, y: np.ndarray) -> None:
    if x[0] > 0:
        x[:] = y
        x[3] = 1.0
    else:
        y[:] = x
        y[0] = 2.0


def in_a_loop(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y = x.copy()
    for k in range(40):
        if x[k % 4] > k:
            y[k % 4] += x[0]
        else:
            x[(k + 1) % 4] -= 0.5
    return y


@fusec.vectorize
def lorentz(a: float) -> float:
    """It may raise, as far as the compiler knows, so branches with it run from Python."""
    return 1.0 / (a * a + 1.0)


def step_by_step(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y = x.copy()
    if x[0] > 0:
        y[:3] = lorentz(x[:3])
    else:
        x[3] = 1.0
    return y


def step_by_step_in_a_loop(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y = x.copy()
    for k in range(40):
        if x[k % 4] > k:
            y[k % 4] += lorentz(x[0])
        else:
            x[(k + 1) % 4] -= 0.5
    return y


@pytest.mark.parametrize("start", [-1.0, 0.0, 1.0, 30.0])
@pytest.mark.parametrize("program", [
    one_in_each_side, both_in_one_side, three_of_them, one_becomes_the_other, in_a_loop,
    step_by_step, step_by_step_in_a_loop,
])
def test_arrays_of_one_value(program: Any, start: float) -> None:
    """Fuzzer's seed c1432129: the argument was written where its copy was to be."""
    check(program, np.array([start, start, 2.0, 3.0]), np.array([5.0, 6.0, 7.0, 8.0]))
    check(program, np.full(4, start), np.zeros(4))


@pytest.mark.parametrize("program", [one_in_each_side, three_of_them, step_by_step])
def test_parameters_of_one_value_have_names_of_their_own(program: Any) -> None:
    """The verifier refused them, so that no such program ran with ``config.verify``."""
    with fusec.config.override(verify=True):
        check(program, np.array([1.0, 1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0, 8.0]))


def second_results_of_loops(x: np.ndarray, y: np.ndarray) -> Any:
    total, k = x[0], x[0]
    while k < 20.0 and total < y.sum():
        total += x[1]
        k += 1.0
    if total > 1.0:
        while k < 40.0:
            k += total
    return total, k


def test_second_results_have_names_that_no_node_has() -> None:
    """``Loop_1`` was a loop, and the second result of another."""
    with fusec.config.override(verify=True):
        check(second_results_of_loops, np.array([1.0, 1.0, 2.0, 3.0]), np.array([5.0, 6.0]))
