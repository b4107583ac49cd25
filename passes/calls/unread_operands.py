"""Operands of calls that share a body, of which the body reads nothing.

Inlined, the nodes that compute them would be dead code.  As operands they keep it alive, and its
reading of a product keeps that from being contracted.  `prune` drops them first.
"""

from __future__ import annotations

from fusec.ir import Graph, Node
from fusec.ir.uses import use_counts
from fusec.ops.calls.recursion import is_repeated

from ..rewrite import Rewriter, rebuilt


def without_unread(graph: Graph) -> Graph:
    """The graph, and the bodies of calls in it, without parameters that no node reads."""
    return _without_unread(graph, {}) if "Call" in graph.ops else graph


def _without_unread(graph: Graph, bodies: dict[int, tuple[Graph, list[int]]]) -> Graph:
    rewriter = Rewriter(graph)
    for old in graph.nodes:
        rewriter.stand_for(old)
        node = rewriter.operands(old)
        rewriter.keep(_passing_less(node, bodies) if is_repeated(node) else node)
    return rebuilt(graph, rewriter.nodes, rewriter.values)


def _passing_less(call: Node, bodies: dict[int, tuple[Graph, list[int]]]) -> Node:
    """The call with the operands that its body reads; ``bodies`` has those that were met."""
    whole: Graph = call.attrs["body"]
    if id(whole) not in bodies:
        bodies[id(whole)] = _with_parameters_read(_without_unread(whole, bodies))
    body, kept = bodies[id(whole)]
    if body is whole:
        return call
    attrs = {**call.attrs, "body": body, "own": sum(k < call.attrs["own"] for k in kept)}
    return call.with_(inputs=[call.inputs[k] for k in kept], attrs=attrs)


def _with_parameters_read(body: Graph) -> tuple[Graph, list[int]]:
    """The body over the parameters that something reads, and which of its own these are."""
    read = use_counts(body.nodes, body.roots)
    kept = [k for k, parameter in enumerate(body.inputs) if parameter in read]
    if len(kept) == len(body.inputs):
        return body, kept
    gone = {v.node.id for v in body.inputs if v not in read}
    return Graph(tuple(body.inputs[k] for k in kept), body.outputs, body.updates, tuple(
        node for node in body.nodes if node.id not in gone), body.name), kept
