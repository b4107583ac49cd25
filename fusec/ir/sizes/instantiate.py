"""A graph that was traced for symbolic sizes, made anew for other sizes.

Each symbol of an argument's size is substituted: by a number for a plan, by a symbol with another
hint where passes are to run once more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..graph import Graph, Node, Value
from ..text.parse_dims import parse_dim
from ..types import TensorType
from .dims import Dim, maximum, minimum, symbol
from .polynomials import Call, Size, is_argument
from .size_questions import Computed
from .symbolic_numbers import Symbolic, applied, text_of_number

_IN_BRACES = re.compile(r"\{([^{}]*)\}")


class Instantiation:
    """One substitution: a node is made anew once, so graphs that share nodes share the new ones."""

    def __init__(self, sizes: Mapping[str, Size]) -> None:
        self.sizes = sizes
        self.nodes: dict[Node, Node] = {}
        self.graphs: dict[int, tuple[Graph, Graph]] = {}  # by id, those in attributes
        self._known: dict[Dim, Size] = {}  # a plan has few sizes, each of them in many places

    def graph(self, graph: Graph) -> Graph:
        """The graph at these sizes."""
        # New ids in the order of the old ones: where two nodes may go first, the older one does.
        for node in sorted(graph.nodes, key=lambda node: node.id):
            self.node(node)
        nodes = tuple(map(self.node, graph.nodes))
        return Graph(
            tuple(map(self.value, graph.inputs)), tuple(map(self.value, graph.outputs)),
            tuple((number, self.value(v)) for number, v in graph.updates),
            nodes, graph.name)

    def _inner(self, graph: Graph) -> Graph:
        """A graph in an attribute; calls that share one go on to do so."""
        if id(graph) not in self.graphs:
            self.graphs[id(graph)] = graph, self.graph(graph)
        return self.graphs[id(graph)][1]

    def value(self, value: Value) -> Value:
        return Value(self.node(value.node), value.index)

    def node(self, node: Node) -> Node:
        """The node at these sizes.

        Operands are asked for before their users, or this would recurse as deep as the graph.
        """
        new = self.nodes.get(node)
        if new is None:
            new = self.nodes[node] = self._node(node)
        return new

    def _node(self, node: Node) -> Node:
        inputs = tuple(map(self.value, node.inputs))
        control = tuple(map(self.node, node.control_inputs))
        types = tuple(map(self.type, node.types))
        attrs = {name: self.data(value) for name, value in node.attrs.items()}
        if "boundaries" in attrs:
            attrs["boundaries"] = tuple(map(self._text, attrs["boundaries"]))
        # Nodes without sizes are made anew as well: ids order a graph, and old ones would come
        # before all that are new.
        return node.with_(inputs=inputs, types=types, attrs=attrs, control_inputs=control)

    def type(self, type_: TensorType) -> TensorType:
        shape = self.data(type_.shape)
        return type_ if shape is type_.shape else TensorType(type_.dtype, shape, type_.kind)

    def data(self, data: Any) -> Any:
        """Plain data with sizes in it; the same object where there are none."""
        substitute = _BY_KIND.get(type(data))
        return data if substitute is None else substitute(self, data)

    def _number(self, number: Symbolic) -> Any:
        known = self._known.get(number.expression)
        return self.data(number.expression) if known is None else known

    def _tuple(self, data: tuple[Any, ...]) -> tuple[Any, ...]:
        items = [item if type(item) is int else self.data(item) for item in data]
        for new, old in zip(items, data, strict=True):
            if new is not old:
                return tuple(items)
        return data

    def _text(self, text: str) -> str:
        """A text in which sizes stand in braces: why two groups of nodes were not fused."""
        def number(match: re.Match[str]) -> str:
            return text_of_number(self.data(parse_dim(match[1], of_arguments=True)))

        return _IN_BRACES.sub(number, text)

    def size(self, size: Dim) -> Size:
        """The expression at these sizes; symbols that the run defines stay symbols."""
        known = self._known.get(size)
        if known is None:
            known = self._known[size] = sum(
                factor * math.prod(map(self._atom, monomial)) for monomial, factor in size.terms)
        return known

    def _atom(self, atom: str | Call) -> Size:
        if isinstance(atom, str):
            return self.sizes[atom] if is_argument(atom) else symbol(atom)
        left, right = self.data(atom.left), self.data(atom.right)
        if atom.function == "//":
            return left // right
        if atom.function == "%":
            return left % right
        return (minimum if atom.function == "min" else maximum)(left, right)


_BY_KIND: dict[type, Callable[[Instantiation, Any], Any]] = {
    Symbolic: Instantiation._number,
    Computed: lambda at, number: applied(number.fn, *map(at.data, number.args)),
    Dim: Instantiation.size, tuple: Instantiation._tuple, TensorType: Instantiation.type,
    Graph: Instantiation._inner, Value: Instantiation.value,
}

__all__ = ["Instantiation"]
