"""Name scopes, control edges and colocation: in traces, and kept by every pass."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError, UnsupportedError
from fusec.ir import Graph
from fusec.ops.graphs.carve import carve
from fusec.ops.graphs.verify import VerificationError
from fusec.ops.graphs.verify_pass import verify_pass
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import run_pipeline

X = np.linspace(0.5, 2.0, 3)


def names(graph: Graph) -> set[str]:
    inner = {name for node in graph.nodes for g in node.graphs for name in names(g)}
    return {n.name for n in graph.nodes if n.op not in ("Input", "Fused")} | inner


def scoped(x, n):
    with fusec.name_scope("layer1"):
        y = np.exp(x) * 2.0 + x**3
        with fusec.name_scope("inner"):
            z = y.mean() + np.var(y)
    total = x * 0.0
    with fusec.name_scope("loop"):
        for i in range(n):
            total = total + np.sqrt(y) * i
    return total * z


def test_names_begin_with_their_scopes() -> None:
    graph = fusec.jit(scoped).concrete(X, 2).graph
    found = {n.op: n.name for n in graph.nodes}
    assert found["Exp"] == "layer1/Exp" and found["Mean"] == "layer1/inner/Mean"
    assert found["Sqrt"].startswith("loop/Sqrt") and graph["x"].op == "Input"
    np.testing.assert_allclose(fusec.jit(scoped)(X, 2), scoped(X, 2))


def test_names_of_loops_that_are_not_unrolled() -> None:
    function = fusec.jit(scoped)
    function(X, 2), function(X, 3)
    graph = function.concrete(X, 1000).graph
    (loop,) = (n for n in graph.nodes if n.op == "Loop")
    assert loop.name == "loop/Loop"
    assert all(name.startswith("loop/") for g in loop.graphs for name in names(g))


def test_what_passes_make_stays_in_the_scope() -> None:
    """Decompositions, powers, products with sums, folded constants."""
    @fusec.jit
    def f(x):
        with fusec.name_scope("all"):
            y = x**3 * 2.0 + x
            return y.mean(), np.var(y), np.where(y > 1.0, y, -y) + np.sin(2.0)

    optimized = f.concrete(X).optimized_graph
    assert all(name.startswith("all/") for name in names(optimized)), names(optimized)


def test_parameters_are_in_no_scope() -> None:
    weights = {"W": np.ones(3)}

    @fusec.jit
    def f(x):
        with fusec.name_scope("layer"):
            return x * weights["W"]

    assert [v.node.name for v in f.concrete(X).graph.inputs] == ["x", "weights_W"]


def test_a_scope_is_left_by_an_exception() -> None:
    @fusec.jit
    def f(x):
        try:
            with fusec.name_scope("lost"):
                np.exp(x)
                raise KeyError
        except KeyError:
            pass
        return np.sin(x)

    assert f.concrete(X).graph.outputs[0].name == "Sin:0"


def test_threads_share_a_scope() -> None:
    scope = fusec.name_scope("shared")
    functions = [fusec.jit(lambda x, k=k: _in(scope, x, k)) for k in range(8)]
    found: list[set[str]] = []
    threads = [threading.Thread(target=lambda f=f: found.append(names(f.concrete(X).graph)))
               for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all("Sin" in group and "shared/Exp" in group for group in found)


def _in(scope, x, k):
    with scope:
        y = np.exp(x)
    return np.sin(y) * k


@pytest.mark.parametrize("name", ["", "1x", "a b", "a//b", "a:0", None, 3, "é\0"])
def test_what_is_no_name(name) -> None:
    with pytest.raises(ValueError, match="no name of a scope"):
        fusec.name_scope(name)


def test_scopes_do_nothing_outside() -> None:
    with fusec.name_scope("a"), fusec.control_dependencies([X]), fusec.colocate_with(X):
        assert (X + 1).shape == (3,)


# ------------------------------------------------------------------------------------ control edges


@fusec.jit
def ordered(x):
    first = np.exp(x)
    with fusec.control_dependencies([first]):
        then = np.cos(x) * 2.0
    return then, np.sin(x)


def test_control_edges_are_in_the_graph() -> None:
    graph = ordered.concrete(X).graph
    assert [n.name for n in graph["Cos"].control_inputs] == ["Exp"]
    assert graph["Sin"].control_inputs == ()
    text = fusec.admit(graph.to_json())
    assert [n.name for n in text["Cos"].control_inputs] == ["Exp"]


def test_control_edges_are_kept_by_every_pass() -> None:
    graph = ordered.concrete(X).graph
    optimized = run_pipeline(graph, PassOptions(verify=True))
    verify_pass(graph, optimized)
    homes = {n.name: node for node in optimized.nodes
             for n in (node.attrs["body"].nodes if node.op == "Fused" else [node])
             if n.op != "Input"}
    assert homes["Exp"] is not homes["Cos"]
    assert homes["Exp"] in homes["Cos"].control_inputs
    for value, expected in zip(ordered(X), (np.cos(X) * 2.0, np.sin(X)), strict=True):
        np.testing.assert_allclose(value, expected)


def test_a_lost_edge_is_found() -> None:
    graph = ordered.concrete(X).graph
    bare = fusec.jit(lambda x: (np.cos(x) * 2.0, np.sin(x))).concrete(X).graph
    with pytest.raises(VerificationError, match="had to run after 'Exp'"):
        verify_pass(graph, bare)


def test_carving_keeps_edges() -> None:
    part = carve(ordered.concrete(X).graph, outputs=["Cos:0"])
    assert [n.name for n in part["Cos"].control_inputs] == ["Exp"]
    fed = carve(ordered.concrete(X).graph, ["x:0", "Exp:0"], ["Cos:0"])
    assert fed["Cos"].control_inputs == ()


def test_control_edges_in_branches_and_loops() -> None:
    @fusec.jit
    def f(x, n):
        total = x * 0.0
        for i in range(n):
            first = np.exp(x) * i
            with fusec.control_dependencies([first]):
                total = total + np.cos(x) + first
        return total

    f(X, 2), f(X, 3)
    graph = f.concrete(X, 400).graph
    (loop,) = (n for n in graph.nodes if n.op == "Loop")
    edges = [n for n in loop.attrs["body"].nodes if n.control_inputs]
    assert edges and all(c in loop.attrs["body"].nodes for n in edges for c in n.control_inputs)
    np.testing.assert_allclose(f(X, 400), f.python_function(X, 400))


def test_a_loop_runs_after_what_is_around_it() -> None:
    @fusec.jit
    def f(x, n):
        first, total = np.exp(x), x * 0.0
        with fusec.control_dependencies([first]):
            for i in range(n):
                total = total + np.cos(x) * i
        return total, first

    f(X, 2), f(X, 3)
    graph = f.concrete(X, 400).graph
    (loop,) = (n for n in graph.nodes if n.op == "Loop")
    assert [n.name for n in loop.control_inputs] == ["Exp"]
    np.testing.assert_allclose(f(X, 400)[0], f.python_function(X, 400)[0])


def test_a_value_of_outside_in_a_loop_is_refused() -> None:
    """A loop that is unrolled has no inside; one that data ends has."""
    @fusec.jit
    def f(x):
        first, total = np.exp(x), x * 0.0
        while total.sum() < 100.0:
            with fusec.control_dependencies([first]):
                total = total + np.cosh(x)
        return total

    with pytest.raises(UnsupportedError, match="on a value of outside") as caught:
        f(X)
    assert "around the branch or loop" in str(caught.value)


def test_what_is_no_list_of_values() -> None:
    with pytest.raises(TypeError, match="takes a list of values") as caught:
        fusec.control_dependencies(X)
    assert isinstance(caught.value, FusecError)


def test_rfc_counter_with_control_dependencies() -> None:
    """``with tf.control_dependencies([c.assign_add(1)]): return tf.matmul(x, W) + b``"""
    def f(x):
        w = fusec.Variable(np.full((3, 3), 0.5), name="weight")
        b = fusec.Variable(np.zeros(3), name="bias")
        c = fusec.Variable(0, dtype=np.int32, name="counter")
        with fusec.control_dependencies([c.assign_add(1)]):
            return np.matmul(x, w) + b

    wrapped = fusec.wrap_function(f, fusec.TensorSpec((2, 3)))
    for count in (1, 2):
        np.testing.assert_allclose(wrapped(np.ones((2, 3))), np.full((2, 3), 1.5))
        counter = next(v for v in wrapped.variables if v.name == "counter")
        assert int(counter) == count
    assert wrapped.variables[0].name == "weight" and len(wrapped.variables) == 3


# -------------------------------------------------------------------------------------- colocation


def test_colocation_is_with_a_value() -> None:
    @fusec.jit
    def f(x):
        y = np.exp(x)
        with fusec.colocate_with(y):
            z = np.cos(x)
        return y, z

    graph = f.concrete(X).graph
    assert graph["Exp"].device == "" and graph["Cos"].device == "@Exp"
    np.testing.assert_allclose(f(X)[1], np.cos(X))
