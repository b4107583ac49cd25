"""The typed dataflow graph: nodes, values and graphs.

Nodes are immutable and compared by identity; nothing here recurses over the depth of a graph, so
graphs of 10**5 nodes work in linear time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fusec.core.locations import Loc as Loc
from fusec.core.process.modules_above import module_above
from fusec.core.records import dataclass, field, replace

from .lazy_values import lazy
from .sizes.dims import Size
from .types import TensorType

_ids = itertools.count(1)
_NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


def new_id() -> int:
    """A number larger than the id of every node so far."""
    return next(_ids)


_new = tuple.__new__  # without the call of a named tuple's own
_new_node = object.__new__
_SAME: Any = object()  # a field that a copy has of the node itself; None is a value of some


def _frozen(attrs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return MappingProxyType(dict(attrs)) if attrs else _NO_ATTRS


class Node:
    """One operation.  ``op`` is the name of a row of the op registry.

    ``attrs`` hold plain data (or sub-graphs), ``types`` the type of each output, ``control_inputs``
    nodes that must run first, ``loc`` the user's line.
    """

    __slots__ = ("attrs", "control_inputs", "device", "id", "inputs", "loc", "name", "op", "types")

    def __init__(
        self,
        op: str,
        inputs: Sequence[Value] = (),
        types: Sequence[TensorType] = (),
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str = "",
        loc: Loc | None = None,
        control_inputs: Sequence[Node] = (),
        device: str = "",
    ) -> None:
        self.id = next(_ids)
        self.op = op
        self.inputs = tuple(inputs)
        self.types = tuple(types)
        self.attrs = _frozen(attrs)
        self.name = name or op
        self.loc = loc
        self.control_inputs = tuple(control_inputs)
        self.device = device

    def out(self, index: int = 0) -> Value:
        return _new(Value, (self, index))

    @property
    def outputs(self) -> tuple[Value, ...]:
        if len(self.types) == 1:
            return (_new(Value, (self, 0)),)
        return tuple(Value(self, i) for i in range(len(self.types)))

    @property
    def graphs(self) -> list[Graph]:
        """The sub-graphs among its attributes."""
        return [value for value in self.attrs.values() if isinstance(value, Graph)]

    def with_inputs(self, inputs: Sequence[Value], control: Sequence[Node] | None = None) -> Node:
        """A copy reading other inputs; itself when nothing changes."""
        inputs = tuple(inputs)
        control = self.control_inputs if control is None else tuple(control)
        if inputs == self.inputs and control == self.control_inputs:
            return self
        return self.with_(inputs=inputs, control_inputs=control)

    def with_(
        self, *, op: str = _SAME, inputs: Iterable[Value] = _SAME,
        types: Iterable[TensorType] = _SAME, attrs: Mapping[str, Any] = _SAME, name: str = _SAME,
        loc: Loc | None = _SAME, control_inputs: Iterable[Node] = _SAME, device: str = _SAME,
    ) -> Node:
        """A copy with these fields changed and a new id, so that it comes after all nodes that
        exist: ids order a graph.  Without any change it is a copy all the same."""
        copy = _new_node(Node)
        copy.op = self.op if op is _SAME else op
        copy.inputs = self.inputs if inputs is _SAME else tuple(inputs)
        copy.types = self.types if types is _SAME else tuple(types)
        copy.attrs = self.attrs if attrs is _SAME else _frozen(attrs)
        copy.name = self.name if name is _SAME else name or copy.op
        copy.loc = self.loc if loc is _SAME else loc
        copy.control_inputs = (
            self.control_inputs if control_inputs is _SAME else tuple(control_inputs))
        copy.device = self.device if device is _SAME else device
        copy.id = next(_ids)  # at last: iterators among the arguments may make nodes
        return copy

    def __repr__(self) -> str:
        return f"<Node {self.name}: {self.op} #{self.id}>"


class Value(NamedTuple):
    """One output of a node; printed ``name`` for output 0 and ``name:i`` for the others."""

    node: Node
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which no value needs

    @property
    def type(self) -> TensorType:
        return self.node.types[self.index]

    @property
    def dtype(self):
        return self.node.types[self.index].dtype

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.node.types[self.index].shape

    @property
    def name(self) -> str:
        return f"{self.node.name}:{self.index}"

    def __repr__(self) -> str:
        return f"<{self.name} {self.type}>"


@dataclass(frozen=True)
class Graph:
    """An ordered, immutable dataflow graph.

    ``inputs`` are outputs of ``Input`` nodes; ``outputs`` the values computed; ``updates`` pairs
    (position in ``inputs``, value): after a call the caller's memory behind that input holds the
    value.  ``nodes`` is a topological order (also of control edges).  ``assumed``: of a graph whose
    parameters have sizes ``s0``, for which of them it was traced.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    updates: tuple[tuple[int, Value], ...] = ()
    nodes: tuple[Node, ...] = ()
    name: str = "main"
    assumed: tuple[Any, ...] = ()  # `dynamic_sizes.Assumption`s of its parameters' sizes
    _index: dict[str, Node] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def build(
        cls,
        inputs: Iterable[Value],
        outputs: Iterable[Value],
        updates: Iterable[tuple[int, Value]] = (),
        name: str = "main",
        extra: Iterable[Node] = (),
    ) -> Graph:
        """A graph of everything reachable from its outputs, updates and ``extra`` nodes, named."""
        inputs, outputs, updates = tuple(inputs), tuple(outputs), tuple(updates)
        roots = [v.node for v in (*inputs, *outputs)] + [v.node for _, v in updates] + list(extra)
        return cls(inputs, outputs, updates, tuple(topological_order(roots)), name)

    def __repr__(self) -> str:
        """One line, as notebooks show it; ``print(graph)`` is the text."""
        inputs = ", ".join(f"{v.node.name}: {v.type}" for v in self.inputs)
        return (f"<graph {self.name}({inputs}) -> {', '.join(v.name for v in self.outputs)}, "
                f"{len(self.nodes)} nodes>")

    @property
    def made(self) -> Graph:
        """Itself; of a graph that is yet to be made, that."""
        return self

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.inputs)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.outputs)

    @property
    def updated(self) -> tuple[int, ...]:
        """The positions of the inputs that a call updates."""
        return tuple(i for i, _ in self.updates)

    @property
    def roots(self) -> tuple[Value, ...]:
        """The values that a call must produce: outputs, then updated inputs."""
        return (*self.outputs, *(v for _, v in self.updates))

    @lazy
    def ops(self) -> frozenset[str]:
        """Names of the ops in it, those in its sub-graphs included."""
        names = {node.op for node in self.nodes}
        return frozenset(names.union(*(g.ops for node in self.nodes for g in node.graphs)))

    def __getitem__(self, name: str) -> Node:
        """The node called ``name``, or the parameter at that access path: ``weights["W"]``.

        Raises ``KeyError`` with close matches where there is none.
        """
        if not self._index:
            self._index.update((v.node.attrs.get("path", ""), v.node) for v in self.inputs)
            self._index.update((n.name, n) for n in self.nodes)
        try:
            return self._index[name if name in self._index else name.replace('"', "'")]
        except KeyError:
            import difflib

            close = difflib.get_close_matches(name, self._index, 3)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise KeyError(f"graph {self.name!r} has no node {name!r}{hint}") from None

    def value(self, name: str) -> Value:
        """The value ``"Square_1:0"`` (``"Square_1"`` means output 0)."""
        node, colon, index = name.rpartition(":")
        is_port = bool(colon) and index.isascii() and index.isdigit()
        return self[node].out(int(index)) if is_port else self[name].out(0)

    def rename(self, name: str) -> Graph:
        return replace(self, name=name)

    def __str__(self) -> str:
        from .text.text import print_graph

        return print_graph(self)

    def at_sizes(self, **sizes: int) -> Graph:
        """The graph for these values of its symbols: ``graph.at_sizes(s0=40)``.

        Raises ``ValueError`` for symbols that it has not or that are missing, for sizes below 2,
        and for sizes that it was not traced for.
        """
        graph: Graph = module_above("ir.sizes.dynamic_sizes").at_sizes(self, sizes)
        return graph

    def to_json(self) -> str:
        """The graph as JSON, which `fusec.admit` reads back, in any process.

        Raises ``UnsupportedError`` for calls of objects of this program, and where sizes are
        symbols of parameters: `at_sizes` gives graphs that have a text.
        """
        text: str = module_above("ir.text.json_form").graph_to_json(self)
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        """As JSON, admitted where it arrives like any graph from outside."""
        return module_above("ops.graphs.admit").admit, (self.to_json(),)

    def __deepcopy__(self, memo: Any) -> Graph:
        return self

    def function(
        self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
        prune: bool = False,
    ) -> Any:
        """A compiled function from the edges ``inputs`` to the edges ``outputs``.

        Edges are named ``"Square:0"``; None stands for the graph's own.  Updates and exceptions:
        see `fusec.ops.graphs.carve.carve`.
        """
        return module_above("compiled.graph_function").graph_function(self, inputs, outputs, prune)

    def __len__(self) -> int:
        return len(self.nodes)


def topological_order(roots: Iterable[Node]) -> list[Node]:
    """Every node reachable from ``roots``, inputs before users.

    Nodes are immutable, so an input is always made before its users: ids sort the graph.
    """
    visited: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id in visited:
            continue
        visited[node.id] = node
        stack.extend(v.node for v in node.inputs)
        stack.extend(node.control_inputs)
    return [visited[i] for i in sorted(visited)]
