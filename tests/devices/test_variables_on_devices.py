"""A Variable lives on the device in whose scope it is made; graphs say so of its input."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import numpy as np
import pytest

import fusec
from fusec.errors import PlacementWarning

DEFAULT = "/job:localhost/task:0/device:CPU:0"
ONE = "/job:localhost/task:0/device:CPU:1"
X = np.linspace(0.5, 2.0, 3)


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2):
        yield


def on(spec, value=1.0, name=None) -> fusec.Variable:
    with fusec.device(spec):
        return fusec.Variable(value, name=name)


@pytest.mark.parametrize("spec, device", [
    (None, DEFAULT), ("", DEFAULT), ("/device:CPU:*", DEFAULT), ("cpu:1", ONE), (ONE, ONE),
    ("/device:*:1", ONE), ("/job:localhost", DEFAULT),
    ("/device:REFERENCE", "/job:localhost/task:0/device:REFERENCE:0"),
    (lambda node: "cpu:1" if node.op == "Variable" and node.name == "W" else None, ONE),
    (lambda node: None, DEFAULT),
])
def test_it_lives_where_it_is_made(spec, device) -> None:
    assert fusec.Variable(1.0).device == DEFAULT
    variable = on(spec, name="W")
    assert variable.device == device
    with fusec.device("cpu:0"):
        assert variable.device == device


def test_the_device_cannot_be_assigned() -> None:
    with pytest.raises(AttributeError):
        fusec.Variable(1.0).device = ONE


def test_repr_says_a_device_that_a_scope_said() -> None:
    assert repr(on("cpu:1", name="W")) == f"<fusec.Variable W float64[] on {ONE}\n1.0>"
    assert "on" not in repr(on(None)).split() and "on" not in repr(on("cpu:0")).split()


def test_copies_keep_the_device() -> None:
    variable = on("cpu:1", X, "W")
    with fusec.device("cpu:0"):
        for other in (copy.copy(variable), copy.deepcopy(variable),
                      pickle.loads(pickle.dumps(variable))):
            assert other.device == ONE and other.name == "W"
            np.testing.assert_array_equal(other.numpy(), X)
    with fusec.device("cpu:1"):
        assert pickle.loads(pickle.dumps(on(None))).device == DEFAULT


def test_checkpoints_restore_values_and_no_devices(tmp_path) -> None:
    pytest.importorskip("safetensors")
    saved = {"a": on("cpu:1", X, "a"), "b": on(None, X, "b")}
    path = fusec.Checkpoint(model=saved).save(tmp_path / "saved")
    other = {"a": on("cpu:1", X * 0, "a"), "b": on("cpu:1", X * 0, "b")}
    fusec.Checkpoint(model=other).restore(path)
    assert [v.device for v in other.values()] == [ONE, ONE]
    np.testing.assert_array_equal(other["a"].numpy(), X)


def test_graphs_say_the_device_of_its_input() -> None:
    near, far = on(None, X, "near"), on("cpu:1", X, "far")

    @fusec.jit
    def f(x):
        far.assign_add(x)
        return np.exp(far) + near

    graph = f.trace(X).graph
    assert [(v.node.name, v.node.device) for v in graph.inputs] == [
        ("x", ""), ("far", ONE), ("near", "")]
    assert graph["Exp"].device == "" and graph["Add"].device == ""  # the input alone
    optimized = f.concrete(X).optimized_graph
    assert optimized["far"].device == ONE
    again = fusec.admit(graph.to_json())
    assert again["far"].device == ONE
    np.testing.assert_allclose(f(X), np.exp(2 * X) + X)
    np.testing.assert_allclose(f(X), np.exp(3 * X) + X)


def test_variables_made_in_a_trace() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = None

        @fusec.jit
        def apply(self, x):
            if self.w is None:
                with fusec.device("cpu:1"):
                    self.w = fusec.Variable(np.ones(3), name="w")
            return x * self.w

    model = Model()
    np.testing.assert_allclose(model.apply(X), X)
    assert model.w.device == ONE
    with fusec.device("cpu:0"):
        np.testing.assert_allclose(model.apply(X), X)
    assert model.w.device == ONE


def test_variables_made_in_functions_with_a_device() -> None:
    def f(x):
        return x * fusec.Variable(np.ones(3), name="w")

    wrapped = fusec.wrap_function(fusec.jit(f, device="cpu:1"), fusec.TensorSpec((3,)))
    assert wrapped.variables[0].device == ONE
    np.testing.assert_allclose(wrapped(X), X)


def test_together_with_a_variable() -> None:
    far = on("cpu:1", X, "far")

    @fusec.jit
    def f(x):
        with fusec.device("/device:CPU:0"), fusec.colocate_with(far):
            y = np.exp(x)
            with fusec.device("/device:CPU"):
                y = np.sin(y)
        return np.cos(y)

    graph = f.trace(X).graph
    assert graph["Exp"].device == graph["Sin"].device == ONE and graph["Cos"].device == ""
    with fusec.colocate_with(far):  # outside of a trace, as for slots of an optimizer
        assert fusec.Variable(0.0).device == ONE
        assert fusec.jit(lambda x: np.exp(x)).trace(X).graph["Exp"].device == ONE


def test_a_scope_that_contradicts_the_variable() -> None:
    far = on("cpu:1", X, "far")
    with fusec.colocate_with(far), pytest.raises(
            ValueError, match=r"contradicts fusec.colocate_with\(Variable far\)") as caught, (
            fusec.device("cpu:0")):
        raise AssertionError("unreachable")
    assert f"Variable far: {ONE}" in str(caught.value)
    with fusec.config.override(soft_placement=True), fusec.colocate_with(far):
        with pytest.warns(PlacementWarning, match="together with Variable far"):
            slot = on("/device:CPU:0")
        assert slot.device == ONE


def test_colocation_with_a_variable_whose_device_has_gone() -> None:
    far = on("cpu:1", X, "far")
    with fusec.config.override(logical_cpu_devices=1):
        with pytest.raises(ValueError, match=f"there is no device {ONE}"), (
                fusec.colocate_with(far)):
            raise AssertionError("unreachable")
        np.testing.assert_allclose(fusec.jit(lambda x: x + far)(X), 2 * X)  # its value is here
        with fusec.config.override(soft_placement=True), pytest.warns(PlacementWarning), (
                fusec.colocate_with(far)):
            assert fusec.Variable(0.0).device == DEFAULT


def test_colocation_with_arrays_does_nothing_outside() -> None:
    with fusec.colocate_with(X):
        assert fusec.Variable(0.0).device == DEFAULT


def test_an_assignment_on_another_device_names_both() -> None:
    with fusec.config.override(logical_cpu_devices=2):
        with fusec.device("CPU:1"):
            v = fusec.Variable(np.zeros(3), name="v")

        @fusec.jit
        def f(x):
            with fusec.device("CPU:0"):
                v.assign_add(np.sin(x))
            return v.read_value()

        @fusec.jit
        def part(x):
            with fusec.device("CPU:0"):
                v[1:] = x[1:]

        x = np.ones(3)
        for function in (f, part):
            with pytest.raises(ValueError, match="another device than it lives on") as raised:
                function(x)
            text = str(raised.value)
            assert "CPU:1" in text and "/device:CPU:0" in text and "colocate_with" in text
            assert "v.assign_add" in text or "v[1:]" in text
        assert not v.numpy().any()

        @fusec.jit
        def beside(x):
            with fusec.device("CPU:0"):
                y = np.sin(x)
                with fusec.colocate_with(v):
                    v.assign_add(y)
            return v.read_value() + y

        np.testing.assert_allclose(beside(x), 2 * np.sin(x))
        with fusec.config.override(soft_placement=True):
            f(x)
        np.testing.assert_allclose(v.numpy(), 2 * np.sin(x))
