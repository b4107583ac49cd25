"""Calls that share one body: put in its place, or kept.

does:   `place_bodies` puts the body of each repeated `Call` in its place where the whole graph then
        has at most `MOST` nodes; `place_contracted` does it for calls that may not stay one
        because products are contracted (see there).
needs:  `place_contracted`: a simplified graph, before `fma`.
leaves: calls of a graph that would be longer, which compile once and run as a plan of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from fusec.ir import Graph, Node, Value
from fusec.ir.lazy_values import asked_once
from fusec.ops import get
from fusec.ops.calls.recursion import is_repeated

from ..rewrite import Rewriter, rebuilt, with_present_name
from .contractions import differing_calls

MOST = 2_000  # nodes of a graph that is compiled as one; passes take half a second for them
MOST_ROUNDS = 4
Pass = Callable[[Graph], Graph]


def place_bodies(graph: Graph) -> Graph:
    """The graph with the bodies of repeated calls, if it is not too long with them."""
    while (calls := repeated_calls(graph)) and length(graph) <= MOST:
        graph = with_bodies(graph, calls)
    return graph


def place_contracted(graph: Graph, prepare: Pass, clean: Pass) -> Graph:
    """The graph without calls in which, or around which, other products would be contracted than
    with the bodies in their places.

    A product is contracted if one operand reads it, and with its body in place a call may share
    products with others.  ``prepare`` brings a body to where this graph is, ``clean`` simplifies.
    """
    if not repeated_calls(graph):
        return graph
    prepared = with_prepared(graph, prepare)
    for _ in range(MOST_ROUNDS):
        told = differing_calls(prepared)
        if not told:
            break
        graph = prepared = clean(with_bodies(prepared, told))
    while (calls := repeated_calls(graph)) and told:
        graph = clean(with_bodies(graph, calls))
    return graph


def repeated_calls(graph: Graph) -> list[Node]:
    """The nodes of the graph itself that are calls which share their body."""
    return [n for n in graph.nodes if is_repeated(n)] if "Call" in graph.ops else []


@asked_once
def length(graph: Graph) -> int:
    """The nodes that compute something, those of bodies once for each call."""
    return sum(length(node.attrs["body"]) if is_repeated(node) else not get(node.op).is_given
               for node in graph.nodes)


def with_prepared(graph: Graph, prepare: Pass) -> Graph:
    """The graph with other bodies."""
    bodies: dict[int, Graph] = {}
    rewriter = Rewriter(graph)
    for old in graph.nodes:
        rewriter.stand_for(old)
        node = rewriter.operands(old)
        if is_repeated(node):
            body = node.attrs["body"]
            new = bodies.get(id(body)) or bodies.setdefault(id(body), prepare(body))
            node = node.with_(attrs={**node.attrs, "body": new})
        rewriter.keep(node)
    return rebuilt(graph, rewriter.nodes, rewriter.values)


def with_bodies(graph: Graph, calls: Collection[Node]) -> Graph:
    """The graph with the bodies of these calls in their places."""
    chosen = {node.id for node in calls}
    rewriter = Rewriter(graph)
    for old in graph.nodes:
        rewriter.stand_for(old)
        node = rewriter.operands(old)
        if old.id in chosen:
            rewriter.accept(_placed(node, rewriter))
        else:
            rewriter.keep(node)
    return rebuilt(graph, rewriter.nodes, rewriter.values)


def _placed(call: Node, rewriter: Rewriter) -> list[Value]:
    """The results of the body, whose nodes are made anew on the call's operands."""
    body: Graph = call.attrs["body"]
    values = dict(zip(body.inputs, call.inputs, strict=True))
    names = {v.node.name: given.node.name for v, given in values.items()}
    copies: dict[int, Node] = {}
    for node in body.nodes:
        if node.op != "Input":
            names[node.name] = rewriter.namer.fresh(node.name)
            copies[node.id] = new = node.with_(
                inputs=[values[v] for v in node.inputs], name=names[node.name],
                control_inputs=[copies[n.id] for n in node.control_inputs if n.id in copies],
                device=with_present_name(node.device, names))
            rewriter.pending.append(new)
            values.update(zip(node.outputs, new.outputs, strict=True))
    return [values[v] for v in body.outputs]
