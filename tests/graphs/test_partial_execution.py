"""Partial execution: any edge fed, any edge fetched, and effects.

Examples are those of "Functions, not Sessions" ("Derived/Related Graphs") and of the TensorFlow
paper's section 4.2 (figure 6).
"""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError, UnsupportedError
from fusec.ir.text.parse import parse_graph
from fusec.ops.graphs.carve import CarvingError, carve
from fusec.ops.graphs.evaluate import evaluate_all

SIZED = """graph main(x: f64[3]) {
  %a = Nonzero(%x) {form=("tuple", ("operand", 0)), named=("tuple",), results=(type(i64[n]),)} : i64[n]
  %b = BroadcastTo(%x) {shape=(size("n"), 3)} : f64[n,3]
  return %a, %b
}"""  # noqa: E501


def square_twice():
    @fusec.jit
    def f(x):
        return np.square(np.square(x))

    return f


def test_rfc_carving_out_a_subgraph() -> None:
    graph = square_twice().concrete(2.0).graph
    f2 = graph.function(inputs=["Square:0"], outputs=["Square_1:0"])
    assert f2(2.0) == 4.0
    assert f2.inputs == ("Square:0",) and f2.outputs == ("Square_1:0",)
    assert [n.op for n in f2.graph.nodes] == ["Input", "Square"]


def test_rfc_extending_a_graph() -> None:
    @fusec.jit
    def f(x):
        return np.square(x)

    @fusec.jit
    def g(x):
        return np.square(f(x))

    assert g(2.0) == 16.0
    assert g.concrete(2.0).graph.function()(2.0) == 16.0


def test_rfc_one_graph_two_programs() -> None:
    """``sess.run([z], {x: 2})`` and ``sess.run([z], {x: 2, y: 2})`` of one graph."""
    @fusec.jit
    def f(x):
        y = np.square(x)
        return x + y

    graph = f.concrete(2.0).graph
    assert graph.function(outputs=["Add:0"])(2.0) == 6.0
    compute_z1 = graph.function(inputs=["x:0", "Square:0"], outputs=["Add"])
    assert compute_z1(2.0, 2.0) == 4.0


def figure_6():
    @fusec.jit
    def f(a):
        b = np.exp(a)
        c = np.sin(b)
        d = np.cos(a)
        e = np.sqrt(d)
        return c + 1.0, e

    return f.concrete(np.ones(3)).graph


def test_figure_6_of_the_paper() -> None:
    """Feeding b and fetching f runs neither a, d nor e."""
    part = figure_6().function(inputs=["Exp:0"], outputs=["Add:0"])
    assert {n.op for n in part.graph.nodes} == {"Input", "Sin", "Const", "Add"}
    np.testing.assert_allclose(part(np.zeros(3)), np.ones(3))


def test_it_is_compiled_by_the_whole_pipeline() -> None:
    part = figure_6().function(inputs=["Exp:0"], outputs=["Add:0"])
    assert [n.op for n in part.optimized_graph.nodes] == ["Input", "Fused"]


def test_every_pair_of_edges_equals_the_interpreter() -> None:
    @fusec.jit
    def f(x, y):
        a = np.exp(-x) * y
        b = a.sum(axis=0)
        c = (a - b).max(axis=1)
        return c @ x + b

    x, y = np.linspace(0.0, 1.0, 9).reshape(3, 3), np.arange(9.0).reshape(3, 3)
    graph = f.concrete(x, y).graph
    values = [v for n in graph.nodes for v in n.outputs if n.op != "Const"]
    count = 0
    for fetched in values:
        for fed in values:
            names = [*(v.name for v in graph.inputs if v is not fed), fed.name]
            names = list(dict.fromkeys(names))
            part = graph.function(inputs=names, outputs=[fetched.name])
            given = [np.asarray(np.full(graph.value(n).shape, 0.5 + i), graph.value(n).dtype)[()]
                     for i, n in enumerate(names)]
            expected = evaluate_all(part.graph, given)[0][0]
            np.testing.assert_allclose(part(*given), expected, rtol=1e-12)
            count += 1
    assert count > 50


def test_missing_feeds_are_named_at_once() -> None:
    @fusec.jit
    def f(x, y, z):
        return np.exp(x) + y * z

    graph = f.concrete(np.ones(3), np.ones(3), np.ones(3)).graph
    with pytest.raises(CarvingError, match="need more than is fed") as caught:
        graph.function(inputs=["Exp:0"], outputs=["Add:0"])
    text = str(caught.value)
    assert "y:0" in text and "z:0" in text and "x:0" not in text
    assert "read by Mul" in text


def test_misspelt_names_have_close_matches() -> None:
    graph = square_twice().concrete(2.0).graph
    with pytest.raises(CarvingError) as caught:
        graph.function(inputs=["Sqare:0", "Foo:0"], outputs=["Square_1:0"])
    text = str(caught.value)
    assert "Sqare:0" in text and "did you mean Square:0" in text and "Foo:0" in text
    with pytest.raises(CarvingError, match="no such outputs"):
        graph.function(outputs=["Square_1:7"])
    with pytest.raises(CarvingError, match="fed twice: Square:0"):
        graph.function(inputs=["Square:0", "Square"], outputs=["Square_1:0"])
    with pytest.raises(CarvingError, match="no list of names"):
        graph.function(inputs="Square:0")


# ----------------------------------------------------------------------------------------- effects


def updating():
    @fusec.jit
    def f(x, y):
        x += 1.0
        y *= 2.0
        return x.sum()

    return f.concrete(np.ones(3), np.ones(3)).graph


def test_without_prune_every_update_stays() -> None:
    function = updating().function(outputs=["Sum:0"])
    x, y = np.ones(3), np.ones(3)
    assert function(x, y) == 6.0
    np.testing.assert_array_equal(x, [2.0] * 3)
    np.testing.assert_array_equal(y, [2.0] * 3)


def test_without_prune_updates_need_their_feeds() -> None:
    with pytest.raises(CarvingError, match="need more than is fed") as caught:
        updating().function(inputs=["x:0"], outputs=["Sum:0"])
    assert "y:0" in str(caught.value) and "prune=True" in str(caught.value)


def test_with_prune_an_update_is_done_where_its_value_is_computed() -> None:
    function = updating().function(inputs=["x:0"], outputs=["Sum:0"], prune=True)
    x = np.ones(3)
    assert function(x) == 6.0
    np.testing.assert_array_equal(x, [2.0] * 3)
    (update,) = function.graph.updates
    assert update[0] == 0


def test_with_prune_an_update_that_nothing_reads_is_dropped() -> None:
    graph = updating()
    assert graph.function(inputs=["x:0", "y:0"], outputs=["x:0"], prune=True).graph.updates == ()


def test_checks_stay_without_prune_and_go_with_it() -> None:
    @fusec.jit
    def f(x):
        if x[0] > 100.0:
            raise ValueError("too large")
        return x + 1.0

    graph = f.concrete(np.ones(3)).graph
    with pytest.raises(ValueError, match="too large"):
        graph.function()(np.full(3, 200.0))
    pruned = graph.function(prune=True)
    np.testing.assert_array_equal(pruned(np.full(3, 200.0)), np.full(3, 201.0))


def test_calls_of_the_programs_objects_can_be_carved_away() -> None:
    rng = np.random.default_rng(0)

    @fusec.jit
    def f(x):
        y = np.sin(x)
        return y, y + rng.normal()

    graph = f.concrete(np.ones(3)).graph
    with pytest.raises(UnsupportedError) as caught:
        graph.function()
    assert "rng.normal()" in str(caught.value)
    np.testing.assert_allclose(
        graph.function(outputs=["Sin:0"], prune=True, inputs=["x:0"])(np.ones(3)), np.sin(1.0))


def test_a_size_of_the_run_that_no_node_makes() -> None:
    @fusec.jit
    def f(x):
        y = x[x > 0.5]
        return np.zeros(y.shape) + 1.0

    graph = f.concrete(np.linspace(0.0, 1.0, 5)).graph
    whole = graph.function()
    np.testing.assert_array_equal(whole(np.linspace(0.0, 1.0, 5)), [1.0, 1.0])
    sized = next(n for n in graph.nodes if n.op == "Size")
    with pytest.raises(CarvingError, match="needs the size n"):
        graph.function(inputs=[f"{sized.name}:0"])
    selected = next(n for n in graph.nodes if "n" in str(n.types[0]))
    with pytest.raises(UnsupportedError, match="of a size that only the run knows"):
        graph.function(inputs=[f"{selected.name}:0"])
    with pytest.raises(CarvingError, match="needs the size n"):
        carve(parse_graph(SIZED), outputs=["b:0"])


# --------------------------------------------------------------------------------------- arguments


def test_arguments_by_name_and_what_does_not_fit() -> None:
    @fusec.jit
    def f(x, n):
        return x * n

    function = f.concrete(np.ones((2, 3)), 2.0).graph.function()
    np.testing.assert_array_equal(function(n=3, x=np.ones((2, 3))), np.full((2, 3), 3.0))
    for args in ((np.ones((3, 2)), 2.0), (np.ones((2, 3), "f4"), 2.0), ([[1.0] * 3] * 2, 2.0),
                 (np.ones((2, 3)), 2j), (np.ones((2, 3)), "2"), (np.ones((2, 3)), None)):
        with pytest.raises(TypeError, match="does not fit") as caught:
            function(*args)
        assert isinstance(caught.value, FusecError)
        assert "expected:" in str(caught.value) and "given:" in str(caught.value)
    for args in ((), (np.ones((2, 3)), 1.0, 1.0)):
        with pytest.raises(TypeError, match="the arguments do not fit"):
            function(*args)
    with pytest.raises(TypeError, match="no parameter m"):
        function(np.ones((2, 3)), m=1.0)


def test_layouts_views_and_byte_orders() -> None:
    @fusec.jit
    def f(x):
        x[0] += 1.0
        return x.sum(axis=1)

    function = f.concrete(np.ones((2, 3))).graph.function()
    for make in (np.asfortranarray, lambda a: np.ascontiguousarray(a[::-1])[::-1],
                 lambda a: np.repeat(a, 2, axis=1)[:, ::2]):
        given, plain = make(np.arange(6.0).reshape(2, 3)), np.arange(6.0).reshape(2, 3)
        np.testing.assert_array_equal(function(given), f(plain))
        np.testing.assert_array_equal(given, plain)
    with pytest.raises(TypeError, match="does not fit"):
        function(np.arange(6.0, dtype=">f8").reshape(2, 3))
    frozen = np.ones((2, 3))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        function(frozen)


def test_arguments_that_overlap_one_that_is_written() -> None:
    @fusec.jit
    def f(x, y):
        x += y

    function = f.concrete(np.ones(3), np.ones(3)).graph.function()
    memory = np.arange(5.0)
    with pytest.raises(FusecError, match="overlap"):
        function(memory[:3], memory[1:4])
    np.testing.assert_array_equal(memory, np.arange(5.0))


def test_outputs_that_are_parameters_or_nothing() -> None:
    @fusec.jit
    def f(x):
        return np.exp(x)

    graph = f.concrete(np.zeros(3)).graph
    x = np.arange(3.0)
    same = graph.function(outputs=["x:0"])(x)
    np.testing.assert_array_equal(same, x)
    assert graph.function(outputs=[])(x) == ()
    empty = fusec.jit(lambda x: x + 1).concrete(np.zeros((0, 3))).graph.function()
    assert empty(np.zeros((0, 3))).shape == (0, 3)


def test_numbers_keep_their_value_or_are_refused() -> None:
    f = fusec.jit(lambda x, n: x * n)
    f(np.ones(2), 2), f(np.ones(2), 3)
    function = f.concrete(np.ones(2), 5).graph.function()
    for number in (2**40, -(2**62), np.int8(3), True, np.array(4)):
        np.testing.assert_array_equal(function(np.ones(2), number), [float(number)] * 2)
    for number in (2**63, -(2**63) - 1, 2.5, np.float32(2), 2j, "2"):
        with pytest.raises(TypeError, match="argument n does not fit"):
            function(np.ones(2), number)


def test_graphs_are_pickled_and_admitted_where_they_arrive() -> None:
    graph = square_twice().concrete(np.ones(3)).graph
    function = graph.function(inputs=["Square:0"])
    again = pickle.loads(pickle.dumps(function))
    np.testing.assert_array_equal(again(np.full(3, 3.0)), function(np.full(3, 3.0)))
    assert pickle.loads(pickle.dumps(graph)).to_json() == fusec.admit(graph).to_json()
    assert copy.deepcopy(graph) is graph and copy.deepcopy(function) is function


@pytest.mark.parametrize("kind", ["graph", "concrete", "gradient"])
def test_a_call_while_tracing_is_refused_with_its_line(kind: str) -> None:
    concrete = square_twice().concrete(np.ones(3))
    function = {"graph": concrete.graph.function(), "concrete": concrete,
                "gradient": lambda x: fusec.jvp(concrete, (x,), (x,))[1]}[kind]

    @fusec.jit
    def g(x):
        return function(x) + 1.0

    with pytest.raises(UnsupportedError, match="in a function that is traced") as caught:
        g(np.ones(3))
    assert ("function(x) + 1.0" if kind != "gradient" else "fusec.jvp") in str(caught.value)


def test_updates_of_variables_are_parameters() -> None:
    variable = fusec.Variable(np.ones(3), name="v")

    @fusec.jit
    def f(x):
        variable.assign_add(x)
        return variable * 2.0

    function = f.concrete(np.ones(3)).graph.function()
    assert function.inputs == ("x", "v")
    memory = np.ones(3)
    np.testing.assert_array_equal(function(np.ones(3), memory), [4.0] * 3)
    np.testing.assert_array_equal(memory, [2.0] * 3)
    np.testing.assert_array_equal(variable.numpy(), [1.0] * 3)


def test_threads_share_one_function() -> None:
    function = square_twice().concrete(np.ones(3)).graph.function()
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda k=k: found.append(function(np.full(3, float(k)))))
               for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(float(a[0]) for a in found) == [float(k) ** 4 for k in range(8)]


def test_carving_leaves_the_graph_as_it_was() -> None:
    graph = figure_6()
    before = str(graph)
    part = carve(graph, ["Exp:0"], ["Add:0"])
    assert str(graph) == before and part.name == graph.name
    assert carve(part, ["Sin:0"], ["Add:0"]).inputs[0].node.attrs["path"] == "Sin:0"
