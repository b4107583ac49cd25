"""Rebuilding a graph node by node: the common part of all local passes.

`rewrite` walks the nodes in order and offers each one, with its operands already rewritten, to a
``visit`` function, which keeps it or names values to use in its place.  A replaced node keeps its
place in the order, so that a dump's diff shows only changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import symbols_of
from fusec.ops import Builder, Namer, registry
from fusec.ops.calls.checks import has_effects
from fusec.ops.rows.sizes import defined_symbols

Replacement = Sequence[Value] | None
Visit = Callable[[Node, "Rewriter"], Replacement]


class Rewriter(Builder):
    """A `Builder` whose nodes go into the graph that is being rebuilt, if they are accepted."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(Namer(n.name for n in graph.nodes))
        self.roots = set(graph.roots)
        self.root_nodes = {v.node.id for v in self.roots}
        self.claimed: set[Value] = set()
        self.values: dict[Value, Value] = {}
        self.results: dict[Value, Value] = {}  # where these are others than what nodes read
        self.instead: Sequence[Value] = ()  # what fits but as a result of the graph
        self.controls: dict[int, Node] = {}
        self.nodes: list[Node] = []
        self.pending: list[Node] = []
        self.renamed: dict[str, str] = {}  # nodes that are replaced, to what stands for them
        self.stands = False  # whether new nodes get what those in the place of `old` are to have

    def emit(self, op: str, *inputs: Value, name: str = "", **attrs: Any) -> Value:
        """A new node in the place of the node being visited."""
        if not self.stands:
            self.stand_for(self.old)
        value = super().emit(op, *inputs, name=name, **attrs)
        self.pending.append(value.node)
        return value

    def add(self, node: Node) -> Value:
        """A node made by the visitor, such as a copy with other operands.

        A copy of a node that the visitor itself has made gets a name of its own.
        """
        if not self.stands:
            self.stand_for(self.old)
        if any(pending.name == node.name for pending in self.pending):
            node = node.with_(name=self.namer.fresh(self.scope + node.op))
        self.pending.append(node)
        return node.out()

    def stand_for(self, old: Node) -> None:
        """New nodes get the location, device, control inputs and name scope of ``old``, a node of
        the old graph."""
        self.old, self.loc, self.stands = old, old.loc, True
        self.device = self._constraint(old.device)
        self.control_inputs = tuple(self.controls.get(n.id, n) for n in old.control_inputs)
        self.scope = old.name[: old.name.rfind("/") + 1]

    def visit(self, old: Node) -> None:
        """As `stand_for`, for a visitor that makes nodes in the place of few: at the first."""
        self.old, self.stands, self.instead = old, False, ()

    def operands(self, node: Node) -> Node:
        """The node reading rewritten values and control inputs."""
        if not self.controls:
            return node
        if "@" in node.device:
            node = self._beside(node)
        inputs = [self.values.get(v, v) for v in node.inputs]
        return node.with_inputs(inputs, [self.controls.get(n.id, n) for n in node.control_inputs])

    def _beside(self, node: Node) -> Node:
        """The node, on the device of the stand-in for the node that it is to be beside."""
        device = self._constraint(node.device)
        return node if device == node.device else node.with_(device=device)

    def _constraint(self, device: str) -> str:
        return with_present_name(device, self.renamed)

    def keep(self, node: Node) -> None:
        self.pending.clear()
        self.nodes.append(node)
        if node is not self.old:
            self._bind(node.outputs, node)
        elif node.id in self.root_nodes:
            self.claimed.update(v for v in node.outputs if v in self.roots)

    def let_read(self, values: Sequence[Value]) -> None:
        """The node that was kept is a result of the graph; nodes read these values in its place."""
        for before, after in zip(self.old.outputs, values, strict=True):
            self.results[before] = self.values.get(before, before)
            self.values[before] = after
        self.controls.setdefault(self.old.id, self.nodes[-1])

    def accept(self, values: Sequence[Value]) -> None:
        self.nodes += self.pending
        self.pending.clear()
        if values[0].node.op != "Const":  # which is on every device
            self.renamed[self.old.name] = values[0].node.name
        self._bind(values, values[0].node)

    def _bind(self, values: Sequence[Value], node: Node) -> None:
        self.controls[self.old.id] = node
        for before, after in zip(self.old.outputs, values, strict=True):
            self.values[before] = after
            if before in self.roots:
                self.claimed.add(after)

    def fits(self, values: Sequence[Value]) -> bool:
        """Whether the values may stand for the old node: same types, storage of their own, and
        new where the old node has control inputs, which those in the graph do not.

        In NumPy the result of a computation never shares memory with anything else, so a result of
        the graph that is computed must not become an argument, a view or another result.
        """
        old = self.old
        if tuple(v.type for v in values) != old.types or any(map(_is_adrift, values)):
            return False
        is_there = not any(v.node in self.pending for v in values)
        if old.control_inputs and any(v.node not in self.pending for v in values):
            return False
        self.instead = values if is_there else self.instead
        fresh = [v for b, v in zip(old.outputs, values, strict=True)
                 if b in self.roots and b.type.kind == "array" and not _may_alias(old)]
        return not any(v in self.claimed or _may_alias(v.node) for v in fresh)


def with_present_name(device: str, renamed: Mapping[str, str]) -> str:
    """The constraint, see `fusec.passes.placement.constraints`, with the present name of the node
    that it says."""
    if "@" not in device:
        return device
    place, _, rest = device.partition("@")
    near, tilde, sends = rest.partition("~")
    return f"{place}@{renamed.get(near, near)}{tilde}{sends}"


def _is_adrift(value: Value) -> bool:
    """Whether nothing that the value is made of defines its size, or where it begins."""
    node = value.node
    if registry.get(node.op).kind == "extern" or node.op == "Input":
        return False
    if node.op == "Slice" and not symbols_of(node.attrs["starts"]) <= symbols_of(
            node.inputs[0].shape):
        return True
    return not value.type.is_static and bool(defined_symbols(node))


def _may_alias(node: Node) -> bool:
    return registry.get(node.op).kind in ("source", "view")


def is_movable(node: Node) -> bool:
    """Whether a pass may replace the node by any other: pure, and without control inputs."""
    return not node.control_inputs and is_pure(node)


def is_pure(node: Node) -> bool:
    return node.op != "Input" and not has_effects(node)


def rewrite(
    graph: Graph, visit: Visit, movable: Callable[[Node], bool] = is_movable,
    ops: Collection[str] | None = None,
) -> Graph:
    """The graph with every movable node that ``visit`` replaces replaced.

    ``visit(node, rewriter)`` returns one value per output of the node, made by the rewriter or
    already in the graph, or ``None`` to keep it; a replacement that does not fit (`Rewriter.fits`)
    is not made; where that is because the node is a result, other nodes read it.  New nodes get
    the location, scope, device and control inputs of the node they stand for.  Returns ``graph``
    itself when nothing is replaced.  Nodes that became unused stay for `prune`.  With ``ops``,
    nodes of other ops are kept unseen.
    """
    if ops is not None and graph.ops.isdisjoint(ops):
        return graph
    rewriter = Rewriter(graph)
    for old in graph.nodes:
        node = rewriter.operands(old)
        rewriter.visit(old)
        is_seen = (ops is None or node.op in ops) and movable(node)
        values = visit(node, rewriter) if is_seen else None
        if values is not None and rewriter.fits(values):
            rewriter.accept(values)
        else:
            rewriter.keep(node)
            if rewriter.instead:
                rewriter.let_read(rewriter.instead)
    return rebuilt(graph, rewriter.nodes, {**rewriter.values, **rewriter.results})


def rebuilt(graph: Graph, nodes: Iterable[Node], values: dict[Value, Value]) -> Graph:
    """``graph`` over these nodes with its inputs, outputs and updates mapped through ``values``."""
    nodes = tuple(nodes)
    if len(nodes) == len(graph.nodes) and all(map(_same, nodes, graph.nodes)):
        return graph
    return Graph(
        tuple(values.get(v, v) for v in graph.inputs),
        tuple(values.get(v, v) for v in graph.outputs),
        tuple((i, values.get(v, v)) for i, v in graph.updates),
        nodes,
        graph.name,
    )


def _same(a: Node, b: Node) -> bool:
    return a is b
