"""Comparing graphs: structural equality, and a short diff of two text forms."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ..graph import Graph, Node
from ..walks import depth_first, operands
from .text import print_graph

UNCHANGED = "(unchanged)"


def graphs_equal(a: Graph, b: Graph) -> bool:
    """Whether two graphs compute the same thing in the same way.

    Names of nodes other than parameters, locations and the order of independent nodes do not count;
    ops, attributes (by their exact text form), types, operands, control edges and devices do.
    """
    return print_graph(canonical(a), locs=False) == print_graph(canonical(b), locs=False)


def assert_same_graph(actual: Graph, expected: Graph) -> None:
    """Raises ``AssertionError`` that prints both graphs and their diff unless they are equal."""
    if not graphs_equal(actual, expected):
        one, two = (print_graph(g, locs=False) for g in (actual, expected))
        diff = graph_diff(canonical(expected), canonical(actual))
        raise AssertionError(
            f"the graphs differ\nactual:\n{one}\nexpected:\n{two}\nexpected -> actual:\n{diff}"
        )


def canonical(graph: Graph) -> Graph:
    """A copy with nodes in a depth-first order from the roots, named ``n0``, ``n1``, …"""
    copies: dict[int, Node] = {}
    parameters = {v.node.id for v in graph.inputs}
    for node in _depth_first(graph):
        name = node.name if node.id in parameters else f"n{len(copies) - len(parameters)}"
        copies[node.id] = _copy(node, name, copies)
    return Graph(
        tuple(copies[v.node.id].out(v.index) for v in graph.inputs),
        tuple(copies[v.node.id].out(v.index) for v in graph.outputs),
        tuple((i, copies[v.node.id].out(v.index)) for i, v in graph.updates),
        tuple(copies.values()),
        graph.name,
    )


def _copy(node: Node, name: str, copies: dict[int, Node]) -> Node:
    attrs = {k: canonical(v) if isinstance(v, Graph) else v for k, v in sorted(node.attrs.items())}
    return node.with_(
        inputs=[copies[v.node.id].out(v.index) for v in node.inputs], attrs=attrs, name=name,
        loc=None, control_inputs=[copies[n.id] for n in node.control_inputs])


def _depth_first(graph: Graph) -> Iterator[Node]:
    """Parameters, then every node after its operands, roots in order; without recursion."""
    roots = [v.node for v in (*graph.inputs, *graph.roots)] + list(graph.nodes)
    return depth_first(roots, lambda node: [*operands(node), *node.control_inputs])


def graph_diff(before: Graph, after: Graph, context: int = 1) -> str:
    """The changed lines of the text form with ``context`` lines around; `UNCHANGED` when equal.

    Stretches of unchanged lines are replaced by their count.
    """
    old, new = (print_graph(g, locs=False).split("\n") for g in (before, after))
    if old == new:
        return UNCHANGED
    lines: list[str] = []
    at = 0
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        lines += _elided(group[0][1] - at)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f"  {line}" for line in old[i1:i2]]
            else:
                lines += [f"- {line}" for line in old[i1:i2]]
                lines += [f"+ {line}" for line in new[j1:j2]]
        at = group[-1][2]
    return "\n".join(lines + _elided(len(old) - at))


def _elided(count: int) -> list[str]:
    return [f"  … {count} unchanged line{'s' if count > 1 else ''}"] if count > 0 else []
