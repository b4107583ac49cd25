"""Lists of one object, ``[F] * n``, beside arrays that a loop goes over: a loop of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusec

STEPS = 60


def filtered(zs: Any, F: Any, rates: Any) -> Any:
    """As Kalman filters are written: a step's argument may be given for each, or for all."""
    n = len(zs)
    x, states = np.zeros(3), np.zeros((n, 3))
    for i, (z, A, rate, extra) in enumerate(zip(zs, [F] * n, rates, [None] * n, strict=True)):
        x = A @ x + rate * z
        if extra is not None:
            x = x + extra
        states[i, :] = x
    return states


def over_a_tuple(x: Any) -> Any:
    for w in (x,) * STEPS:
        x = x * 0.5 + w
    return x


def over_a_list_that_changes(x: Any) -> Any:
    arrays = [x] * STEPS
    total = x
    for i, w in enumerate(arrays):
        total = total + w
        if i + 1 < len(arrays):
            arrays[i + 1] = total * 0.5
    return total


def test_the_loop_is_one_of_the_graph() -> None:
    rng = np.random.default_rng(0)
    zs, F = rng.normal(size=(STEPS, 3)), rng.normal(size=(3, 3)) / 4
    jitted = fusec.jit(filtered)
    for rates in (np.full(STEPS, 0.5), np.full(STEPS, 0.25)):
        np.testing.assert_allclose(jitted(zs, F, rates), filtered(zs, F, rates), rtol=1e-12)
    assert len(jitted.traces[0].graph.nodes) < STEPS


def test_tuples_and_lists_that_change() -> None:
    x = np.arange(1.0, 4.0)
    for program in (over_a_tuple, over_a_list_that_changes):
        np.testing.assert_allclose(fusec.jit(program)(x), program(x), rtol=1e-12)
