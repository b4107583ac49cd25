"""Links between the texts of a kernel: nodes of its graph, lines of its loops, of its code; and
between those of a branch or loop, whose statements stand for the lines of loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fusec.codegen.kernels.loop_ir import Expr, Kernel, kernel_lines
from fusec.codegen.kernels.lower import nodes_of_expressions
from fusec.codegen.machine_code.code_listings import Listing
from fusec.codegen.structured.builder import Origins
from fusec.codegen.structured.program import build_program
from fusec.codegen.structured.text import numbered_blocks
from fusec.compiled.compiled_steps import CompiledControl, CompiledKernel
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
    unlinked: dict[str, str] = field(default_factory=dict)  # texts without links, and why

    def take(self, found: Mapping[str, Listing]) -> dict[str, str]:
        """Keep the links of listings; their texts."""
        self.code = {title: listing.rows for title, listing in found.items()}
        self.unlinked = {t: listing.unlinked for t, listing in found.items() if listing.unlinked}
        return {title: listing.text for title, listing in found.items()}

    def data(self, sources: Sources) -> Json:
        return {"nodes": [[n.name, n.op, sources.number(n.loc)] for n in self.nodes],
                "loops": self.loops, "code": self.code, "unlinked": self.unlinked}


def links_of(kernel: CompiledKernel, graphs: Sequence[Graph]) -> Links:
    """The links of a kernel whose node is in one of the graphs; none where it is in no graph."""
    node = next((n for graph in graphs for n in graph.nodes
                 if n.op == "Fused" and n.name == kernel.name), None)
    if node is None:
        return Links()
    nodes = [n for n in node.attrs["body"].nodes if n.op != "Input"]
    return Links([n.name for n in nodes], nodes, _loops(kernel.kernel, node, nodes))


def control_links(
    step: CompiledControl, listings: Callable[..., dict[str, Listing]] | None, backend: Any
) -> tuple[Links, dict[str, str]]:
    """The links of a branch's or loop's program, whose lines stand for those of loops, and its
    texts; none where it has none."""
    run, origins = step.run, Origins()
    if run.program is None:
        return Links(), {}
    program = build_program(run.program.node, run.strides, origins=origins)
    lines = [None, *(of for _, of in numbered_blocks(program.body, program.exits))]  # after a title
    nodes, rows = _NodesOfStatements(origins), dict[int, list[int]]()
    for number, of in enumerate(lines):
        rows.setdefault(id(of), []).append(number)
    loops = [nodes.numbers(of) for of in lines]
    found = {} if listings is None else listings(run, program, rows, backend)
    made = Links([n.name for n in nodes.known], list(nodes.known), loops)
    return made, {"structured": str(program), **made.take(found)}


class _NodesOfStatements:
    """Nodes by the number in which they are met in a program: ``known``."""

    def __init__(self, origins: Origins) -> None:
        self.known: dict[Node, int] = {}
        self._origins = origins
        self._expressions: dict[Node, dict[Expr, list[Node]]] = {}

    def numbers(self, statement: Any) -> list[int]:
        node, expression = self._origins.get(id(statement), (None, None))
        return [] if node is None else sorted(
            {self.known.setdefault(n, len(self.known)) for n in self._of(node, expression)})

    def _of(self, node: Node, expression: Expr | None) -> Sequence[Node]:
        """Of a kernel the nodes that the expression computes; where that is not known, all."""
        if node.op != "Fused":
            return [node]
        if expression is None:
            return [n for n in node.attrs["body"].nodes if n.op != "Input"]
        if node not in self._expressions:
            self._expressions[node] = nodes_of_expressions(node)
        return [n for n in self._expressions[node].get(expression, ()) if n.op != "Input"]


def _loops(kernel: Kernel, node: Node, nodes: Sequence[Node]) -> list[list[int]]:
    """For each line of the loops the nodes that it computes."""
    number = {n.id: k for k, n in enumerate(nodes)}
    of = nodes_of_expressions(node)
    result = []
    for _, expression in kernel_lines(kernel):
        found: Iterable[Node] = of.get(expression, ()) if expression is not None else ()
        result.append(sorted({number[n.id] for n in found if n.id in number}))
    return result
