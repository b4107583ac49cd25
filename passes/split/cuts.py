"""Variances along axes in blocks: cut out before composite ops are decomposed.

does:   makes each ``Var`` and ``Std`` that `states_of` finds at a barrier a parameter of the graph,
        and its operand an output: their blocks are joined as counts, means and squared distances,
        not as the two passes over everything that they decompose into.
needs:  a graph with its composite ops.
leaves: a graph with as many more outputs and parameters, which are its last ones.
"""

from __future__ import annotations

from collections.abc import Callable

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, Value
from fusec.ops import Namer, registry


def is_spread(node: Node) -> bool:
    """Whether it is a variance, or the root of one."""
    return registry.get(node.op).kind == "composite" and "ddof" in node.attrs


@dataclass(frozen=True)
class Cut:
    """A variance that is the graph's parameter of this number, of the output of that number."""

    node: Node
    parameter: int
    output: int


def cut_moments(graph: Graph, is_joined: Callable[[Node], bool]) -> tuple[Graph, list[Cut]]:
    """The graph without the variances that are joined, and what was cut."""
    found = [node for node in graph.nodes if is_spread(node) and is_joined(node)]
    if not found:
        return graph, []
    namer = Namer(node.name for node in graph.nodes)
    values: dict[Value, Value] = {}
    nodes: list[Node] = []
    cuts: list[Cut] = []
    outputs, inputs = list(graph.outputs), list(graph.inputs)
    for node in graph.nodes:
        copy = node.with_inputs([values.get(v, v) for v in node.inputs])
        if node in found:
            copy = _parameter(copy, len(inputs), namer)
            cuts.append(Cut(node, len(inputs), len(outputs)))
            inputs.append(copy.out())
            outputs.append(values.get(node.inputs[0], node.inputs[0]))
        nodes.append(copy)
        values.update(zip(node.outputs, copy.outputs, strict=True))
    return Graph(tuple(values.get(v, v) for v in inputs), tuple(values.get(v, v) for v in outputs),
                 (), tuple(nodes), graph.name), cuts


def _parameter(node: Node, index: int, namer: Namer) -> Node:
    attrs = {"type": node.types[0], "index": index, "path": namer.fresh(f"{node.name}_of_blocks")}
    return Node("Input", (), node.types, attrs, name=node.name, loc=node.loc)


__all__ = ["Cut", "cut_moments"]
