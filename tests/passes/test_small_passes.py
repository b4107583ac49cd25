"""prune, constant folding, cse, decompose and rewriting, before and after, in the text form."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusec.core.records import replace
from fusec.ir import Graph, Loc
from fusec.ir.text.compare import assert_same_graph
from fusec.ir.text.parse import parse_graph
from fusec.ops.graphs.verify import verify
from fusec.passes.cse import cse
from fusec.passes.prune import prune
from fusec.passes.rewrite import rewrite
from fusec.passes.rules.constant_folding import constant_folding
from fusec.passes.rules.decompose import decompose
from fusec.passes.size_order import size_order


def graph_of(body: str, parameters: str = "x: f64[3], y: f64[3]") -> Graph:
    graph = parse_graph(f"graph main({parameters}) {{\n{body}\n}}")
    verify(graph)
    return graph


def check(run: Callable[[Graph], Graph], before: str, expected: str) -> Graph:
    after = run(graph_of(before))
    verify(after)
    assert_same_graph(after, graph_of(expected))
    assert run(after) is after
    return after


# --- size order


def test_a_size_is_learnt_before_it_is_needed() -> None:
    """Whatever needs the node that waits waits too; others stay as they were."""
    learner = ("        %a = Nonzero(%x) {form=(\"tuple\", (\"operand\", 0)), named=(\"tuple\",), "
               "results=(type(i64[n]),)} : i64[n]")
    waiting = """
        %c = Const {value=f64(1)} : f64
        %b = BroadcastTo(%c) {shape=(size("n"),)} : f64[n]
        %s = Sum(%b) {axes=(0,)} : f64"""
    rest = "\n        %e = Exp(%y) : f64[3]"
    after = "\n        return %s, %e, %a"
    right = graph_of(learner + waiting + rest + after)
    assert size_order(right) is right
    nodes = {node.name: node for node in right.nodes}
    wrong = replace(right, nodes=tuple(nodes[n] for n in "xycbsea"))
    assert [n.name for n in size_order(wrong).nodes] == [*"xyceabs"]


# --- prune


def test_prune_keeps_parameters_outputs_and_updates() -> None:
    after = check(prune, """
        %a = Exp(%x) : f64[3]
        %dead = Sin(%a) : f64[3]
        %b = Neg(%x) : f64[3]
        %dead2 = Add(%dead, %b) : f64[3]
        return %a
        update x = %b""", """
        %a = Exp(%x) : f64[3]
        %b = Neg(%x) : f64[3]
        return %a
        update x = %b""")
    assert [n.name for n in after.nodes] == ["x", "y", "a", "b"]


def test_prune_follows_control_edges() -> None:
    graph = graph_of("""
        %a = Exp(%x) : f64[3]
        %b = Neg(%x, ^a) : f64[3]
        return %b""")
    assert prune(graph) is graph


# --- constant folding


def fold_of(expression: str, kind: str, constants: str) -> str:
    body = f"{constants}\n %r = {expression} : {kind}\n return %r"
    graph = prune(constant_folding(graph_of(body)))
    verify(graph)
    return str(graph.outputs[0].node.attrs.get("value", "not folded"))


F32 = "%a = Const {value=f32(0.1)} : f32\n%b = Const {value=f32(3.0)} : f32"
I8 = "%a = Const {value=i8(127)} : i8\n%b = Const {value=i8(0)} : i8"
WEAK = "%a = Const {value=7} : i64~\n%b = Const {value=-2} : i64~"
BIG = "%a = Const {value=9223372036854775807} : i64~\n%b = Const {value=0} : i64~"


@pytest.mark.parametrize(("expression", "kind", "constants", "value"), [
    ("Mul(%a, %b)", "f32", F32, "0.3"),
    ("Add(%a, %a)", "i8", I8, "-2"),
    ("FloorDiv(%a, %b)", "i8", I8, "0"),
    ("Less(%a, %b)", "bool", F32, "True"),
    ("Cast(%a) {dtype=f64}", "f64", F32, "0.10000000149011612"),
    ("FloorDiv(%a, %b)", "i64~", WEAK, "-4"),
    ("Mod(%a, %b)", "i64~", WEAK, "-1"),
    ("FloorDiv(%a, %b)", "i64~", BIG, "not folded"),
    ("Add(%a, %a)", "i64~", BIG, "not folded"),
    ("Fma(%a, %b, %b)", "f32", F32, "not folded"),
])
def test_folds_as_numpy_and_python_do(
    expression: str, kind: str, constants: str, value: str
) -> None:
    assert fold_of(expression, kind, constants) == value


def test_folding_only_makes_scalars() -> None:
    graph = graph_of("""
        %c = Const {value=f64(2.0)} : f64
        %b = BroadcastTo(%c) {shape=(3,)} : f64[3]
        return %b""")
    assert constant_folding(graph) is graph


# --- cse


def test_cse_sees_commuted_operands_and_chains() -> None:
    check(cse, """
        %a = Add(%x, %y) : f64[3]
        %b = Add(%y, %x) : f64[3]
        %c = Exp(%a) : f64[3]
        %d = Exp(%b) : f64[3]
        %e = Sub(%c, %d) : f64[3]
        return %e""", """
        %a = Add(%x, %y) : f64[3]
        %c = Exp(%a) : f64[3]
        %e = Sub(%c, %c) : f64[3]
        return %e""")


@pytest.mark.parametrize("body", [
    "%a = Sub(%x, %y) : f64[3]\n%b = Sub(%y, %x) : f64[3]",
    "%a = Maximum(%x, %y) : f64[3]\n%b = Maximum(%y, %x) : f64[3]",
    "%a = Max(%x) {axes=(0,)} : f64\n%b = Max(%x) {axes=()} : f64[3]",
    "%a = Const {value=f64(0.0)} : f64\n%b = Const {value=f64(-0.0)} : f64",
    "%a = Const {value=1} : i64~\n%b = Const {value=1.0} : f64~",
    "%a = Exp(%x) : f64[3]\n%b = Exp(%x, ^a) : f64[3]",
])
def test_cse_keeps_what_differs(body: str) -> None:
    graph = graph_of(f"{body}\n return %a, %b")
    assert cse(graph) is graph


def test_cse_keeps_two_results_apart() -> None:
    graph = graph_of("%a = Exp(%x) : f64[3]\n%b = Exp(%x) : f64[3]\nreturn %a, %b")
    assert cse(graph) is graph
    scalar = graph_of("%a = Max(%x) {axes=(0,)} : f64\n%b = Max(%x) {axes=(0,)} : f64\n"
                      "return %a, %b")
    assert len(cse(scalar)) == len(scalar) - 1


# --- decompose


def test_decompose_lowers_composites() -> None:
    check(decompose, """
        %m = Mean(%x) {axes=(0,)} : f64
        return %m""", """
        %s = Sum(%x) {axes=(0,)} : f64
        %n = Const {value=f64(3.0)} : f64
        %m = Div(%s, %n) : f64
        return %m""")


# --- rewriting


def test_new_nodes_get_scope_name_and_location() -> None:
    graph = graph_of("""
        %"layer 1/Neg" = Neg(%x) : f64[3]
        %layer/Exp = Exp(%"layer 1/Neg") : f64[3]   # user.py:7:4-9 in f
        return %layer/Exp""")
    after = rewrite(
        graph, lambda n, r: [r.emit("Exp2", n.inputs[0])] if n.op == "Exp" else None
    )
    node = after.outputs[0].node
    assert (node.op, node.name) == ("Exp2", "layer/Exp2")
    assert node.loc == Loc("user.py", 7, 4, "f", 9)


def test_control_edges_follow_a_replaced_node() -> None:
    graph = graph_of("""
        %a = Exp(%x) : f64[3]
        %b = Neg(%x, ^a) : f64[3]
        return %b""")
    after = rewrite(graph, lambda n, r: [r.emit("Exp2", *n.inputs)] if n.op == "Exp" else None)
    verify(after)
    assert [n.op for n in after.outputs[0].node.control_inputs] == ["Exp2"]


def test_a_replacement_of_another_type_is_not_made() -> None:
    graph = graph_of("%a = Exp(%x) : f64[3]\nreturn %a")
    assert rewrite(graph, lambda n, r: [r.emit("IsNan", *n.inputs)] if n.inputs else None) is graph
