"""Regions: parts of a trace that become sub-graphs.

A region is traced into the same builder as everything else; its reads from outside are found
afterwards: values of nodes made before it began, and arguments of the graph.  Writes to storages
that are older than the region are taken back when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fusec.ir import Graph, Loc, Node, TensorType, Value
from fusec.ir.graph import new_id
from fusec.ir.uses import use_counts
from fusec.ir.walks import nodes_behind
from fusec.ops.calls.index_checks import Use

from ..facts.origins import INSIDE
from ..values.storage import Storage
from ..values.trace import Trace


class TraceRegion:
    """A part of the trace that is being collected."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.start = new_id()
        self.mark = len(trace.record.journal)
        self.first_check = len(trace.record.checks)
        self.first_use = len(trace.record.index_uses)

    def is_outer(self, value: Value) -> bool:
        """Whether the value was there before the region, or is an argument of the graph."""
        node = value.node
        return node.id < self.start or (node.op == "Input" and value in self.trace.feeds.inputs)

    def made_for(self, roots: Iterable[Value]) -> list[Node]:
        """The nodes of the region that values need."""
        return nodes_behind(roots, self.is_outer)

    def written(self) -> dict[Storage, Value]:
        """Older storages that the region wrote, with their values now; not those that hold a copy
        of what they held, which is a node of its own for the derivative by it."""
        before: dict[Storage, Value] = {}
        for storage, value, *_ in self.trace.record.journal[self.mark:]:
            if storage.born < self.start:
                before.setdefault(storage, value)
        return {storage: storage.value for storage, value in before.items()
                if copied(storage.value) != copied(value)}

    def written_at(self, storage: Storage) -> Loc | None:
        """The line of the region that wrote it last."""
        return next((loc for one, _, _, loc in reversed(self.trace.record.journal[self.mark:])
                     if one is storage), None)

    def take_checks(self) -> list[Node]:
        """The checks made in the region, no longer those of the region around it."""
        checks = self.trace.record.checks[self.first_check:]
        del self.trace.record.checks[self.first_check:]
        return checks

    def take_index_uses(self) -> list[Use]:
        """The uses of indices in the region, no longer those of the region around it."""
        uses = self.trace.record.index_uses[self.first_use:]
        del self.trace.record.index_uses[self.first_use:]
        return uses

    def undo(self) -> None:
        """Take the region's writes to older storages back, and its uses of indices."""
        self.take_index_uses()
        journal = self.trace.record.journal
        for storage, value, version, _ in reversed(journal[self.mark:]):
            if storage.born < self.start:
                storage.replace(value, version)
        del journal[self.mark:]


def copied(value: Value) -> Value:
    """What a value is a copy of, or itself."""
    while value.node.op == "BroadcastTo" and value.node.inputs[0].type == value.type:
        value = value.node.inputs[0]
    return value


def placeholder(
    trace: Trace, type_: TensorType, name: str, path: str = "", index: int = INSIDE
) -> Value:
    """A value that stands for a parameter of a sub-graph; ``path``: as the user reads of it."""
    node = Node("Input", (), (type_,), {"index": index, "path": path or name, "type": type_},
                name=trace.builder.namer.fresh(name), loc=trace.loc)
    return node.out()


def captures(region: TraceRegion, roots: Sequence[Value]) -> list[Value]:
    """Values from outside that a sub-graph reads, in order."""
    read = use_counts(region.made_for(roots), roots)
    return sorted((v for v in read if region.is_outer(v) and v.node.op != "Const"),
                  key=lambda v: (v.node.id, v.index))


def subgraph(
    name: str, roots: Sequence[Value], parameters: Sequence[Value], outer: Sequence[Value],
    updates: Sequence[tuple[int, Value]] = (), checks: Sequence[Node] = (),
) -> Graph:
    """The graph of ``roots`` over its own parameters and then values from outside.

    ``updates`` are new contents of parameters, by position.
    """
    values = (*parameters, *outer)
    first = {v: i for i, v in reversed([*enumerate(values)])}
    inputs = [_input(i, v, first[v] < i) for i, v in enumerate(values)]
    changed = [(i, v) for i, v in updates if v != values[i]]
    mapping: dict[Value, Value] = {}
    for number in (*(i for i, _ in changed), *range(len(inputs))):
        # Two parameters may hold one value (y = x.copy()): what changes one reads that one.
        mapping.setdefault(values[number], inputs[number])
    effects = [n.out() for n in checks]
    copies: dict[int, Node] = {}
    for node in nodes_behind([*roots, *(v for _, v in changed), *effects], mapping.__contains__):
        copy = node.with_(
            inputs=[mapping[v] for v in node.inputs],
            control_inputs=[copies[n.id] for n in node.control_inputs if n.id in copies])
        copies[node.id] = copy
        mapping.update(zip(node.outputs, copy.outputs, strict=True))
    return Graph.build(inputs, [mapping[v] for v in roots],
                       [(i, mapping[v]) for i, v in changed], name,
                       [mapping[v].node for v in effects])


def _input(position: int, value: Value, is_again: bool) -> Value:
    """The parameter for a value; no node is named with ``.`` or ``-`` before its number."""
    name = value.node.name + f".{value.index}" * (value.index > 0) + f"-{position}" * is_again
    attrs = {"index": position, "path": value.node.name, "type": value.type}
    return Node("Input", (), (value.type,), attrs, name=name, loc=value.node.loc).out()
