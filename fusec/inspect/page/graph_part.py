"""The graph of a page: nodes, edges, kernels as boxes, devices, and what was not fused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from fusec.core.locations import GradientLoc
from fusec.ir import Graph, Node
from fusec.ir.text.text import print_attr, print_types

from .texts import Sources

Json = dict[str, Any]
MOST_NODES = 30_000  # of all graphs of a page
FEWEST_FOLDED, MOST_FOLDED = 2, 1_000  # into how many boxes a longer graph is folded
LONGEST_ATTRIBUTES = 300  # letters


class GraphPart:
    """Graphs by number; a node refers to its sub-graphs by theirs."""

    def __init__(self, sources: Sources) -> None:
        self._sources, self._left = sources, MOST_NODES
        self.graphs: list[Json] = []
        self._known: dict[int, tuple[Graph, int]] = {}

    def number(self, graph: Graph) -> int:
        """The number of a graph; -1 where there is no room for it."""
        known = self._known.get(id(graph))
        if known is not None:
            return known[1]
        number = len(self.graphs)
        self._known[id(graph)] = graph, number
        self.graphs.append({})
        self.graphs[number] = self._whole(graph) if len(graph.nodes) <= self._left else (
            self._folded(graph))
        return number

    def _whole(self, graph: Graph) -> Json:
        self._left -= len(graph.nodes)
        place = {node.id: number for number, node in enumerate(graph.nodes)}
        return {
            "name": graph.name, "count": len(graph.nodes),
            "nodes": [self._node(node, place) for node in graph.nodes],
            "inputs": [place[v.node.id] for v in graph.inputs if v.node.id in place],
            "outputs": [[place[v.node.id], v.index] for v in graph.outputs],
            "updates": [[i, place[v.node.id], v.index] for i, v in graph.updates],
        }

    def _node(self, node: Node, place: dict[int, int]) -> Json:
        made: Json = {
            "n": node.name, "o": node.op, "t": print_types(node.types),
            "i": [[place[v.node.id], v.index] for v in node.inputs],
            "l": self._sources.number(node.loc), "b": _bytes(node)}
        if attrs := _attributes(node):
            made["a"] = attrs
        if len(node.types) > 1:
            made["bs"] = [t.nbytes if isinstance(t.nbytes, int) else None for t in node.types]
        if isinstance(node.loc, GradientLoc):
            made["q"] = 1
        if node.device:
            made["d"] = node.device
        if node.control_inputs:
            made["c"] = [place[n.id] for n in node.control_inputs]
        if graphs := [[key, self.number(value)] for key, value in node.attrs.items()
                      if isinstance(value, Graph)]:
            made["g"] = graphs
        return made

    def _folded(self, graph: Graph) -> Json:
        """Runs of nodes in their order, each as one box: a graph is in topological order, so the
        boxes have no circle."""
        size = max(FEWEST_FOLDED, -(-len(graph.nodes) // MOST_FOLDED))
        place = {node.id: number // size for number, node in enumerate(graph.nodes)}
        runs = [graph.nodes[start:start + size] for start in range(0, len(graph.nodes), size)]
        return {
            "name": graph.name, "count": len(graph.nodes), "folded": size,
            "nodes": [self._run(number, run, place) for number, run in enumerate(runs)],
            "inputs": [], "outputs": [[place[v.node.id], 0] for v in graph.outputs],
            "updates": []}

    def _run(self, number: int, run: Sequence[Node], place: dict[int, int]) -> Json:
        ops = sorted({node.op for node in run})
        read = {place[v.node.id] for node in run for v in node.inputs} - {number}
        return {"n": f"{run[0].name} … {run[-1].name}", "o": "Nodes", "t": f"{len(run)} nodes",
                "i": [[other, 0] for other in sorted(read)], "b": _total(map(_bytes, run)),
                "l": self._sources.number(run[0].loc),
                "a": " ".join(ops)[:LONGEST_ATTRIBUTES]}


def _bytes(node: Node) -> int | None:
    """Bytes of the results, where they are known."""
    return _total(t.nbytes for t in node.types)


def _total(sizes: Iterable[Any]) -> int | None:
    sizes = list(sizes)
    return sum(sizes) if all(isinstance(s, int) for s in sizes) else None


def _attributes(node: Node) -> str:
    """Attributes as text, without sub-graphs and what has a field of its own."""
    words = [f"{key}={print_attr(value, locs=False)}" for key, value in node.attrs.items()
             if not isinstance(value, Graph) and not (node.op == "Fused" and key == "boundaries")
             and not (node.op == "Input" and key in ("index", "type"))]
    text = ", ".join(words)
    return text if len(text) <= LONGEST_ATTRIBUTES else text[:LONGEST_ATTRIBUTES - 1] + "…"


def boundaries(graph: Graph) -> list[list[str]]:
    """Edges that were not fused: the kernel that might have gone on, and why it does not."""
    return [[node.name, text] for node in graph.nodes
            for text in node.attrs.get("boundaries", ())]


def mark_gradient(graphs: list[Json], number: int, names: Collection[str]) -> None:
    """Mark the nodes of a graph, and those of its kernels, that derivatives made; others than these
    names have places that say so."""
    for node in graphs[number]["nodes"]:
        if node["n"] in names:
            node["q"] = 1
        if node["o"] == "Fused":
            for _, inner in node.get("g", ()):
                if inner >= 0:
                    mark_gradient(graphs, inner, names)
