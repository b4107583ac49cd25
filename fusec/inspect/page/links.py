"""Links between the texts of a kernel: nodes of its graph, lines of its loops, of its code; and
between those of a branch or loop, whose statements stand for the lines of loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fusec.codegen.kernels.loop_ir import Expr, Kernel, kernel_lines
from fusec.codegen.kernels.lower import nodes_of_expressions
from fusec.codegen.machine_code.code_listings import Listing, ProgramRows, joined
from fusec.codegen.structured.builder import Origins
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.codegen.structured.statements import walk
from fusec.codegen.structured.text import numbered_blocks
from fusec.compiled.compiled_steps import CompiledControl
from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node

from .texts import Sources

Json = dict[str, Any]
WRITE_BACK = "_writeback"  # ends the names of kernels that write results to where they belong


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


def links_of(kernel: Kernel, graphs: Sequence[Graph]) -> Links:
    """The links of a kernel whose node is in one of the graphs; none where it is in no graph.

    A kernel that writes a result back is of the node that has computed it.
    """
    name = kernel.name.removesuffix(WRITE_BACK)
    node = next((n for graph in graphs for n in graph.nodes if n.name == name), None)
    if node is None:
        return Links()
    inside = node.attrs["body"].nodes if node.op == "Fused" else ()
    if name != kernel.name or not inside:
        copied = next((n for n in inside if n.name == kernel.buffers[0].value), node)
        rows: list[list[int]] = [[] if e is None else [0] for _, e in kernel_lines(kernel)]
        return Links([copied.name], [copied], rows)
    nodes = [n for n in inside if n.op != "Input"]
    return Links([n.name for n in nodes], nodes, _loops(kernel, node, nodes))


def control_links(
    step: CompiledControl, listings: Callable[..., dict[str, Listing]] | None, backend: Any
) -> tuple[Links, dict[str, str]]:
    """The links of a branch's or loop's program, whose lines stand for those of loops, and its
    texts; none where it has none."""
    run, origins = step.run.pattern, Origins()
    if run.program is None:
        return Links(), {}
    program = build_program(run.program.node, run.strides, origins=origins)
    text = _ProgramText(program, origins)
    found = {} if listings is None else listings(run, program, text.rows, backend)
    known = text.nodes.known
    made = Links([n.name for n in known], list(known), text.of)
    return made, {"structured": "\n".join(text.lines), **made.take(found)}


class Steps:
    """The texts of kernels, branches and loops one after another, as those of one: ``texts`` begin
    with their own lines, in which all others are linked."""

    def __init__(self, title: str, line: str) -> None:
        self._title, self._lines, self._codes = title, [line], dict[str, Listing]()
        self._nodes: list[Node] = []
        self._loops: list[list[int]] = [[]]

    def line(self, text: str, node: Node | None = None) -> None:
        """A line that has no code of its own."""
        self._lines.append(text)
        self._loops.append([] if node is None else [len(self._nodes)])
        self._nodes += [] if node is None else [node]

    def add(self, links: Links, texts: Mapping[str, str]) -> None:
        """Another one's texts, the first of which is linked with the others."""
        if not texts:
            return
        first, nodes = len(self._lines), len(self._nodes)
        (_, own), *others = texts.items()
        self._lines += ["  " + line for line in own.split("\n")]
        self._nodes += links.nodes
        loops = [[nodes + n for n in row] for row in links.loops]
        self._loops += [*loops, *([] for _ in range(own.count("\n") + 1 - len(loops)))]
        for title, text in others:
            rows = [[first + n for n in row] for row in links.code.get(title, ())]
            found = Listing(text, rows, links.unlinked.get(title, ""))
            before = self._codes.get(title)
            self._codes[title] = found if before is None else joined(before, found)

    def finish(self) -> tuple[Links, dict[str, str]]:
        """The links of all, and the texts."""
        made = Links([n.name for n in self._nodes], self._nodes, self._loops)
        return made, {self._title: "\n".join(self._lines), **made.take(self._codes)}


class _ProgramText:
    """The lines of a program's statements, then the loops of the kernels that it runs; ``of``: for
    each line the numbers of its nodes."""

    def __init__(self, program: StructuredProgram, origins: Origins) -> None:
        self.nodes, self.rows = _NodesOfStatements(origins), ProgramRows()
        self.lines, self.of = [f"structured {program.node.name}:"], list[list[int]]([[]])
        for text, statement in numbered_blocks(program.body, program.exits):
            self.rows.add(statement, len(self.lines))
            self._add(text, self.nodes.numbers(statement))
        self._known: dict[str, int] = {}
        for statement in walk(program.body):
            if isinstance(statement, RunKernel):
                self._add_kernel(statement)

    def _add(self, line: str, of: list[int]) -> None:
        self.lines.append(line)
        self.of.append(of)

    def _add_kernel(self, step: RunKernel) -> None:
        """The kernel's loops, once for all that have the same: theirs are the nodes of each."""
        lines = list(kernel_lines(step.kernel))
        text = "\n".join(line for line, _ in lines[1:])
        if text not in self._known:
            self._add("", [])
            self._known[text] = len(self.lines)
            for line, _ in lines:
                self._add(line, [])
        first = self._known[text]
        self.rows.add_kernel(step, first)
        for number, (line, expression) in enumerate(lines, first):
            if expression is not None:
                own = self.nodes.inside(step, expression) or self.nodes.stored(step, line)
                self.of[number] = sorted({*self.of[number], *own})


class _NodesOfStatements:
    """Nodes by the number in which they are met in a program: ``known``."""

    def __init__(self, origins: Origins) -> None:
        self.known: dict[Node, int] = {}
        self._origins = origins
        self._expressions: dict[Node, dict[Expr, list[Node]]] = {}

    def numbers(self, statement: Any) -> list[int]:
        node, expression = self._origins.get(id(statement), (None, None))
        return [] if node is None else self._numbers(self._of(node, expression))

    def inside(self, step: RunKernel, expression: Expr) -> list[int]:
        """Of an expression of the kernel that a statement runs."""
        node, _ = self._origins.get(id(step), (None, None))
        return [] if node is None else self._numbers(self._of(node, expression))

    def stored(self, step: RunKernel, line: str) -> list[int]:
        """Of a line that stores a result which only moves elements."""
        node, _ = self._origins.get(id(step), (None, None))
        return [] if node is None or node.op != "Fused" else self._numbers(
            _stored(node.attrs["body"].nodes, line))

    def _numbers(self, nodes: Iterable[Node]) -> list[int]:
        return sorted({self.known.setdefault(n, len(self.known)) for n in nodes})

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
    for line, expression in kernel_lines(kernel):
        found: Iterable[Node] = of.get(expression, ()) if expression is not None else ()
        numbers = {number[n.id] for n in found if n.id in number}
        if expression is not None and not numbers:
            numbers = {number[n.id] for n in _stored(nodes, line)}
        result.append(sorted(numbers))
    return result


def _stored(nodes: Iterable[Node], line: str) -> list[Node]:
    """The node whose result a line of loops stores: ``Scatter[t1] add = t0``."""
    name, bracket, _ = line.strip().partition("[")
    return [n for n in nodes if n.name == name and n.op != "Input"] if bracket else []
