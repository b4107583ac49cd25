"""Invariants of passes: where nodes are to run, and which run before others.

A node names its device in ``device`` and, beyond those that it reads, the nodes that run before it
in ``control_inputs``.  A pass may move, replace and join nodes; it may not lose either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from fusec.ir.graph import Graph, Node, topological_order
from fusec.ops import get

from ..calls.checks import has_effects, is_check
from .verify import VerificationError, excerpt


def verify_pass(before: Graph, after: Graph) -> None:
    """Raises `VerificationError` where a pass has lost a device or a control edge.

    Nodes are recognised by their names, inside ``Fused`` nodes too.  A node with a new name stands
    for nodes that are gone: it must be on a device that some node was on, and run after the
    predecessors of those it replaces.
    """
    devices = {_device(n) for n in _computing(before)}
    edges = [(c, n) for n in before.nodes for c in n.control_inputs]
    if devices <= {""} and not edges:
        return
    original = {n.name for n in before.nodes}
    _check_devices(before, after, original, devices)
    homes = {n.name: home for home in after.nodes for n in _inside(home)}
    if edges:
        live = {n.id for n in topological_order(
            [v.node for v in before.roots] + [n for n in before.nodes if has_effects(n)])}
        new = [n for n in after.nodes if n.name not in original and n.op != "Fused"]
        for first, then in edges:
            if then.id in live:
                _check_edge(after, first, then, homes, new)


def _computing(graph: Graph) -> Iterator[Node]:
    return (n for n in graph.nodes if not get(n.op).is_given)


def _device(node: Node) -> str:
    """Its constraint, without which node it is to be beside: that one may get another name."""
    return re.sub("@[^~]*", "@", node.device) if "@" in node.device else node.device


def _inside(node: Node) -> Iterator[Node]:
    """The node, and those that it computes itself."""
    yield node
    if node.op == "Fused":
        yield from _computing(node.attrs["body"])


def _check_devices(before: Graph, after: Graph, original: set[str], devices: set[str]) -> None:
    for home in _computing(after):
        for node in _inside(home):
            if node.device != home.device:
                _fail(after, f"{node.name!r} for {node.device!r} is computed on {home.device!r}",
                      home)
            if node.name in original and not get(node.op).is_given:
                placed = before[node.name]
                if not get(placed.op).is_given and _device(placed) != _device(node):
                    _fail(after, f"{node.name!r} was placed on {placed.device!r} and is on "
                                 f"{node.device!r} now", home)
            elif _device(node) not in devices and not _copies_an_argument(node):
                _fail(after, f"{node.name!r} is new and on {node.device!r}, where nothing was",
                      home)


def _copies_an_argument(node: Node) -> bool:
    """Whether the node only copies an input, which is on no device of its own."""
    return node.op == "Copy" and get(node.inputs[0].node.op).is_given


def _check_edge(
    after: Graph, first: Node, then: Node, homes: dict[str, Node], new: list[Node]
) -> None:
    """``first`` runs before ``then``, or nodes in their places do."""
    if any(is_check(n) and n.name not in homes for n in (first, then)):
        return  # the user has turned checks off: `passes.unchecked_indices`
    targets = [homes[then.name]] if then.name in homes else new
    if first.name in homes:
        is_kept = any(_follows(target, homes[first.name]) for target in targets)
    else:  # an equal node that was there before may have taken its place
        is_kept = any(len(n.control_inputs) >= len(then.control_inputs) for n in targets)
    if not is_kept:
        _fail(after, f"{then.name!r} had to run after {first.name!r}, which nothing says any more",
              homes.get(then.name))


def _follows(node: Node, first: Node) -> bool:
    before = topological_order([*(v.node for v in node.inputs), *node.control_inputs])
    return any(n is first for n in before)


def _fail(graph: Graph, message: str, node: Node | None) -> NoReturn:
    raise VerificationError(f"a pass of {graph.name!r} lost a node's place: {message}\n"
                            f"{excerpt(graph, node)}")
