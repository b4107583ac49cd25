"""The examples of "Functions, not Sessions" that concern state, each by its name there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

FLOAT = fusec.TensorSpec((), np.float32)
v: Any = None


def test_the_counter_with_matmul() -> None:
    W = fusec.Variable(np.random.default_rng(0).normal(size=(10, 10)))
    b, c = fusec.Variable(np.zeros(10)), fusec.Variable(0)

    @fusec.jit
    def f(x: Any) -> Any:
        c.assign_add(1)
        return np.matmul(x, W) + b

    x = np.ones((4, 10))
    np.testing.assert_allclose(f(x), x @ W.numpy())
    assert int(c) == 1
    f(x)
    assert int(c) == 2


def test_assign_then_read() -> None:
    v = fusec.Variable(1.0)

    @fusec.jit
    def f() -> Any:
        v.assign(2.0)
        return v.read_value()

    assert f() == 2.0


def test_two_variables() -> None:
    a, b = fusec.Variable(1.0), fusec.Variable(1.0)

    @fusec.jit
    def f() -> Any:
        a.assign(2.0)
        b.assign(3.0)
        return a + b

    assert f() == 5.0


def test_creation_on_the_first_trace() -> None:
    global v
    v = None

    @fusec.jit
    def f(x: Any) -> Any:
        global v
        if v is None:
            v = fusec.Variable(1.0)
        return np.asarray(x, np.float32) + v

    assert f(np.float32(1)) == 2.0
    assert f(np.int32(2)) == 3.0
    assert f(np.float32(1)) == 2.0
    assert f.trace_count == 2  # the first one created, and answers no other call


class ScalarModel:
    def __init__(self) -> None:
        self.v = fusec.Variable(0)

    @fusec.jit
    def increment(self, amount: Any) -> None:
        self.v.assign_add(amount)


def test_scalar_model() -> None:
    model1 = ScalarModel()
    model1.increment(np.int64(3))
    assert int(model1.v) == 3
    model1.increment(np.int64(4))
    assert int(model1.v) == 7
    model2 = ScalarModel()
    model2.increment(np.int64(5))
    assert int(model2.v) == 5


class AnyShapeModel:
    def __init__(self) -> None:
        self.v: Any = None

    @fusec.jit
    def increment(self, amount: Any) -> None:
        if self.v is None:
            self.v = fusec.Variable(np.zeros_like(amount))
        self.v.assign_add(amount)


def test_any_shape_model() -> None:
    model1 = AnyShapeModel()
    model1.increment(np.int64(3))
    assert int(model1.v) == 3
    model1.increment(np.int64(4))
    assert int(model1.v) == 7
    model2 = AnyShapeModel()
    model2.increment(np.array([4, 5]))
    assert model2.v.numpy().tolist() == [4, 5]
    model2.increment(np.array([4, 5]))
    assert model2.v.numpy().tolist() == [8, 10]
    assert (model1.increment.trace_count, model2.increment.trace_count) == (1, 1)


def add_or_sub(x: Any, do_add: bool) -> Any:
    v = fusec.Variable(5.0)
    if do_add:
        v.assign_add(x)
    else:
        v.assign_sub(x)
    return v


def test_f_add_and_f_sub() -> None:
    f_add = fusec.wrap_function(add_or_sub, FLOAT, True)
    assert [float(f_add(1.0)), float(f_add(1.0))] == [6.0, 7.0]
    f_sub = fusec.wrap_function(add_or_sub, FLOAT, False)
    assert [float(f_sub(1.0)), float(f_sub(1.0))] == [4.0, 3.0]
    assert float(f_add(1.0)) == 8.0


def test_static_local_state_is_an_error_of_jit() -> None:
    with pytest.raises(ValueError, match="nothing keeps a Variable") as caught:
        fusec.jit(add_or_sub)(np.float32(1), True)
    assert "v = fusec.Variable(5.0)" in str(caught.value)
    assert "wrap_function" in str(caught.value)


def test_wrapped_functions_own_what_they_create() -> None:
    def f(x: Any) -> Any:
        W = fusec.Variable(np.ones((10, 10)), name="weight")
        b = fusec.Variable(np.zeros(10), name="bias")
        c = fusec.Variable(0, dtype=np.int32, name="counter")
        c.assign_add(1)
        return np.matmul(x, W) + b

    wrapped = fusec.wrap_function(f, fusec.TensorSpec((4, 10)))
    np.testing.assert_array_equal(wrapped(np.ones((4, 10))), np.full((4, 10), 10.0))
    assert [variable.name for variable in wrapped.variables] == ["weight", "bias", "counter"]
    assert int(wrapped.variables[2]) == 1
