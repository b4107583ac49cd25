"""Graphs with symbols as values: `F.concrete` of open specs, functions of such graphs."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import TensorSpec
from fusec.errors import UnsupportedError

SIZES = (2, 3, 4, 7, 40, 129)


def centred(x):
    y = np.exp(x)
    return (y - y.mean(axis=0)) / y.shape[0]


def matrix(n: int, m: int = 3) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, m))


def test_the_graph_has_symbols_where_specs_have_none() -> None:
    concrete = fusec.jit(centred).concrete(TensorSpec((None, 3)))
    assert str(concrete.graph.inputs[0].type) == "f64[s0,3]"
    assert str(concrete.graph.outputs[0].type) == "f64[s0,3]"
    assert str(concrete.optimized_graph.inputs[0].type) == "f64[s0,3]"
    assert concrete.structured_inputs == ((TensorSpec((None, 3), name="x"),), {})
    assert concrete.structured_outputs == TensorSpec((None, 3))
    assert str(concrete) == "<ConcreteFunction centred(x: f64[s0,3])>"


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("n", [0, 1, *SIZES])
def test_it_runs_for_any_size(n) -> None:
    concrete = fusec.jit(centred).concrete(TensorSpec((None, 3)))
    with np.errstate(all="ignore"):
        expected = centred(matrix(n))
        result, metadata = concrete.run(matrix(n))
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-15)
    assert str(metadata.graphs[0].inputs[0].type) == f"f64[{n},3]"


def test_one_trace_serves_the_sizes_of_the_function_too() -> None:
    jitted = fusec.jit(centred)
    concrete = jitted.concrete(TensorSpec((None, 3)))
    for n in (4, 9, 40):
        np.testing.assert_allclose(jitted(matrix(n)), centred(matrix(n)), rtol=1e-12)
        np.testing.assert_allclose(concrete(matrix(n)), centred(matrix(n)), rtol=1e-12)
    assert jitted.trace_count == 1


def test_arguments_that_do_not_fit_the_specs() -> None:
    concrete = fusec.jit(centred).concrete(TensorSpec((None, 3)))
    for wrong in (matrix(4, 4), matrix(4).astype("f4"), np.ones(3), 1.0):
        with pytest.raises(TypeError, match=r"do not fit centred\(x: f64\[s0,3\]\)"):
            concrete.run(wrong)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        concrete.run()


def test_open_sizes_are_different_ones_unless_the_program_needs_them_equal() -> None:
    product = fusec.jit(lambda x, y: x @ y)
    graph = product.concrete(TensorSpec((None, 5)), TensorSpec((5, None))).graph
    assert len({str(n) for n in graph.outputs[0].shape}) == 2
    function = graph.function()
    for n, m in ((2, 9), (9, 2), (4, 4), (5, 5)):
        x, y = matrix(n, 5), matrix(5, m)
        np.testing.assert_allclose(function(x, y), x @ y, rtol=1e-12)
    total = fusec.jit(lambda x, y: x + y)
    graph = total.concrete(TensorSpec((None,)), TensorSpec((None,))).graph
    assert [str(v.type) for v in graph.inputs] == ["f64[s0]", "f64[s0]"]
    with pytest.raises(ValueError, match="sizes that are equal in the graph differ: s0 is 4 and 5"):
        graph.function()(np.ones(4), np.ones(5))


def test_specs_by_name_in_structures_and_beside_values() -> None:
    @fusec.jit(static=("k",))
    def f(params, *, x, k):
        return [x @ params["w"] * k, x.T]

    spec = {"w": TensorSpec((3, 2))}
    concrete = f.concrete(spec, x=TensorSpec((None, 3)), k=3)
    w, x = matrix(3, 2), matrix(8)
    result, _ = concrete.run({"w": w}, x=x, k=3)
    np.testing.assert_allclose(result[0], x @ w * 3, rtol=1e-12)
    assert np.array_equal(result[1], x.T)
    assert concrete.structured_outputs == [TensorSpec((None, 2)), TensorSpec((3, None))]
    with pytest.raises(TypeError, match="k: expected 3, got 4"):
        concrete.run({"w": w}, x=x, k=4)


def test_what_python_counts_with_is_traced_for_size_two() -> None:
    f = fusec.jit(lambda x: np.array([float(k) for k in range(len(x))]) * x)
    concrete = f.concrete(TensorSpec((None,)))
    assert str(concrete.graph.inputs[0].type) == "f64[2]"
    assert f(np.ones(4)).tolist() == [0, 1, 2, 3]


def test_a_function_that_retraces_for_each_size_is_traced_for_size_two() -> None:
    f = fusec.jit(centred, reduce_retracing=False)
    assert str(f.concrete(TensorSpec((None, 3))).graph.inputs[0].type) == "f64[2,3]"


# ------------------------------------------------------------------------ functions of such graphs


@pytest.mark.parametrize("n", SIZES)
def test_a_function_of_the_graph_runs_for_any_size(n) -> None:
    function = fusec.jit(centred).concrete(TensorSpec((None, 3))).graph.function()
    np.testing.assert_allclose(function(matrix(n)), centred(matrix(n)), rtol=1e-12, atol=1e-15)
    result, metadata = function.run(matrix(n), options=fusec.RunOptions(trace=True))
    np.testing.assert_allclose(result, centred(matrix(n)), rtol=1e-12, atol=1e-15)
    assert metadata.nodes and str(metadata.graphs[0].inputs[0].type) == f"f64[{n},3]"


def test_sizes_that_the_graph_is_not_for() -> None:
    @fusec.jit
    def f(x):
        return x * 2 if len(x) > 100 else x[2:] * 3

    function = f.concrete(TensorSpec((None,))).graph.function()
    assert function(np.ones(9)).tolist() == [3.0] * 7
    for n, question in ((101, "s0 <= 100"), (2, "s0 > 2")):
        with pytest.raises(ValueError, match=f"was traced for other sizes\n.*{question}"):
            function(np.ones(n))
    for n in (0, 1):
        with pytest.raises(ValueError, match="s0 is a size of 2 or more"):
            function(np.ones(n))
    for wrong in (np.ones((4, 4)), [1.0, 2.0], None):
        with pytest.raises(TypeError, match="does not fit the graph"):
            function(wrong)


def test_parts_of_such_graphs() -> None:
    concrete = fusec.jit(lambda x: np.square(np.square(x[1:]))).concrete(TensorSpec((None,)))
    part = concrete.graph.function(inputs=["Square:0", "x:0"], outputs=["Square_1:0"])
    assert part(np.full(5, 3.0), np.ones(6)).tolist() == [9.0] * 5
    with pytest.raises(TypeError, match="does not fit"):
        part(np.full(4, 3.0), np.ones(6))
    with pytest.raises(UnsupportedError, match="do not say the size s0"):
        concrete.graph.function(inputs=["Square:0"], outputs=["Square_1:0"])


def test_updates_of_parameters_of_open_size() -> None:
    @fusec.jit
    def f(x):
        x += 1.0
        return x.sum()

    function = f.concrete(TensorSpec((None,))).graph.function()
    for n in SIZES:
        x = np.zeros(n)
        assert function(x) == n and x.tolist() == [1.0] * n


def test_few_plans_are_kept_and_threads_may_call() -> None:
    function = fusec.jit(centred).concrete(TensorSpec((None, 3))).graph.function()
    wrong: list[int] = []

    def call(k: int) -> None:
        wrong.extend(n for n in range(2 + k, 100, 4)
                     if not np.allclose(function(matrix(n)), centred(matrix(n))))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(function._sized) == 64


# ------------------------------------------------------------------------------------------- texts


def test_a_graph_with_symbols_has_no_text_that_is_admitted() -> None:
    graph = fusec.jit(centred).concrete(TensorSpec((None, 3))).graph
    with pytest.raises(UnsupportedError, match=r"graph.at_sizes\(s0=...\)"):
        graph.to_json()
    with pytest.raises(ValueError, match="s0"):
        fusec.admit(str(graph))
    again = fusec.admit(graph.at_sizes(s0=4).to_json()).function()
    np.testing.assert_allclose(again(matrix(4)), centred(matrix(4)), rtol=1e-12)


def test_at_sizes_takes_the_symbols_of_the_graph() -> None:
    graph = fusec.jit(centred).concrete(TensorSpec((None, 3))).graph
    for sizes in ({}, {"s1": 4}, {"s0": 4, "s1": 4}):
        with pytest.raises(ValueError, match="other symbols"):
            graph.at_sizes(**sizes)
    for size in (1, 0, -3, 2.5, "4"):
        with pytest.raises(ValueError, match="size of 2 or more"):
            graph.at_sizes(s0=size)
    fixed = fusec.jit(centred).concrete(matrix(4)).graph
    assert str(fixed.at_sizes()) == str(fixed)


def test_a_size_that_was_tried_for_an_open_one_is_named() -> None:
    def f(x: Any) -> Any:
        return x.reshape(5, -1) * 2.0

    with pytest.raises(UnsupportedError, match="f refuses a size of 2 of each open axis") as caught:
        fusec.jit(f).concrete(TensorSpec((None,)))
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ValueError, match="cannot reshape array of size 3"):
        fusec.jit(f).concrete(TensorSpec((3,)))
    with pytest.raises(ValueError, match="cannot reshape array of size 6"):
        fusec.jit(f).concrete(np.ones(6))
