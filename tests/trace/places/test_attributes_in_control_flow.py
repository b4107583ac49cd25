"""Attributes assigned in branches and loops that data decides."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import fusec


class State:
    def __init__(self) -> None:
        self.total, self.count, self.last = 0.0, 0, None
        self.x = np.arange(4.0)
        self.scale = 2.0

    def add(self, value: Any) -> None:
        self.total += value
        self.count += 1


TABLE = np.zeros(5)


def in_a_branch(state, x):
    if x[0] > 0:
        state.total = x.sum()
        state.x = state.x + x
    else:
        state.count = state.count + 1
    return state.total * 2, state.x


def on_both_sides(state, x):
    if x[0] > 0:
        state.total, state.scale = x[1], 3.0
    else:
        state.total, state.scale = x[2], 4.0
    return state.total + state.scale


def in_a_loop(state, x):
    for value in x:
        for _ in range(20):
            if value > 0:
                state.add(value)
    return state.count


def in_a_while_loop(state, x):
    while state.total < 100.0:
        state.add(x[0] * x[0] + 1.0)
        state.x = state.x * 1.5
    return state.total


def starts_as_none(state, x):
    steps = 0.0
    for i in range(40):
        value = x[i % 4]
        steps += 0.0 if state.last is None else abs(value - state.last)
        state.last = value
    return steps


def with_break(state, x):
    for i in range(50):
        state.add(x[i % 4])
        if state.total > 3.0:
            break
    return i


def in_an_operand(state, x):
    def grow():
        state.add(1.0)
        return state.total > 0

    return x[0] > 0 and grow(), state.total


def of_an_object_made_in_the_call(state, x):
    own = State()
    if x[0] > 0:
        own.total = x[1]
    for i in range(30):
        own.add(x[i % 4])
    return own.total, own.count


def of_two_objects(state, x):
    other = State()
    for i in range(30):
        state.total += x[i % 4]
        if x[i % 4] > 0:
            other.total += state.total
    state.scale = other.total
    return other.total


CASES = (
    in_a_branch, on_both_sides, in_a_loop, in_a_while_loop, starts_as_none, with_break,
    in_an_operand, of_an_object_made_in_the_call, of_two_objects,
)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_results_and_objects_as_in_numpy(function: Any, sign: float) -> None:
    compiled = fusec.jit(function)
    x = sign * np.array([0.5, -1.25, 2.0, 0.75])
    mine, numpys = State(), State()
    for _ in range(3):
        assert_same(compiled(mine, x), function(numpys, x))
        for name in vars(numpys):
            assert_same(getattr(mine, name), getattr(numpys, name))


def assert_same(a: Any, b: Any) -> None:
    if type(b) is tuple:
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
        return
    assert np.asarray(a).dtype == np.asarray(b).dtype
    np.testing.assert_allclose(a, b, rtol=1e-12) if b is not None else None


def test_an_attribute_that_is_not_assigned_stays_the_object_it_is() -> None:
    @fusec.jit
    def maybe(state, x):
        for i in range(30):
            if x[i % 4] > 5:
                state.total = x[0]
        state.x[1:] = x[:3]
        return x

    state = State()
    held = state.x
    maybe(state, np.ones(4))
    assert state.x is held and held.tolist() == [0, 1, 1, 1]
    assert state.total == 0.0


def test_an_array_first_read_in_a_loop_is_written_back() -> None:
    @fusec.jit
    def fill(x):
        for i in range(40):
            TABLE[i % 5] += x[0]
        return x

    TABLE[:] = 0
    fill(np.ones(3))
    fill(np.ones(3))
    assert TABLE.tolist() == [16.0] * 5


def test_an_attribute_that_only_one_side_makes_is_refused() -> None:
    @fusec.jit
    def make(state, x):
        if x[0] > 0:
            state.fresh = x[0]
        return x

    with pytest.raises(fusec.errors.UnsupportedError, match=r"State\.fresh"):
        make(State(), np.ones(3))


def test_objects_are_left_alone_when_tracing_fails() -> None:
    state = State()
    before = copy.deepcopy(vars(state))

    @fusec.jit
    def fail(state, x):
        if x[0] > 0:
            state.total = 5.0
        return x @ np.ones((7, 7))

    with pytest.raises(ValueError, match="7"):
        fail(state, np.ones(3))
    assert_same(state.total, before["total"])


def test_a_default_of_the_class_is_what_the_attribute_holds_before() -> None:
    class Branching:
        u = 0.0

        @fusec.jit
        def step(self, x):
            if x.sum() > 0:
                self.u = x.sum()
            return self.u + 1

    found = Branching()
    assert found.step(-np.ones(2)) == 1.0 and found.u == 0.0
    assert found.step(np.ones(2)) == 3.0 and found.u == 2.0
