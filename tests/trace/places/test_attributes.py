"""Programs that keep state in objects: attributes are read anew, and written after the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


class Model:
    """Eager: the reference."""

    def __init__(self) -> None:
        self.weights = np.ones(3)
        self.bias = np.float64(0.5)
        self.count = 0
        self.momentum = np.zeros(3)
        self.last: Any = None

    def step(self, x, rate):
        gradient = x * self.weights + self.bias
        self.weights = self.weights - rate * gradient
        self.bias -= rate * gradient.sum()
        self.count += 1
        self.momentum[...] = 0.9 * self.momentum + gradient
        self.last = gradient, "done"
        return gradient.sum()


class Compiled(Model):
    step = fusec.jit(Model.step)


def state(model: Model) -> dict[str, Any]:
    return vars(model)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(map(same, a, b))
    return type(a) is type(b) and (a == b if isinstance(a, str) else np.allclose(a, b))


def test_state_evolves_as_in_eager_numpy() -> None:
    eager, compiled = Model(), Compiled()
    x = np.arange(3.0)
    momentum = compiled.momentum
    for _ in range(5):
        assert same(eager.step(x, 0.1), compiled.step(x, 0.1))
        assert all(same(v, state(compiled)[k]) for k, v in state(eager).items())
    assert compiled.momentum is momentum  # written through, not replaced


def test_new_values_do_not_retrace() -> None:
    compiled = Compiled()
    for _ in range(4):
        compiled.step(np.arange(3.0), 0.1)
        compiled.weights = compiled.weights + 1.0
        compiled.bias = np.float64(3.0)
    assert compiled.step.trace_count == 1


def test_another_type_or_shape_is_another_trace() -> None:
    eager, compiled = Model(), Compiled()
    for model in (eager, compiled):
        model.step(np.arange(3.0), 0.1)
        model.weights = np.ones(1, np.float32)
    assert same(eager.step(np.arange(3.0), 0.1), compiled.step(np.arange(3.0), 0.1))
    assert same(eager.weights, compiled.weights)


def test_what_was_assigned_before_an_exception_stays() -> None:
    class Failing(Model):
        @fusec.jit
        def step(self, x):
            self.count += 1
            if x.sum() < 0:
                raise ValueError("negative")
            return x

    model = Failing()
    model.step(np.ones(2))
    with pytest.raises(ValueError, match="negative"):
        model.step(-np.ones(2))
    assert model.count == 2


def test_two_attributes_with_one_array() -> None:
    class Pair:
        def __init__(self) -> None:
            self.a = np.ones(3)
            self.b = self.a

    def add(pair, x):
        pair.a[0] += x
        return pair.b + 0

    jitted = fusec.jit(add)
    one, two = Pair(), Pair()
    np.testing.assert_array_equal(jitted(one, 2.0), add(two, 2.0))
    one.b, two.b = np.zeros(3), np.zeros(3)
    np.testing.assert_array_equal(jitted(one, 2.0), add(two, 2.0))


def test_an_argument_that_is_also_an_attribute() -> None:
    class Holder:
        def __init__(self) -> None:
            self.u = np.ones(3)

        @fusec.jit
        def add(self, x):
            self.u += x
            return x * 2

        @fusec.jit
        def shift(self, x):
            self.u[1:] += x[:-1]
            return x * 2

    holder = Holder()
    for method in (holder.add, holder.shift):
        for calls in (1, 4):  # a repeated call takes a shorter way
            for _ in range(calls):
                method(np.ones(3))
            with pytest.raises(fusec.UnsupportedError, match="overlaps an array"):
                method(holder.u)


def test_assignments_that_cannot_be_made_later() -> None:
    class Watched:
        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        @fusec.jit
        def step(self, x):
            self.u = x * 2
            return x

    with pytest.raises(fusec.UnsupportedError, match="assigning to the attribute 'u'"):
        Watched().step(np.ones(2))

    class Sets:
        @fusec.jit
        def step(self, x):
            self.seen = {1, 2}
            return x

    with pytest.raises(fusec.UnsupportedError, match="assigning a set"):
        Sets().step(np.ones(2))
