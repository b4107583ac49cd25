"""Devices and control edges of nodes survive every pass; the verifier says so if they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from random_graphs import arguments, graphs, same_bits
from test_random_graphs import quick, seeds

import fusec
from fusec.ir import Graph, Node, Value, topological_order
from fusec.ops import all_ops
from fusec.ops.graphs.evaluate import evaluate_all
from fusec.ops.graphs.verify import VerificationError, verify
from fusec.ops.graphs.verify_pass import verify_pass
from fusec.passes import pipeline as module
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import (
    Pass,
    PassError,
    Repeat,
    body_passes,
    pipeline,
    run_pipeline,
)

SOURCES = {row.name for row in all_ops() if row.is_given}
DEVICES = ("/device:CPU:0", "/device:CPU:1")
X = np.linspace(0.5, 4.0, 12).reshape(3, 4)
OPTIONS = [PassOptions(verify=True), PassOptions("strict", True, check_indices=False)]


def statistics(x: np.ndarray) -> Any:
    y = x**3 * 2.0 + 1.0 * x
    return y.mean(axis=0), y.var(), np.where(y > 3, y, -y)


def indexed(x: np.ndarray) -> Any:
    k = (x[:, 0] * 0.5).astype(np.int64)
    _ = x[k[0]]  # only its check is left
    x[1:, 0] = x[k, 1][1:]
    return x[k[1], 2] + x[k].sum(axis=1)


def with_a_library(x: np.ndarray) -> Any:
    return np.sort(x.T.reshape(4, 3), axis=0) @ x + np.concatenate([x, x])[:4]


def with_complex_numbers(x: np.ndarray) -> Any:
    z = x + 2j
    return np.sqrt(z), (z * z).imag, np.linalg.norm(x[:, :3], axis=1)


def branching(x: np.ndarray) -> Any:
    apart = np.exp(x)
    if x.sum() > 1:
        x = x * 1.0 + x.mean()
    total = 0.0
    while total < 10:
        total = total + (x @ x.T)[0, 1] * 0.5
    return x, total, apart


def checked(x: np.ndarray) -> Any:
    assert x.min() > 0, "negative"
    return np.cumsum(x) / x.max(), x[::-1].reshape(-1)


PROGRAMS = [statistics, indexed, with_a_library, with_complex_numbers, branching, checked]


def placed(graph: Graph) -> Graph:
    """The graph with its nodes on two devices, every other after one that it does not read."""
    values: dict[Value, Value] = {}
    new: list[Node] = []
    for old in graph.nodes:
        if old.op in SOURCES:
            node = old.with_()
        else:
            attrs = {k: placed(v) if isinstance(v, Graph) else v for k, v in old.attrs.items()}
            number = sum(n.op not in SOURCES for n in new)
            above = topological_order([values[v].node for v in old.inputs])
            earlier = [n for n in new if n.op not in SOURCES and n not in above][-1:]
            node = old.with_(
                inputs=[values[v] for v in old.inputs], attrs=attrs,
                device=DEVICES[number // 2 % 2], control_inputs=earlier if number % 2 else ())
        values.update(zip(old.outputs, node.outputs, strict=True))
        new.append(node)
    return Graph(tuple(values[v] for v in graph.inputs), tuple(values[v] for v in graph.outputs),
                 tuple((i, values[v]) for i, v in graph.updates), tuple(new), graph.name)


def traced(f: Callable[..., Any]) -> Graph:
    graph = placed(fusec.jit(f).trace(X).graph)
    verify(graph)
    assert any(n.control_inputs for n in graph.nodes) and {n.device for n in graph.nodes} >= {
        *DEVICES}
    return graph


def in_turn(options: PassOptions) -> Iterator[Pass]:
    for step in pipeline(options):
        yield from step.passes if isinstance(step, Repeat) else (step,)


def subgraphs(graph: Graph) -> Iterator[Graph]:
    for node in graph.nodes:
        for value in node.attrs.values() if node.op in ("Loop", "Cond") else ():
            if isinstance(value, Graph):
                yield value
                yield from subgraphs(value)


def assert_same_values(before: Graph, after: Graph, arrays: list[Any]) -> None:
    for old, new in zip(evaluate_all(before, arrays), evaluate_all(after, arrays), strict=True):
        assert len(old) == len(new)
        for a, b in zip(old, new, strict=True):
            np.testing.assert_allclose(*(x[1] if isinstance(x, tuple) else x for x in (a, b)),
                                       rtol=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=["checked", "unchecked"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_every_pass_keeps_devices_and_order(f: Callable[..., Any], options: PassOptions) -> None:
    graph = start = traced(f)
    for item in in_turn(options):
        after = item.run(graph)
        verify(after)
        verify_pass(graph, after)
        graph = after
    assert {n.device for n in graph.nodes if n.op not in SOURCES} == {*DEVICES}
    assert_same_values(start, graph, [X.copy()])
    for node in graph.nodes:
        body = node.attrs["body"] if node.op == "Fused" else Graph((), ())
        assert {n.device for n in body.nodes if n.op not in SOURCES} <= {node.device}


def test_the_passes_of_sub_graphs_keep_them_too() -> None:
    found = list(subgraphs(traced(branching)))
    assert len(found) >= 4
    for graph in found:
        for passes in (body_passes(in_registers=True), body_passes()):
            for item in passes:
                after = item.run(graph)
                verify(after)
                verify_pass(graph, after)


@quick
@given(graphs(), seeds)
def test_random_graphs(graph: Graph, seed: int) -> None:
    graph = placed(graph)
    after = run_pipeline(graph, PassOptions("strict", verify=True))
    arrays = arguments(graph, seed)
    for old, new in zip(evaluate_all(graph, arrays)[0], evaluate_all(after, arrays)[0],
                        strict=True):
        assert same_bits(old, new)


# ------------------------------------------------------------------------------ what is found out


def rebuilt(graph: Graph, change: Callable[[Node], dict[str, Any]]) -> Graph:
    """Every node made anew, with changes."""
    values: dict[Value, Value] = {}
    nodes: dict[int, Node] = {}
    for old in graph.nodes:
        kept = {"control_inputs": [nodes[n.id] for n in old.control_inputs]}
        node = old.with_(inputs=[values[v] for v in old.inputs], **kept | change(old))
        values.update(zip(old.outputs, node.outputs, strict=True))
        nodes[old.id] = node
    return Graph(tuple(values[v] for v in graph.inputs), tuple(values[v] for v in graph.outputs),
                 (), tuple(nodes.values()), graph.name)


LOSSES: list[tuple[Callable[[Node], dict[str, Any]], str]] = [
    (lambda n: {"device": ""}, "was placed on '/device:CPU:0' and is on '' now"),
    (lambda n: {"device": DEVICES[1]}, "was placed on '/device:CPU:0' and is on"),
    (lambda n: {"control_inputs": ()}, "which nothing says any more"),
    (lambda n: {"name": f"{n.name}_new", "device": "/device:GPU:7"}, "is new and on"),
    (lambda n: {"name": f"{n.name}_new", "control_inputs": ()}, "had to run after"),
]


@pytest.mark.parametrize(("change", "message"), LOSSES)
def test_what_a_pass_loses_is_an_error(
    change: Callable[[Node], dict[str, Any]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = traced(statistics)
    with pytest.raises(VerificationError, match=message):
        verify_pass(graph, rebuilt(graph, lambda n: {} if n.op in SOURCES else change(n)))
    verify_pass(graph, rebuilt(graph, lambda n: {}))

    def forgetful(graph: Graph) -> Graph:
        return rebuilt(graph, lambda n: {} if n.op in SOURCES else change(n))

    monkeypatch.setattr(module, "pipeline", lambda options: [Pass("forgetful", forgetful)])
    with pytest.raises(PassError, match="the pass 'forgetful' left an invalid graph"):
        run_pipeline(graph, PassOptions(verify=True))


def test_a_kernel_of_two_devices_is_an_error() -> None:
    graph = run_pipeline(traced(statistics), PassOptions(verify=True))
    elsewhere = rebuilt(graph, lambda n: {} if n.op != "Fused" else {
        "device": "/device:CPU:9", "name": f"{n.name}_new"})
    with pytest.raises(VerificationError, match="is new and on '/device:CPU:9'"):
        verify_pass(graph, elsewhere)
