"""Scopes inside branches and loops: placed as a whole where that meets them, else in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.passes.placement.loop_work import STEP, control_work


@pytest.fixture(autouse=True)
def two_devices() -> Any:
    with fusec.config.override(logical_cpu_devices=2, verify=True):
        yield


def devices_of(function: Any) -> list[str]:
    """Of the tasks, in the order of the plan."""
    return [a.device.short for a in function.traces[-1].build.call_plan.tasks]


def test_a_loop_is_placed_where_all_that_is_in_it_is() -> None:
    @fusec.jit
    def f(x, n):
        for _ in range(n):
            with fusec.device("/device:CPU:1"):
                x = np.sin(x) + 1
        return x

    x = np.linspace(0, 1, 50)
    f(x, 30)
    np.testing.assert_allclose(f(x, 31), f.__wrapped__(x, 31), rtol=1e-12)
    assert devices_of(f) == ["CPU:1"]
    assert f.traces[-1].control[0].is_native


def power_iteration(x, y, n):
    while x[0] < n:
        with fusec.device("/device:CPU:1"):
            y = np.sin(y) @ y
            y /= np.abs(y).max()
        with fusec.device("/device:CPU:0"):
            x = x + np.abs(x).max() + 1
            if x[1] > 5:
                x[2] = np.linalg.inv(x[:4].reshape(2, 2) + np.eye(2))[0, 0]
    return x, y


def test_a_loop_over_two_devices_runs_each_iteration_as_a_step() -> None:
    f = fusec.jit(power_iteration)
    random = np.random.default_rng(0)
    x, y = random.normal(size=300), random.normal(size=(30, 30))
    for got, want in zip(f(x, y, 1000.0), power_iteration(x, y, 1000.0), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9)
    loop = f.traces[-1].build.call_plan.externs[0].run
    assert loop.reason == "several devices have a part in it"
    body = loop.plans["body"].call_plan
    assert {a.device.short for a in body.actions} == {"CPU:0", "CPU:1"}
    assert sum(a.kind == "send" for a in body.actions) == 1


def halves(x, n):
    s, w = 0.0, np.concatenate([x, x])
    for i in range(n):
        with fusec.device("/device:CPU:1"):
            w = w[1::2] + 0.25
            g = np.arange(len(w)) * 0.5
        with fusec.device("/device:CPU:0"):
            if x[i] > 0:
                s = w.max() + g.sum()
    return s, w


def test_an_error_in_a_branch_of_an_iteration_whose_sizes_the_run_decides() -> None:
    f = fusec.jit(halves)
    x = np.arange(1.0, 17.0)
    for n in (2, 4):
        for got, want in zip(f(x, n), halves(x, n), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        f(x, 9)


def test_of_two_errors_of_an_iteration_the_programs_first_is_raised() -> None:
    """The kernel that makes the array for both is the one that fails."""
    def f(x, n):
        w, s, t = x * 0.5, 0.0, 0.0
        for _ in range(n):
            with fusec.device("/device:CPU:1"):
                w = w[:-1]
                t = w[-1]
                s = w.max()
            with fusec.device("/device:CPU:0"):
                s = s + np.linalg.det(np.eye(2) * (s + 1))
        return s, t, w

    g = fusec.jit(f)
    x = np.arange(5.0)
    for got, want in zip(g(x, 3), f(x, 3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    with pytest.raises(IndexError, match="index -1 is out of bounds for axis 0 with size 0"):
        g(x, 9)


def test_what_a_loop_over_two_devices_raises_is_the_programs_error() -> None:
    @fusec.jit
    def f(x, k):
        for i in range(40):
            with fusec.device("/device:CPU:1"):
                y = np.linalg.inv(x)
            with fusec.device("/device:CPU:0"):
                x = x + y[i % k]
        return x

    x = np.eye(3)
    f(x, 3)
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((3, 3)), 3)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        f(x, 5)
    np.testing.assert_allclose(f(x, 2), f.__wrapped__(x, 2), rtol=1e-12)


def test_a_branch_with_a_scope_on_one_side() -> None:
    @fusec.jit
    def f(x, y):
        if x[0] > 0:
            with fusec.device("/device:CPU:1"):
                return np.sort(y), np.cos(x)
        return y * 2, x

    x = np.linspace(1, 2, 20)
    for sign in (1, -1):
        got, want = f(sign * x, x[::-1].copy()), f.__wrapped__(sign * x, x[::-1].copy())
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_step_over_devices_is_estimated_to_take_longer() -> None:
    def loop(scope: Any) -> float:
        @fusec.jit
        def f(x):
            for _ in range(1000):
                with fusec.device("CPU:1"):
                    y = np.sin(x)
                with fusec.device(scope):
                    x = y + 1
            return x

        graph = f.concrete(np.ones(50)).optimized_graph
        (node,) = (n for n in graph.nodes if n.op == "Loop")
        return control_work(node, {})

    divided, whole = loop("CPU:0"), loop("CPU:1")
    assert divided == pytest.approx(whole + 1000 * STEP)
