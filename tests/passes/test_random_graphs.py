"""Every pass on random graphs: values stay bit for bit, a second run does nothing, text parses."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import arguments, graphs, same_bits

from fusec.ir import Graph
from fusec.ir.text.compare import assert_same_graph, graphs_equal
from fusec.ir.text.parse import parse_graph
from fusec.ir.text.text import print_graph
from fusec.ops.graphs.evaluate import evaluate
from fusec.ops.graphs.verify import verify
from fusec.passes.backward.padded_slices import padded_slices
from fusec.passes.cse import cse
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import run_pipeline
from fusec.passes.prune import prune
from fusec.passes.rules.constant_folding import constant_folding
from fusec.passes.rules.decompose import decompose
from fusec.passes.rules.fma import form_fmas
from fusec.passes.rules.simplify import simplify

EXACT = [prune, constant_folding, simplify, cse, decompose, padded_slices]
ALL = [*EXACT, functools.partial(form_fmas, options=PassOptions("contract"))]
seeds = st.integers(0, 2**32 - 1)
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def assert_same_values(before: Graph, after: Graph, seed: int) -> None:
    arrays = arguments(before, seed)
    for old, new in zip(evaluate(before, arrays), evaluate(after, arrays), strict=True):
        assert type(old) is type(new)
        assert same_bits(old, new), f"{old!r} became {new!r}\n{before}\n{after}"


@quick
@given(graphs())
def test_text_form_parses_back(graph: Graph) -> None:
    verify(graph)
    text = print_graph(graph)
    parsed = parse_graph(text)
    assert print_graph(parsed) == text
    assert_same_graph(parsed, graph)
    assert [n.loc for n in parsed.nodes if n.op != "Input"] == [
        n.loc for n in graph.nodes if n.op != "Input"
    ]


@pytest.mark.parametrize("run", EXACT, ids=lambda run: run.__name__)
@quick
@given(graphs(), seeds)
def test_pass_keeps_values(run, graph: Graph, seed: int) -> None:
    after = run(graph)
    verify(after)
    assert_same_values(graph, after, seed)


@pytest.mark.parametrize("run", ALL, ids=lambda run: getattr(run, "__name__", "form_fmas"))
@quick
@given(graphs())
def test_pass_is_idempotent(run, graph: Graph) -> None:
    once = run(prune(graph))
    assert run(once) is once


@quick
@given(graphs(), seeds)
def test_strict_pipeline_keeps_values_and_types(graph: Graph, seed: int) -> None:
    options = PassOptions("strict", verify=True, fuse=False)
    after = run_pipeline(graph, options)
    assert [v.type for v in after.outputs] == [v.type for v in graph.outputs]
    assert_same_values(graph, after, seed)
    assert graphs_equal(run_pipeline(after, options), after)


@quick
@given(graphs())
def test_passes_leave_their_input_alone(graph: Graph) -> None:
    text = print_graph(graph)
    run_pipeline(graph, PassOptions("contract", verify=True))
    assert print_graph(graph) == text
