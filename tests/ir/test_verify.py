"""The verifier: every rule broken once, the fault marked in the IR."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fusec.errors import InternalError
from fusec.ir import Graph, Node, TensorType
from fusec.ir.text.parse import parse_graph
from fusec.ops.graphs.verify import VerificationError, verify

F8 = TensorType(np.dtype("f8"), (3,))
TEXT = """graph main(x: f64[3], y: f32[3]) {
  %a = Exp(%x) : f64[3]
  %b = Add(%a, %x) : f64[3]
  %c = Less(%a, %b) : bool[3]
  %d = Where(%c, %a, %b) : f64[3]
  return %d
  update x = %b
}"""


def test_a_good_graph_passes() -> None:
    verify(parse_graph(TEXT))


@pytest.mark.parametrize(("old", "new", "message"), [
    ("Exp(%x) : f64[3]", "Exp(%x) : f64[4]", "is f64[4], the type rule of Exp gives f64[3]"),
    ("Exp(%x)", "Exq(%x)", "no op 'Exq' in the registry"),
    ("Add(%a, %x)", "Add(%a)", "Add takes 2 operands, not 1"),
    ("Add(%a, %x) : f64", "Add(%a, %y) : f32", "the operands of Add differ in dtype"),
    ("Where(%c,", "Where(%a,", "the condition of Where is f64[3], not bool"),
    ("update x", "update y", "the update of 'y' has type f64[3], the parameter f32[3]"),
    ("Exp(%x)", "Sum(%x) {axes=(0, 1, 2)}", "is f64[3], the type rule of Sum gives f64"),
    ("Exp(%x)", "Sum(%x)", "the type rule of Sum refuses it: KeyError('axes')"),
])
def test_typed_faults(old: str, new: str, message: str) -> None:
    with pytest.raises(VerificationError) as info:
        verify(parse_graph(TEXT.replace(old, new)))
    assert message in str(info.value)
    assert isinstance(info.value, InternalError)


def replaced(**parts: object) -> Graph:
    return dataclasses.replace(parse_graph(TEXT), **parts)


def test_structural_faults() -> None:
    graph = parse_graph(TEXT)
    nodes, stranger = graph.nodes, Node("Input", (), (F8,), name="stranger")
    faults = {
        "two nodes are named 'a'": (*nodes, Node("Exp", graph.inputs[:1], (F8,), name="a")),
        "'b' reads 'a', which comes later": (*nodes[:2], nodes[3], nodes[2], *nodes[4:]),
        "'b' reads 'a', which is not in the graph": (*nodes[:2], *nodes[3:]),
        "the Input node 'stranger' is not among": (*nodes, stranger),
        "a parameter's node is not in graph.nodes": nodes[1:],
        "the output d:0 is not in the graph": nodes[:-1],
    }
    for message, broken in faults.items():
        with pytest.raises(VerificationError, match=message):
            verify(dataclasses.replace(graph, nodes=broken))


def test_faults_of_the_interface() -> None:
    graph = parse_graph(TEXT)
    x = graph.inputs[0]
    parts = {
        "a parameter is listed twice": {"inputs": (x, x)},
        "a:0 is not an Input node": {"inputs": (graph["a"].out(), *graph.inputs[1:])},
        "an update names parameter 7 of 2": {"updates": ((7, x),)},
        "the output d:1 does not exist": {"outputs": (graph["d"].out(1),)},
    }
    for message, part in parts.items():
        with pytest.raises(VerificationError, match=message):
            verify(dataclasses.replace(graph, **part))


def test_control_edges_and_operand_indices() -> None:
    graph = parse_graph(TEXT)
    late = Node("Exp", graph.inputs[:1], (F8,), name="late")
    early = Node("Exp", graph.inputs[:1], (F8,), name="early", control_inputs=[late])
    with pytest.raises(VerificationError, match="'early' reads 'late', which is not in the graph"):
        verify(dataclasses.replace(graph, nodes=(*graph.nodes, early)))
    bad = Node("Exp", [graph["a"].out(2)], (F8,), name="bad")
    with pytest.raises(VerificationError, match="a:2 does not exist: the node has 1 outputs"):
        verify(dataclasses.replace(graph, nodes=(*graph.nodes, bad)))


def test_the_fault_is_marked_in_its_surroundings() -> None:
    with pytest.raises(VerificationError) as info:
        verify(parse_graph(TEXT.replace("%c = Less(%a, %b) : bool", "%c = Less(%a, %b) : f64")))
    marked = [line for line in str(info.value).split("\n") if line.startswith(">>")]
    assert marked == [">>   %c = Less(%a, %b) : f64[3]"]
    assert "%b = Add(%a, %x) : f64[3]" in str(info.value)
