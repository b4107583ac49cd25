"""Graphs that were admitted before, made as admission makes them, without its proofs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusec.ir.graph import Graph, Node, Value

from .. import registry
from .admit import as_words, checking_all, kinds_of


def remade(graph: Graph) -> Graph:
    """The graph as `admit` makes it anew where its proofs have nothing to add: for one that was
    admitted so.  Raises ``LookupError`` where a node is read before it is there."""
    new: dict[int, Node] = {}
    for position, value in enumerate(graph.inputs):
        node = value.node
        attrs = {"type": node.types[0], "index": position,
                 "path": node.attrs.get("path", node.name)}
        new[node.id] = node.with_(attrs=attrs, loc=as_words(node.loc))
    for node in graph.nodes:
        if node.op != "Input":
            new[node.id] = node.with_(
                inputs=[new[v.node.id].out(v.index) for v in node.inputs], attrs=_attrs(node),
                loc=as_words(node.loc), control_inputs=[new[n.id] for n in node.control_inputs])

    def values(old: Iterable[Value]) -> tuple[Value, ...]:
        return tuple(new[v.node.id].out(v.index) for v in old)

    changed = [i for i, _ in graph.updates]
    return checking_all(Graph(
        values(graph.inputs), values(graph.outputs),
        tuple(zip(changed, values(v for _, v in graph.updates), strict=True)),
        tuple(new.values()), graph.name))


def _attrs(node: Node) -> dict[str, Any]:
    """Its attributes, with claims as the row has them."""
    if not node.attrs:
        return {}
    row = registry.get(node.op)
    assert row.admits is not None
    own = {name: remade(value) if isinstance(value, Graph) else value
           for name in kinds_of(row) if (value := node.attrs.get(name, _NONE)) is not _NONE}
    return own | {name: value for name, value in row.admits.claims.items() if value is not None}


_NONE = object()
