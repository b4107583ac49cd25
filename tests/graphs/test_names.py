"""Names of a graph's parameters: how the program reaches them."""

from __future__ import annotations

import numpy as np

import fusec

W = np.ones(3)
weights = {"W": np.full(3, 2.0), "b": [np.zeros(3), 2.5]}
count = 0


class Layer:
    def __init__(self) -> None:
        self.w = np.ones(3)
        self.parts = {"k": [np.ones(3)]}


layer = Layer()


def paths(graph) -> list[str]:
    return [v.node.attrs["path"] for v in graph.inputs]


def test_what_is_read_from_outside_is_named_by_its_way() -> None:
    near = np.ones(3)

    @fusec.jit
    def f(x, params):
        global count
        count += 1
        return (x * W + weights["W"] + weights["b"][0] + near + layer.w + layer.parts["k"][0]
                + params["a"][0] * count)

    graph = f.concrete(np.ones(3), {"a": [np.ones(3)]}).graph
    assert set(paths(graph)) == {
        "x", "params['a'][0]", "count", "W", "weights['W']", "weights['b'][0]", "near", "Layer.w",
        "Layer.parts['k'][0]"}
    assert graph['weights["W"]'] is graph["weights['W']"] is graph["weights_W"]
    assert graph.value("weights['W']:0").type == graph.value("x").type


def test_names_do_not_depend_on_the_order_in_which_they_are_met() -> None:
    one = fusec.jit(lambda x: x + W + weights["W"]).concrete(np.ones(3)).graph
    two = fusec.jit(lambda x: x + weights["W"] + W).concrete(np.ones(3)).graph
    assert set(paths(one)) == set(paths(two)) == {"x", "W", "weights['W']"}


def test_two_ways_of_one_name_are_two_names() -> None:
    others = [Layer(), Layer()]

    @fusec.jit
    def f(x):
        return x * others[0].w + others[1].w * 2.0

    names = paths(f.concrete(np.ones(3)).graph)
    assert len(set(names)) == len(names) == 3


def test_a_parameter_is_fed_by_its_way() -> None:
    @fusec.jit
    def f(x):
        return x * weights["W"]

    graph = f.concrete(np.ones(3)).graph
    function = graph.function(inputs=["x", 'weights["W"]'])
    assert function.inputs == ("x", "weights['W']")
    np.testing.assert_array_equal(function(np.ones(3), np.full(3, 5.0)), [5.0] * 3)
    np.testing.assert_array_equal(
        function(np.ones(3), **{"weights['W']": np.full(3, 4.0)}), [4.0] * 3)
    again = fusec.admit(graph.to_json())
    assert again['weights["W"]'].attrs["path"] == "weights['W']"


def test_a_graph_is_shown_on_one_line() -> None:
    """Notebooks show a cell's result; `print` shows the text."""
    graph = fusec.jit(lambda x: np.exp(x) * 2).concrete(np.ones(3)).graph
    assert repr(graph) == "<graph <lambda>(x: f64[3]) -> Mul:0, 4 nodes>"
