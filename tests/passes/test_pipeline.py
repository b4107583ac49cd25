"""The pipeline: order, log, rewrites counted, verification, failing passes."""

from __future__ import annotations

import itertools

import pytest

from fusec.errors import InternalError
from fusec.ir import Graph, Node, TensorType
from fusec.ir.text.parse import parse_graph
from fusec.passes import pipeline as module
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import Pass, PassError, PassRecord, Repeat, run_pipeline
from fusec.passes.rewrite_counts import count_rewrites

TEXT = """graph main(x: f64[3], y: f64[3]) {
  %one = Const {value=f64(1.0)} : f64
  %a = Mul(%x, %one) : f64[3]
  %b = Mul(%a, %y) : f64[3]
  %c = Mul(%y, %x) : f64[3]
  %d = Sub(%b, %c) : f64[3]
  %m = Mean(%d) {axes=(0,)} : f64
  %dead = Exp(%x) : f64[3]
  return %m
}"""
CHECKED = PassOptions(verify=True, fuse=False)


def run(text: str = TEXT, options: PassOptions = CHECKED) -> tuple[Graph, list[PassRecord]]:
    log: list[PassRecord] = []
    return run_pipeline(parse_graph(text), options, log), log


def test_everything_together() -> None:
    graph, _ = run()
    assert [n.op for n in graph.nodes] == ["Input", "Input", "Mul", "Sub", "Sum", "Const", "Div"]


def test_log_links_graphs_and_counts_rewrites() -> None:
    graph, log = run()
    assert log[-1].after is graph
    assert all(a.after is b.before for a, b in itertools.pairwise(log))
    first = {}
    for record in log:
        first.setdefault(record.name, record)
    counts = {name: record.rewrites for name, record in first.items()}
    assert counts == {
        "twins": 0, "given_derivatives": 0, "prune": 1, "place_bodies": 0, "complex_calls": 0,
        "constant_folding": 0,
        "simplify": 1,
        "cse": 1, "decompose": 1, "contracted_axes": 0, "outer_products": 0, "powers": 0,
        "repeated_calls": 0, "fma": 0,
        "padded_slices": 0, "short_axes": 0,
        "subgraphs": 0,
        "separate_results": 0, "kernel_checks": 0, "size_order": 0,
    }
    assert all(record.changed == bool(record.rewrites) for record in log)
    assert all(record.ms >= 0 for record in log)


def test_records_print_their_diff_or_unchanged() -> None:
    _, log = run()
    shown = {record.name: str(record) for record in reversed(log)}
    assert shown["constant_folding"].endswith("(unchanged)")
    assert "-   %dead = Exp(%x) : f64[3]" in shown["prune"]
    assert "1 rewrite\n" in shown["prune"]


def test_an_optimised_graph_is_a_fixed_point() -> None:
    graph, _ = run()
    log: list[PassRecord] = []
    assert run_pipeline(graph, CHECKED, log) is graph
    assert not any(record.changed for record in log)


def with_pass(monkeypatch: pytest.MonkeyPatch, item: Pass | Repeat) -> None:
    monkeypatch.setattr(module, "pipeline", lambda options: [item])


def test_a_failing_pass_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Graph) -> Graph:
        raise ZeroDivisionError("oops")

    with_pass(monkeypatch, Pass("broken", broken))
    with pytest.raises(PassError, match="the pass 'broken' raised ZeroDivisionError: oops") as info:
        run()
    assert isinstance(info.value, InternalError)
    assert "%dead = Exp(%x) : f64[3]" in str(info.value)


def test_an_invalid_result_names_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def dangling(graph: Graph) -> Graph:
        return Graph(graph.inputs, graph.outputs, (), graph.nodes[:-3], graph.name)

    with_pass(monkeypatch, Pass("dangling", dangling))
    with pytest.raises(PassError, match="the pass 'dangling' left an invalid graph"):
        run()


def test_repetition_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(graph: Graph) -> Graph:
        """Never idle: a new dead node each time."""
        kind = TensorType(graph.inputs[0].dtype, ())
        node = Node("Input", (), (kind,), name=f"n{len(graph)}")
        return Graph(graph.inputs, graph.outputs, (), (*graph.nodes, node), graph.name)

    with_pass(monkeypatch, Repeat((Pass("restless", restless),)))
    _, log = run(options=PassOptions(fuse=False))
    assert len(log) == module.MAX_ROUNDS


def test_reading_a_replacement_is_no_rewrite() -> None:
    before = parse_graph("""graph main(x: f64[3]) {
      %a = Exp(%x) : f64[3]
      %b = Neg(%a) : f64[3]
      return %b
    }""")
    after = parse_graph(str(before).replace("%a = Exp", "%z = Exp2").replace("(%a)", "(%z)"))
    assert count_rewrites(before, after) == 1
