"""``fusec.device`` and ``fusec.colocate_with`` in traces: the constraint of each node."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from samples_of_names import MERGED

import fusec
from fusec.errors import FusecError, PlacementWarning
from fusec.ir import Graph
from fusec.ir.device_names import DeviceName
from fusec.placement import device_scopes

X = np.linspace(0.5, 2.0, 3)
ONE = "/device:CPU:1"


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(device_scopes, "_dropped", set())
    with fusec.config.override(logical_cpu_devices=2):
        yield


def placed(f: Any, *args: Any) -> dict[str, set[str]]:
    """The constraints of a trace's nodes by op, those of sub-graphs too."""
    graph = (f if isinstance(f, fusec.Function) else fusec.jit(f)).trace(*args).graph
    found: dict[str, set[str]] = {}
    for node in every_node(graph):
        found.setdefault(node.op, set()).add(node.device)
    return found


def every_node(graph: Graph) -> Iterator[Any]:
    for node in graph.nodes:
        yield node
        for inner in node.graphs:
            yield from every_node(inner)


@pytest.mark.parametrize("outer, inner, merged", MERGED)
def test_nested_scopes_merge(outer, inner, merged) -> None:
    def f(x):
        with fusec.device(outer):
            y = np.exp(x)
            with fusec.device(inner):
                z = np.sin(y)
            w = np.cos(z)
        return np.tan(w)

    found = placed(f, X)
    assert found["Exp"] == found["Cos"] == {str(DeviceName.parse(outer))}
    assert found["Sin"] == {merged} and found["Tan"] == found["Input"] == {""}


def test_none_forgets_what_is_around() -> None:
    def f(x):
        with fusec.device(ONE), fusec.device(None):
            y = np.exp(x)
            with fusec.device("/device:CPU"):
                return np.sin(y)

    assert placed(f, X)["Exp"] == {""} and placed(f, X)["Sin"] == {"/device:CPU:*"}
    with fusec.device("/device:CPU:0"):
        assert placed(f, X)["Exp"] == {""}


def test_devices_of_the_list_and_names_are_specs() -> None:
    one = next(d for d in fusec.devices() if (d.type, d.index) == ("CPU", 1))

    def f(x):
        with fusec.device(one):
            y = np.exp(x)
        with fusec.device(DeviceName.parse(one.name)):
            return np.sin(y)

    assert placed(f, X)["Exp"] == placed(f, X)["Sin"] == {one.name}
    assert fusec.jit(f, device=one).device == one.name


def test_the_scope_around_the_call_is_the_outermost() -> None:
    def f(x):
        y = np.exp(x)
        with fusec.device("/job:localhost"):
            return np.sin(y)

    with fusec.device("/device:CPU:0"), fusec.device(ONE):
        found = placed(f, X)
    assert found["Exp"] == {ONE} and found["Sin"] == {f"/job:localhost{ONE}"}
    assert placed(f, X)["Exp"] == {""}


def test_a_scope_is_left_by_an_exception() -> None:
    def f(x):
        try:
            with fusec.device(ONE):
                np.exp(x)
                raise KeyError
        except KeyError:
            pass
        return np.sin(x)

    assert placed(f, X)["Sin"] == {""}
    with pytest.raises(KeyError), fusec.device(ONE):
        raise KeyError
    assert placed(f, X)["Sin"] == {""}


def test_sides_bodies_and_called_functions_inherit_it() -> None:
    @fusec.jit
    def inner(x):
        return np.tan(x)

    @fusec.jit(device="/device:CPU:0")
    def own(x):
        return np.cos(x)

    def f(x, n):
        with fusec.device(ONE):
            if x.sum() > 0:
                x = np.exp(x)
                x = x + 1.0
            else:
                x = np.sin(x)
            for _ in range(n):
                x = np.sqrt(np.abs(x))
            while x.sum() < 0:
                x = np.log(x)
        with fusec.device(ONE):
            return inner(x) + own(x)

    function = fusec.jit(f)
    function.concrete(X, 100)
    function.concrete(X, 200)
    found = placed(function, X, 300)
    for op in ("Cond", "Exp", "Sin", "Loop", "Sqrt", "Log", "Tan"):
        assert found[op] == {ONE}, op
    assert found["Cos"] == {"/device:CPU:0"}


def test_a_scope_in_a_side_is_that_side_s() -> None:
    def f(x):
        if x.sum() > 0:
            with fusec.device(ONE):
                y = np.exp(x)
        else:
            y = np.sin(x)
        return np.cos(y)

    found = placed(f, X)
    assert found["Exp"] == {ONE} and found["Sin"] == found["Cos"] == found["Cond"] == {""}


def test_functions_with_a_device_of_their_own() -> None:
    @fusec.jit(device="cpu:1")
    def f(x):
        return np.exp(x)

    partial = fusec.jit(lambda x: np.sin(x), device="/device:CPU")
    assert placed(f, X)["Exp"] == {ONE} and f.device == ONE
    with fusec.device("/job:localhost/task:0/device:CPU:0"):
        assert placed(f, X)["Exp"] == {"/job:localhost/task:0/device:CPU:1"}
        assert placed(partial, X)["Sin"] == {"/job:localhost/task:0/device:CPU:0"}
    assert placed(partial, X)["Sin"] == {"/device:CPU:*"}
    np.testing.assert_allclose(f(X), np.exp(X))


def test_methods_with_a_device() -> None:
    class Model:
        @fusec.jit(device=ONE)
        def apply(self, x):
            return np.exp(x)

    model = Model()
    assert placed(model.apply.function, X)["Exp"] == {ONE}


def test_it_decorates_functions() -> None:
    @fusec.device(ONE)
    def helper(x):
        return np.exp(x)

    def f(x):
        return np.sin(helper(x))

    found = placed(f, X)
    assert found["Exp"] == {ONE} and found["Sin"] == {""}

    @fusec.device(ONE)
    @fusec.jit
    def whole(x):
        return np.exp(x)

    np.testing.assert_allclose(whole(X), np.exp(X))
    assert whole.__wrapped__.traces[0].graph["Exp"].device == ONE
    assert placed(fusec.jit(helper), X)["Exp"] == {ONE}


def test_it_decorates_nothing_that_runs_later() -> None:
    async def coroutine(): ...

    def generator():
        yield

    async def both():
        yield

    for function in (coroutine, generator, both):
        with pytest.raises(TypeError, match="is a generator or a coroutine") as caught:
            fusec.device(ONE)(function)
        assert "put the with statement into the function" in str(caught.value)


def test_graphs_of_all_sizes() -> None:
    @fusec.jit
    def f(x):
        with fusec.device(ONE):
            return np.exp(x) * x.shape[0]

    graph = f.concrete(fusec.TensorSpec((None,), np.float64)).graph
    assert {n.device for n in graph.nodes if n.op == "Exp"} == {ONE}
    with fusec.device("/job:localhost"):
        graph = f.concrete(fusec.TensorSpec((None,), np.float64)).graph
    assert {n.device for n in graph.nodes if n.op == "Exp"} == {f"/job:localhost{ONE}"}


@pytest.mark.parametrize("product, total, device", [
    ("cpu:1", None, ONE), (None, "cpu:1", ONE), ("cpu:0", "cpu:1", ONE), ("cpu:1", "cpu:1", ONE),
])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_product_that_joins_its_sum(product, total, device, sign) -> None:
    """It does so on whatever devices, or results would depend on these."""
    @fusec.jit
    def f(x, y):
        with fusec.device(product):
            z = x * y
        with fusec.device(total):
            return z + 1.0 if sign > 0 else 1.0 - z

    graph = f.concrete(X, X).optimized_graph
    (fused,) = (n for n in every_node(graph) if n.op == "Fma")
    assert fused.device.endswith(device)
    plain = fusec.jit(lambda x, y: x * y + 1.0 if sign > 0 else 1.0 - x * y)
    np.testing.assert_array_equal(f(X, X), plain(X, X))


# -------------------------------------------------------------------------------- device functions


def test_a_function_says_the_device_of_each_node() -> None:
    seen: list[Any] = []

    def place(node):
        seen.append(node)
        return ONE if node.op == "Exp" else None

    def f(x):
        with fusec.device("/job:localhost"), fusec.device(place):
            y = np.exp(x)
            with fusec.device("/device:CPU:0"):
                return np.sin(y)

    found = placed(f, X)
    assert found["Exp"] == {f"/job:localhost{ONE}"}
    assert found["Sin"] == {"/job:localhost/device:CPU:0"}
    exp = next(node for node in seen if node.op == "Exp")
    assert exp.name == "Exp" and exp.loc.file == __file__
    (operand,) = exp.inputs
    assert operand == ("x:0", np.float64, (3,))
    with pytest.raises(AttributeError):
        exp.op = "Sin"


def test_functions_around_the_call_and_of_functions() -> None:
    with fusec.device(lambda node: "/job:localhost"), fusec.device(lambda node: "/cpu:1"):
        assert placed(lambda x: np.exp(x), X)["Exp"] == {f"/job:localhost{ONE}"}


def test_lines_of_nodes_are_not_those_of_the_function() -> None:
    def f(x):
        with fusec.device(lambda node: ONE if node.op == "Add" else None):
            return np.exp(x) + 1.0

    graph = fusec.jit(f).trace(X).graph
    lines = {node.op: node.loc.line for node in graph.nodes if node.op != "Input"}
    assert set(lines.values()) == {f.__code__.co_firstlineno + 2}


def test_what_a_function_raises_is_the_user_s() -> None:
    def place(node):
        return {"Sin": ONE}[node.op]

    def f(x):
        with fusec.device(place):
            return np.exp(x)

    with pytest.raises(KeyError) as caught:
        fusec.jit(f)(X)
    text = str(caught.value)
    assert "function test_what_a_function_raises_is_the_user_s.<locals>.place failed for" in text
    assert "raised: KeyError: 'Exp'" in text and "return np.exp(x)" in text
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("answer, error, text", [
    ("/device:CPU:7", ValueError, "there is no device /device:CPU:7"),
    ("what?", ValueError, "'what\\?' is no name of a device"),
    (3, TypeError, "a device is given by its name"),
])
def test_what_a_function_may_not_say(answer, error, text) -> None:
    def f(x):
        with fusec.device(lambda node: answer):
            return np.exp(x)

    with pytest.raises(error, match=text) as caught:
        fusec.jit(f)(X)
    assert "for:" in str(caught.value) and "Exp Exp" in str(caught.value)
    assert "return np.exp(x)" in str(caught.value) and isinstance(caught.value, FusecError)


def test_a_function_that_computes() -> None:
    norm = fusec.jit(lambda x: np.sqrt((x * x).sum()))

    def place(node):
        return ONE if norm(np.ones(4)) == 2.0 else "/device:CPU:0"

    def f(x):
        with fusec.device(place):
            return np.exp(x)

    assert placed(f, X)["Exp"] == {ONE} and norm.trace_count == 1
    assert placed(f, X).keys() == {"Input", "Exp"}


def test_a_function_that_is_traced_with_the_program() -> None:
    def f(x):
        def place(node):
            return ONE if x[0] > 1.0 else None

        with fusec.device(place):
            return np.exp(x)

    with pytest.raises(TypeError, match=r"given:   a value of the run\n  for:     Exp Exp"):
        fusec.jit(f)(X)


def test_a_function_that_cannot_be_hashed() -> None:
    class Places(dict):
        def __call__(self, node):
            return ONE

    with pytest.raises(TypeError, match="the device function is a Places, which cannot be hashed"):
        fusec.device(Places())


# -------------------------------------------------------------------------------------- colocation


def test_together_with_a_value() -> None:
    def f(x):
        free = np.exp(x)
        with fusec.device("/device:CPU"):
            part = np.sin(x)
        with fusec.device("/job:localhost/task:0/device:CPU:1"):
            whole = np.cos(x)
        with fusec.colocate_with(free):
            a = np.tan(x)
        with fusec.colocate_with(part):
            b = np.log(x)
        with fusec.colocate_with(whole):
            c = np.sqrt(x)
        with fusec.colocate_with(x):
            d = np.abs(x)
        return free + part + whole + a + b + c + d

    found = placed(f, X)
    assert found["Tan"] == {"@Exp"} and found["Log"] == {"/device:CPU:*@Sin"}
    assert found["Sqrt"] == {"/job:localhost/task:0/device:CPU:1"}
    assert found["Abs"] == {"@x"} and found["Add"] == {""}


def test_together_with_what_is_together_with_another() -> None:
    def f(x):
        first = np.exp(x)
        with fusec.colocate_with(first):
            second = np.sin(x)
        with fusec.colocate_with(second):
            return np.cos(second)

    assert placed(f, X)["Cos"] == {"@Exp"}


def test_colocation_forgets_scopes_around_and_takes_those_inside() -> None:
    def f(x):
        y = np.exp(x)
        with fusec.device("/device:CPU:0"), fusec.colocate_with(y):
            z = np.sin(x)
            with fusec.device(ONE):
                return np.cos(z)

    found = placed(f, X)
    assert found["Sin"] == {"@Exp"} and found["Cos"] == {f"{ONE}@Exp"}


@pytest.mark.parametrize("spec", ["/device:CPU:0", lambda node: "/device:CPU:0", "/device:NULL"])
def test_a_scope_that_contradicts_colocation(spec) -> None:
    def f(x):
        with fusec.device(ONE):
            y = np.exp(x)
        with fusec.colocate_with(y), fusec.device(spec):
            return np.cos(y)

    with pytest.raises(ValueError, match=r"contradicts fusec.colocate_with\(Exp\)") as caught:
        fusec.jit(f)(X)
    text = str(caught.value)
    assert f"{ONE}\n" in text and "Exp:" in text and "said:" in text
    assert ("for:" in text) is callable(spec)
    with fusec.config.override(soft_placement=True), pytest.warns(PlacementWarning):
        assert placed(f, X)["Cos"] == {f"{ONE}@Exp"}


# --------------------------------------------------------------------------------------- bad input


def test_a_device_that_is_not_there() -> None:
    scope = fusec.device("cpu:2")
    with pytest.raises(ValueError, match="there is no device /device:CPU:2") as caught:
        scope.__enter__()
    text = str(caught.value)
    assert "devices: /job:localhost/task:0/device:CPU:0, " in text and "NULL:0" in text
    assert "cure: fusec.config.logical_cpu_devices = 3" in text and "scope.__enter__()" in text


@pytest.mark.parametrize("spec, cure", [
    ("/device:GPU:0", "name one of the devices"), ("/device:CPU:64", "name one of the devices"),
    ("/job:worker/cpu:0", "name one of the devices"), ("cpu:63", "logical_cpu_devices = 64"),
])
def test_cures_for_devices_that_are_not_there(spec, cure) -> None:
    def f(x):
        with fusec.device(spec):
            return np.exp(x)

    with pytest.raises(ValueError, match="there is no device") as caught:
        fusec.jit(f)(X)
    assert cure in str(caught.value) and "with fusec.device(spec):" in str(caught.value)


def test_a_device_that_is_not_there_with_the_scope_around() -> None:
    with fusec.device("/device:NULL"), pytest.raises(ValueError, match="NULL:1") as caught, (
            fusec.device("/device:*:1")):
        raise AssertionError("unreachable")
    assert "given:   /device:*:1\n  inside:  /device:NULL:*" in str(caught.value)


@pytest.mark.parametrize("device, error, text", [
    ("nowhere?", ValueError, "is no name of a device"), (3, TypeError, "by its name"),
    (len, TypeError, "by its name"),
])
def test_devices_of_functions_are_checked_at_once(device, error, text) -> None:
    with pytest.raises(error, match=text):
        fusec.jit(lambda x: x, device=device)


def test_devices_of_functions_need_not_be_there_yet() -> None:
    f = fusec.jit(lambda x: np.exp(x), device="cpu:3")
    with pytest.raises(ValueError, match="logical_cpu_devices = 4"):
        f(X)
    with fusec.config.override(logical_cpu_devices=4):
        np.testing.assert_allclose(f(X), np.exp(X))


def test_soft_placement_leaves_a_device_out_with_one_warning() -> None:
    def f(x):
        with fusec.device("/device:CPU:1"), fusec.device("/device:GPU:5"):
            return np.exp(x)

    with fusec.config.override(soft_placement=True):
        with pytest.warns(PlacementWarning, match="/device:GPU:5, which no device has") as caught:
            assert placed(f, X)["Exp"] == {ONE}
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert placed(f, X)["Exp"] == {ONE}
            with fusec.device("/device:GPU:5"):
                assert placed(f, X)["Exp"] == {ONE}
    with pytest.raises(ValueError, match="there is no device /device:GPU:5"):
        fusec.jit(f)(X)


def test_why_scopes_are_borders_of_fusion() -> None:
    """Kernels that are placed on the same device later are apart all the same."""
    def f(x):
        with fusec.device(ONE):
            y = np.tanh(x) * 2
        z = np.exp(-y)
        with fusec.device("/device:CPU:0"):
            return np.cos(z)

    def g(x):
        with fusec.device(ONE):
            y = np.tanh(x) * 2
        with fusec.device("/device:CPU:0"):
            return np.exp(-y)

    one = "the program names a device for one of them alone"
    assert [reason.partition(": ")[2] for kernel in fusec.jit(f).concrete(X).kernels
            for reason in kernel.boundaries] == [one, one]
    (reason,) = [r for kernel in fusec.jit(g).concrete(X).kernels for r in kernel.boundaries]
    assert reason.endswith("the program puts them on different devices")
