"""The graph of a trace as a file has it: each loop once, each size of data defined once.

A derivative computes a loop again, with more results, and says so in a claim (``extends``) that no
reader believes; and it computes parts of bodies again, whose sizes then have one symbol in several
bodies.  Admission takes neither: a symbol is of one node in the whole graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusec.core.records import replace
from fusec.ir.graph import Graph, Node
from fusec.ir.sizes.dims import Dim, argument_size, symbol, symbols_of
from fusec.ir.sizes.dynamic_sizes import OpenInstantiation
from fusec.ir.sizes.polynomials import Call, Size, is_argument
from fusec.passes.subgraphs import optimise_subgraphs
from fusec.passes.twins import merge_twins


def portable(graph: Graph) -> Graph:
    """See the module; the graph itself where nothing is to be changed."""
    merged = _merged(graph)
    defined = [name for scope in _scopes(merged) for name in scope]
    if len(defined) != len({*defined}):
        merged = _Scope(_Names({*defined}), {}).graph(merged)
    return graph if merged is graph else replace(merged, assumed=graph.assumed)


def _merged(graph: Graph) -> Graph:
    return optimise_subgraphs(merge_twins(graph), lambda inner, _: _merged(inner))


def _scopes(graph: Graph, around: frozenset[str] = frozenset()) -> Iterator[set[str]]:
    """The symbols of sizes that the graph defines, and those of each graph in it."""
    own: set[str] = set()
    for node in graph.nodes:
        own |= _data_sizes(node) - around
        for inner in node.graphs:
            yield from _scopes(inner, around | own)
    yield own


def _data_sizes(node: Node) -> frozenset[str]:
    return frozenset(name for name in symbols_of(tuple(t.shape for t in node.types))
                     if not is_argument(name))


class _Names:
    """Symbols that there are in the whole graph, and those given so far."""

    def __init__(self, taken: set[str]) -> None:
        self.taken, self.given = taken, set[str]()

    def of(self, name: str) -> str:
        """The symbol itself for the first who defines it, later a new one."""
        if name in self.given:
            name = next(n for k in range(1, len(self.taken) + 2)
                        if (n := f"n{k}") not in self.taken)
            self.taken.add(name)
        self.given.add(name)
        return name


class _Scope(OpenInstantiation):
    """A graph made anew, with symbols that no other graph of the whole defines."""

    def __init__(self, names: _Names, known: dict[str, str]) -> None:
        super().__init__({})
        self.names, self.known = names, known

    def _node(self, node: Node) -> Node:
        own = _data_sizes(node).union(*(
            _data_sizes(value.node) for inner in node.graphs for value in inner.inputs))
        new = own - self.known.keys()
        if new:
            self.known |= {name: self.names.of(name) for name in sorted(new)}
            self._known: dict[Dim, Size] = {}
        made = super()._node(node)
        if node.op == "Extent":  # the one op whose attribute is a symbol as text
            name = node.attrs["length"]
            made = made.with_(attrs={**made.attrs, "length": self.known.get(name, name)})
        return made

    def data(self, data: Any) -> Any:
        if type(data) is Graph:
            return _Scope(self.names, {**self.known}).graph(data)
        return super().data(data)

    def _atom(self, atom: str | Call) -> Size:
        if isinstance(atom, str):
            return argument_size(atom) if is_argument(atom) else symbol(self.known.get(atom, atom))
        return super()._atom(atom)


__all__ = ["portable"]
