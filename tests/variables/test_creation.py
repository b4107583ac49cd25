"""Where functions may create Variables, and who keeps them alive."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import fusec


def test_later_traces_create_none() -> None:
    kept = []

    @fusec.jit
    def f(x: Any) -> Any:
        if len(x) > 2:
            kept.append(fusec.Variable(1.0, name="late"))
        return x * 2

    f(np.zeros(2))
    with pytest.raises(ValueError, match="f creates Variable late after its first call") as caught:
        f(np.zeros(3))
    assert "kept.append(" in str(caught.value) and "if self.v is None" in str(caught.value)


def test_the_second_trace_creates_none() -> None:
    class Model:
        @fusec.jit
        def __call__(self, x: Any) -> Any:
            self.v = fusec.Variable(x)
            return self.v + 1

    model = Model()
    assert model(1.0) == 2.0
    with pytest.raises(ValueError, match="after its first call"):
        model(1.0)
    assert Model()(1.0) == 2.0  # each instance may
    (made := Model())(1.0)
    kept = made.v
    assert made.v is kept and float(kept) == 1.0


def test_layers_made_of_the_first_argument() -> None:
    class Model:
        def __init__(self) -> None:
            self.layers: list[Any] = []
            self.bias: Any = None

        @fusec.jit
        def __call__(self, x: Any) -> Any:
            if not self.layers:
                for i in range(3):
                    self.layers.append(fusec.Variable(np.eye(len(x)) * (i + 1), name=f"W{i}"))
                self.bias = fusec.Variable(x * 2)
            for W in self.layers:
                x = x @ W
            return x + self.bias

    model, x = Model(), np.array([1.0, 2.0])
    for _ in range(3):
        np.testing.assert_array_equal(model(x), x * 8)
    np.testing.assert_array_equal(model(x * 0), x * 2)
    assert (len(model.layers), model.__call__.trace_count) == (3, 1)


def test_where_data_decides() -> None:
    class Model:
        v: Any = None

        @fusec.jit
        def __call__(self, x: Any) -> Any:
            if x.sum() > 0:
                self.v = fusec.Variable(1.0)
            return x

    with pytest.raises(NotImplementedError, match="in a branch or loop that data decides"):
        Model()(np.zeros(3))


def test_a_first_call_that_raises_may_be_made_again() -> None:
    class Model:
        v: Any = None

        @fusec.jit
        def __call__(self, x: Any, i: Any) -> Any:
            if self.v is None:
                self.v = fusec.Variable(np.zeros(3))
            self.v.assign_add(x)
            return x[i]

    model, x = Model(), np.ones(3)
    with pytest.raises(IndexError):
        model(x, np.array([7]))
    for count in (1, 2):
        model(x, np.array([1]))
        assert model.v[0] in (count, count + 1)  # assigned before the raise, or not at all


def test_stages_of_what_creates() -> None:
    class Model:
        v: Any = None

        @fusec.jit
        def __call__(self, x: Any) -> Any:
            if self.v is None:
                self.v = fusec.Variable(x)
            return self.v + x

    model = Model()
    assert model.__call__.trace(1.0).graph.updates
    with pytest.raises(ValueError, match="when it is first called"):
        model.__call__.concrete(1.0)
    assert model.v is None
    assert (model(1.0), model(1.0)) == (2.0, 2.0)


def test_functions_keep_no_variable_alive() -> None:
    holder = {"w": fusec.Variable(np.ones(1000), name="w")}
    f = fusec.jit(lambda x: holder["w"] * x)
    f(1.0)
    concrete = f.concrete(1.0)
    assert concrete.variables == (holder["w"],)
    buffer, variable = weakref.ref(holder["w"].buffer), weakref.ref(holder["w"])
    del holder["w"]
    assert variable() is None and f.trace_count == 0
    with pytest.raises(ReferenceError, match="Variable w, which <lambda> uses, is gone"):
        concrete.run(1.0)
    del concrete
    gc.collect()
    assert buffer() is None
    with pytest.raises(KeyError):
        f(1.0)
    holder["w"] = fusec.Variable(np.full(1000, 2.0))
    assert f(1.0)[0] == 2.0


def test_a_deleted_function_frees_what_it_created() -> None:
    def f(x: Any) -> Any:
        v = fusec.Variable(np.zeros(3))
        return v.assign_add(x)

    wrapped = fusec.wrap_function(f, fusec.TensorSpec((3,)))
    assert wrapped(np.ones(3)).tolist() == wrapped.variables[0].numpy().tolist() == [1, 1, 1]
    found = [weakref.ref(wrapped.variables[0]), weakref.ref(wrapped.variables[0].buffer)]
    del wrapped
    gc.collect()
    assert [reference() for reference in found] == [None, None]


def test_trainable_variables() -> None:
    w, n = fusec.Variable(1.0), fusec.Variable(0, trainable=False)

    @fusec.jit
    def f(x: Any) -> Any:
        n.assign_add(1)
        return x * w

    concrete = f.concrete(1.0)
    assert concrete.variables == (n, w) and concrete.trainable_variables == (w,)
    assert int(n) == 0  # nothing has run


@pytest.mark.parametrize("args,kind,said", [
    ((fusec.TensorSpec((None,)),), ValueError, "sizes that are not known"),
    ((fusec.TensorSpec((3,)), 1), TypeError, "argument"),
])
def test_what_cannot_be_wrapped(args: Any, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said):
        fusec.wrap_function(lambda x: x + 1, *args)


def test_first_values_of_wrapped_functions_are_constants() -> None:
    with pytest.raises(ValueError, match="begins with a value that") as caught:
        fusec.wrap_function(lambda x: fusec.Variable(x * 2), fusec.TensorSpec((3,)))
    assert "give a constant" in str(caught.value)


@pytest.mark.parametrize("args", [(), (1.0, 2.0), (np.ones(4),)])
def test_calls_of_wrapped_functions_that_do_not_fit(args: Any) -> None:
    with pytest.raises(TypeError):
        fusec.wrap_function(lambda x: x + 1, fusec.TensorSpec((3,)))(*args)


def test_arguments_are_not_kept_alive() -> None:
    f = fusec.jit(lambda v, x: v.assign_add(x))
    g = fusec.jit(lambda layers, x: layers["w"] * x)
    a, b = fusec.Variable(np.zeros(2)), fusec.Variable(np.zeros(2))
    for _ in range(3):
        f(a, 1.0)
        f(b, 2.0)
        g({"w": a}, 1.0)
    assert (a.numpy().tolist(), b.numpy().tolist(), f.trace_count) == ([3, 3], [6, 6], 1)
    assert f.concrete(a, 1.0).structured_inputs[0][0] is a
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None and (f.trace_count, g.trace_count) == (1, 1)
    for _ in range(3):
        assert f(fusec.Variable(np.ones(2)), 1.0).tolist() == [2, 2]


def test_jitted_functions_are_wrapped_like_others() -> None:
    """With their rounding, and numbers are converted to the specs' dtypes."""
    @fusec.jit(fp="strict")
    def count(x: Any, up: bool) -> Any:
        total = fusec.Variable(5.0)
        return total.assign_add(x) if up else total.assign_sub(x)

    wrapped = fusec.wrap_function(count, fusec.TensorSpec(()), True)
    assert [float(wrapped(x)) for x in (1.0, 2, np.float64(3))] == [6.0, 8.0, 11.0]
    assert wrapped._function.fp == "strict"
