"""Functions of graphs run where the graph says, as the jitted functions that they are from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec import TensorSpec
from fusec.errors import FusecValueError

X, M = np.linspace(0.0, 1.0, 500), 2 * np.eye(3)


@fusec.jit
def f(x, m):
    with fusec.device("CPU:1"):
        y = np.sin(np.sort(x)[::-1] * 2) + 1
    with fusec.device("CPU:0"):
        z = np.linalg.inv(m)
    x[0] = z[0, 0]
    return np.cos(y) + z[0, 0]


def devices_of(function: Any, *args: Any) -> set[str]:
    with_times = function.run(*args, options=fusec.RunOptions(trace=True))[1]
    return {node.device.rpartition("device:")[2] for node in with_times.nodes}


def test_a_function_of_a_graph_runs_on_its_devices() -> None:
    with fusec.config.override(logical_cpu_devices=2):
        graph = f.trace(X, M).graph
        for function in (graph.function(), fusec.admit(graph.to_json()).function()):
            a, b = X.copy(), X.copy()
            np.testing.assert_array_equal(function(a, M), f(b, M))
            np.testing.assert_array_equal(a, b)
            assert devices_of(function, a, M) == {"CPU:0", "CPU:1"}
            a = X.copy()
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                function(a, 0 * M)
            np.testing.assert_array_equal(a, X)


def test_sizes_that_are_open_when_it_is_traced() -> None:
    @fusec.jit
    def g(x):
        with fusec.device("CPU:1"):
            y = np.sort(x, axis=0)
        with fusec.device("CPU:0"):
            return np.exp(y - y.mean(axis=0))

    with fusec.config.override(logical_cpu_devices=2):
        function = g.concrete(TensorSpec((None, 3))).graph.function()
        for rows in (4, 7):
            x = np.random.default_rng(rows).normal(size=(rows, 3))
            np.testing.assert_array_equal(function(x), g(x))
            assert devices_of(function, x) == {"CPU:0", "CPU:1"}


def test_it_is_compiled_for_the_devices_that_there_are() -> None:
    with fusec.config.override(logical_cpu_devices=2):
        function = f.trace(X, M).graph.function()
        want = function(X.copy(), M)
    with pytest.raises(FusecValueError, match="no device is /device:CPU:1"):
        function(X.copy(), M)
    with fusec.config.override(soft_placement=True):
        np.testing.assert_array_equal(function(X.copy(), M), want)
    with fusec.config.override(logical_cpu_devices=2):
        assert devices_of(function, X.copy(), M) == {"CPU:0", "CPU:1"}
