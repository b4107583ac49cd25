"""Python values that a trace read are compared before each call."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.guards.contents import ArrayContent, Content, measure, same
from fusec.trace.guards.guard import Guard
from fusec.trace.guards.measures import Bits, Identity

WEIGHTS = [1.0, 2.0]
PAIR = (1.0, (2.0, "a"))
X = np.arange(3.0)


def scaled(x):
    return x * WEIGHTS[0] + PAIR[0]


@pytest.mark.parametrize(("a", "b"), [
    (1, True), (1, 1.0), (0.0, -0.0), ([1], (1,)), ({"a": 1}, {"a": 2}), (None, 0),
    (np.zeros(100), np.zeros(100)), (np.zeros(2), np.ones(2)),
])
def test_different_values_are_told_apart(a, b):
    assert not same(a, b)


@pytest.mark.parametrize("make", [lambda: 0.1 + 0.2, lambda: [1, (2.0, "x")], lambda: float("nan")])
def test_equal_values_are_the_same(make):
    assert same(make(), make())


def test_a_changed_list_is_noticed():
    function = fusec.jit(scaled)
    np.testing.assert_array_equal(function(X), X + 1)
    WEIGHTS[0] = 5.0
    np.testing.assert_array_equal(function(X), X * 5 + 1)
    assert function.trace_count == 2


def test_values_have_the_measures_that_they_need():
    assert type(measure(1.0)) is Bits
    assert type(measure(scaled)) is type(measure(np.ones(100))) is Identity
    assert type(measure(X)) is ArrayContent
    assert type(measure(PAIR)) is type(measure(WEIGHTS)) is Content
    assert Guard("global", "PAIR", lambda: PAIR).holds()


def test_a_redefined_helper_is_noticed():
    scope = {"np": np, "fusec": fusec}
    exec("def helper(x):\n    return x + 1\ndef entry(x):\n    return helper(x) * 2", scope)
    function = fusec.jit(scope["entry"])
    np.testing.assert_array_equal(function(X), (X + 1) * 2)
    scope["helper"] = lambda x: x - 1
    np.testing.assert_array_equal(function(X), (X - 1) * 2)


def test_methods_do_not_keep_their_instance():
    class Model:
        def __init__(self):
            self.factor = 2.0

        @fusec.jit
        def apply(self, x):
            return x * self.factor

    model = Model()
    np.testing.assert_array_equal(model.apply(X), X * 2)
    model.factor = 3.0
    np.testing.assert_array_equal(model.apply(X), X * 3)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_the_first_call_s_arrays_are_not_kept():
    array = np.arange(1000.0)
    function = fusec.jit(lambda x: x + 1)
    function(array)
    function(array)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None


ROW = np.array([1.0, 2.0])


@pytest.mark.parametrize("program", [
    lambda n: np.arange(n) * 2.0, lambda n: np.tile(ROW, n), lambda n: np.repeat(ROW, n)])
def test_a_count_that_decides_a_size(program: Any) -> None:
    """The second value made it a run-time integer, of which these could not be made."""
    jitted = fusec.jit(program)
    for n in (3, 4, 5, 3):
        np.testing.assert_array_equal(jitted(n), program(n))
    assert jitted.trace_count == 1
