"""Links between the texts of a kernel: nodes of its graph, lines of its loops, of its code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fusec.codegen.kernels.loop_ir import Kernel, kernel_lines
from fusec.codegen.kernels.lower import nodes_of_expressions
from fusec.compiled.compiled_steps import CompiledKernel
from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node

from .texts import Sources

Json = dict[str, Any]


@dataclass
class Links:
    """``names``: the nodes of the kernel, ``nodes``: their places.

    ``loops``: for each line of the loops the numbers of the nodes that it computes.  ``code``: for
    each text by its title and each of its lines the lines of the loops that it is of.
    """

    names: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    loops: list[list[int]] = field(default_factory=list)
    code: dict[str, list[list[int]]] = field(default_factory=dict)

    def data(self, sources: Sources) -> Json:
        return {"nodes": [[n.name, n.op, sources.number(n.loc)] for n in self.nodes],
                "loops": self.loops, "code": self.code}


def links_of(kernel: CompiledKernel, graphs: Sequence[Graph]) -> Links:
    """The links of a kernel whose node is in one of the graphs; none where it is in no graph."""
    node = next((n for graph in graphs for n in graph.nodes
                 if n.op == "Fused" and n.name == kernel.name), None)
    if node is None:
        return Links()
    nodes = [n for n in node.attrs["body"].nodes if n.op != "Input"]
    return Links([n.name for n in nodes], nodes, _loops(kernel.kernel, node, nodes))


def _loops(kernel: Kernel, node: Node, nodes: Sequence[Node]) -> list[list[int]]:
    """For each line of the loops the nodes that it computes."""
    number = {n.id: k for k, n in enumerate(nodes)}
    of = nodes_of_expressions(node)
    result = []
    for _, expression in kernel_lines(kernel):
        found: Iterable[Node] = of.get(expression, ()) if expression is not None else ()
        result.append(sorted({number[n.id] for n in found if n.id in number}))
    return result
