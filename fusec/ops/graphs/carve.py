"""Partial execution: the part of a graph between edges that are fed and edges that are fetched.

Rules: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Systems", section 4.2, and
"Functions, not Sessions", section "Derived/Related Graphs".  An edge is ``name:port``, an output of
a node.  A fed edge becomes a parameter, and nodes that only it needed do not run.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence

from fusec.errors import FusecError
from fusec.ir.graph import Graph, Node, Value
from fusec.ir.sizes.dims import symbols_of
from fusec.ops.build import Namer

from ..calls.checks import has_effects
from ..rows.sizes import learnt_symbols, needed_symbols


class CarvingError(FusecError, ValueError):
    """Edges that a graph does not have, or that are missing; all of them at once."""


def carve(
    graph: Graph, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
    prune: bool = False,
) -> Graph:
    """The graph from the edges ``inputs`` to the edges ``outputs``; None means the graph's own.

    Without ``prune`` all effects (updates of parameters, checks, prints) stay, and their operands
    must be fed.  With ``prune`` a check stays where a node that runs must follow it, an update
    where its value is computed anyway and its parameter is fed; all other effects are dropped.

    Raises `CarvingError`, for all edges at once: for names that the graph does not have, with
    close matches, and for parameters that are needed and not fed.
    """
    fed = _edges(graph, inputs, "inputs", graph.inputs)
    fetched = _edges(graph, outputs, "outputs", graph.outputs)
    _check_twice(fed)
    part = _Part(graph, fed, fetched, prune)
    part.check_complete()
    return part.carved()


def _edges(
    graph: Graph, names: Sequence[str] | None, what: str, default: Sequence[Value]
) -> list[Value]:
    if names is None:
        return list(default)
    if isinstance(names, str) or not all(isinstance(n, str) for n in names):
        raise CarvingError(f"{what} is no list of names", values=[("given", repr(names))],
                           cure=f'{what}=["Square:0"]')
    unknown, values = [], []
    for name in names:
        try:
            value = graph.value(name)
            value.type  # noqa: B018 (whether there is such an output)
        except (KeyError, IndexError):
            unknown.append(name)
        else:
            values.append(value)
    if unknown:
        raise _unknown(graph, unknown, what)
    return values


def _unknown(graph: Graph, names: Sequence[str], what: str) -> CarvingError:
    every = [v.name for node in graph.nodes for v in node.outputs]
    close = {name: difflib.get_close_matches(_with_port(name), every, 3) for name in names}
    shown = [(name, f"did you mean {' or '.join(near)}?" if near else "no name is close")
             for name, near in close.items()]
    return CarvingError(f"the graph {graph.name!r} has no such {what}", values=shown,
                        cure="graph.nodes lists its nodes; name:port is an output of one")


def _with_port(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def _check_twice(fed: Sequence[Value]) -> None:
    twice = sorted({v.name for v in fed if fed.count(v) > 1})
    if twice:
        raise CarvingError(f"fed twice: {', '.join(twice)}", cure="name every edge once")


class _Part:
    """The nodes that run between the edges, and the effects that stay."""

    def __init__(
        self, graph: Graph, fed: Sequence[Value], fetched: Sequence[Value], prune: bool
    ) -> None:
        self.graph, self.inputs, self.fetched, self.prune = graph, fed, fetched, prune
        self.fed = frozenset(fed)
        effects = [n for n in graph.nodes if has_effects(n) and not self._is_fed(n)]
        self._has_effects = not prune and bool(graph.updates or effects)
        roots = [v.node for v in fetched if v not in fed]
        if not prune:
            roots += [v.node for _, v in graph.updates if v not in fed]
            roots += effects
        self.needed = _behind(roots, self.fed, self._is_fed)
        self.updates = [(i, v) for i, v in graph.updates if not prune or self._is_done(i, v)]

    def _is_fed(self, node: Node) -> bool:
        """Whether all results of the node are fed, so that it need not run."""
        return bool(node.types) and all(v in self.fed for v in node.outputs)

    def _is_done(self, position: int, value: Value) -> bool:
        is_computed = value.node.id in self.needed and value not in self.fed
        return is_computed and self.graph.inputs[position] in self.fed

    def check_complete(self) -> None:
        """Raises for parameters that are needed and not fed, and for sizes that nothing makes."""
        written = [self.graph.inputs[i] for i, _ in self.updates]
        missing = [v for v in self.graph.inputs if v not in self.fed and (
            v.node.id in self.needed or v in written)]
        if missing:
            raise CarvingError(
                f"outputs of {self.graph.name!r} need more than is fed",
                values=[(v.name, f"{v.type}, {self._why(v)}") for v in missing],
                cure="feed them as well" + (", or leave out effects that no output needs: "
                                            "prune=True" if self._has_effects else ""))
        self._check_sizes()

    def _check_sizes(self) -> None:
        symbols = symbols_of(tuple(v.type.shape for v in self.fed))
        for node in self._kept():
            unknown = needed_symbols(node) - symbols
            symbols |= learnt_symbols(node)
            if unknown:
                raise CarvingError(
                    f"{node.name} needs the size {', '.join(sorted(unknown))}, which a node that "
                    f"does not run any more makes", cure="feed fewer edges", loc=node.loc)

    def _why(self, value: Value) -> str:
        if value.node.id not in self.needed:
            return "which the graph updates"
        users = [n.name for n in self._kept() if value in n.inputs]
        return f"read by {', '.join(users[:3])}" if users else "fetched"

    def _kept(self) -> list[Node]:
        return [n for n in self.graph.nodes if n.id in self.needed and n.op != "Input"]

    def carved(self) -> Graph:
        kept = self._kept()
        namer = Namer(n.name for n in kept)
        table: dict[Value, Value] = {}
        for index, value in enumerate(self.inputs):
            table[value] = _parameter(value, index, namer)
        inputs = [table[v] for v in self.inputs]
        copies: dict[int, Node] = {}
        for node in kept:
            copies[node.id] = _copied(node, table, copies)
        at = {v: i for i, v in enumerate(self.inputs)}
        updates = tuple((at[self.graph.inputs[i]], table[v]) for i, v in self.updates)
        return Graph(tuple(inputs), tuple(table[v] for v in self.fetched), updates,
                     (*(v.node for v in inputs), *copies.values()), self.graph.name,
                     self.graph.assumed)


def _copied(node: Node, table: dict[Value, Value], copies: dict[int, Node]) -> Node:
    control = [copies[n.id] for n in node.control_inputs if n.id in copies]
    copy = node.with_inputs([table[v] for v in node.inputs], control)
    for old, new in zip(node.outputs, copy.outputs, strict=True):
        table.setdefault(old, new)
    return copy


def _parameter(value: Value, index: int, namer: Namer) -> Value:
    """The edge as a parameter, under its own name if nothing else has it now."""
    node = value.node
    path = node.attrs["path"] if node.op == "Input" else value.name
    attrs = {"type": value.type, "index": index, "path": path}
    return Node("Input", (), (value.type,), attrs, name=namer.fresh(node.name), loc=node.loc,
                device=node.device).out()


def _behind(
    roots: Sequence[Node], fed: Collection[Value], is_fed: Callable[[Node], bool]
) -> frozenset[int]:
    """The ids of the nodes that run: those that the roots depend on, up to the fed edges."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen.add(node.id)
            stack += [v.node for v in node.inputs if v not in fed]
            stack += [n for n in node.control_inputs if not is_fed(n)]
    return frozenset(seen)
