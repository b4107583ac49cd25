"""Nodes of one lane as nodes of all lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.core.display.amounts import count_text
from fusec.core.records import dataclass, field
from fusec.errors import unsupported
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Size, symbols_of
from fusec.ir.walks import nodes_behind
from fusec.ops import Builder, get
from fusec.ops.batching import AloneError, InGraph, LaneSite, described, rest
from fusec.ops.batching.diagonals import numbers_of
from fusec.ops.calls.users_names import text_at

from .given_rules import batched_rule
from .lane_loops import LaneIteration
from .masks import Unbranched
from .stages import LaneStages, staged


@dataclass
class Batched:
    """``values``: for each value of one lane that depends on lanes that of all lanes, the lanes
    first.  ``effects`` must run: checks of all lanes, and loops over lanes that hold some.
    ``in_lanes``: the numbers of nodes of one lane that depend on lanes."""

    values: dict[Value, Value] = field(default_factory=dict)
    effects: list[Node] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    in_lanes: set[int] = field(default_factory=set)


def batch(
    builder: Builder, lanes: Size, given: Mapping[Value, Value], results: Sequence[Value],
    effects: Sequence[Node] = (), units: Sequence[Value] = (),
) -> Batched:
    """``results`` and ``effects`` of one lane for all lanes; ``given`` maps values of one lane to
    those of all.  ``units`` are those among it that are vectors of one in place ``k`` of lane ``k``
    and zeros elsewhere.

    New nodes go to the builder, each at the line of the node that it does for all lanes.  Raises
    ``UnsupportedError``, at the user's line, for nodes that have no meaning in lanes, and for
    results whose sizes a lane's data decide.
    """
    alone: dict[int, str] = {}
    oldest = min((v.node.id for v in given), default=0)
    behind = nodes_behind([*results, *(n.out() for n in effects)],
                          lambda v: v in given or v.node.id < oldest)
    straight = Unbranched(builder)
    straight.add(node for node in behind if node.id >= oldest)
    if straight.values:
        copies = [straight.of([n.out()])[0].node for n in effects]
        found = batch(builder, lanes, given, straight.of(results), copies, units)
        found.in_lanes |= {n.id for n, copy in zip(effects, copies, strict=True)
                           if copy.id in found.in_lanes}
        found.values.update({v: found.values[x] for v, x in straight.values.items()
                             if x in found.values})
        note(builder, straight.notes)
        return found
    while True:
        stages = staged(behind, given, alone)
        work = _Batching(builder, lanes, given, stages, [*results], [*effects])
        work.start(units)
        try:
            done = work.done()
            note(builder, done.notes)
            return done
        except AloneError as error:
            assert work.node is not None
            alone[work.node.id] = str(error)


def place(node: Node) -> str:
    """Where it stands, in words."""
    return "" if node.loc is None else f" at {node.loc}"


def note(builder: Builder, lines: Sequence[str]) -> None:
    """Tell `fusec.explain` of choices, once each."""
    builder.notes += [line for line in dict.fromkeys(lines) if line not in builder.notes]


class _Batching:
    """One attempt at a batch."""

    def __init__(
        self, builder: Builder, lanes: Size, given: Mapping[Value, Value], stages: LaneStages,
        results: Sequence[Value], effects: Sequence[Node],
    ) -> None:
        self.builder, self.lanes, self.stages = builder, lanes, stages
        self.results, self.effects = results, {n.id for n in effects}
        self.batched = Batched(dict(given), in_lanes={node.id for node in stages.nodes})
        self.node: Node | None = None
        self.diagonals: dict[Value, Value] = {}

    def start(self, units: Sequence[Value]) -> None:
        """These are unit vectors."""
        for unit in units:
            one = self.builder.const(unit.dtype.type(1))
            self.diagonals[unit] = self.builder.emit("BroadcastTo", one, shape=unit.shape)

    def done(self) -> Batched:
        loops = self.stages.loops(self.results)
        in_loops = {node.id for nodes in loops.values() for node in nodes}
        for value in self.results:
            self._check_size(value)
        for stage in sorted({0, *self.stages.of.values()}):
            if stage in loops:
                self._loop(loops[stage])
            for node in self.stages.nodes:
                if self.stages.of[node.id] == stage and node.id not in in_loops:
                    self._batch(node)
        return self.batched

    def _batch(self, node: Node) -> None:
        values, builder = self.batched.values, self.builder
        self.node = node
        builder.loc, builder.device = node.loc, node.device
        has_lanes = tuple(v in values for v in node.inputs)
        given = tuple(values.get(v, v) for v in node.inputs)
        diagonals = tuple(map(self.diagonals.get, node.inputs))
        site = LaneSite(builder, node, self.lanes, given, has_lanes, diagonals)
        numbers = numbers_of(site)
        if numbers is not None:
            self.diagonals[node.out()] = numbers
        rule: Any = get(node.op).batching
        found = batched_rule(site, batch) if isinstance(rule, InGraph) else rule(site)
        values.update(zip(node.outputs, found, strict=True))
        if node.id in self.effects:
            self.batched.effects.append(found[0].node)

    def _loop(self, nodes: Sequence[Node]) -> None:
        read = {v for other in self.stages.nodes for v in other.inputs}.union(self.results)
        inside = {node.id for node in nodes}
        kept = {v for other in self.stages.nodes if other.id not in inside for v in other.inputs}
        outs = [v for node in nodes for v in node.outputs
                if v in read and (v in kept or v in self.results)]
        for value in outs:
            self._check_size(value)
        checks = [node for node in nodes if node.id in self.effects]
        loop = LaneIteration(self.builder, self.lanes, self.batched.values, nodes, outs, checks)
        self.batched.values.update(zip(outs, loop.results, strict=True))
        self.batched.notes.append(self._told(nodes))
        if checks:
            self.batched.effects.append(loop.node)

    def _told(self, nodes: Sequence[Node]) -> str:
        """Why lanes run one by one, in words."""
        alone = [node for node in nodes if node.id in self.stages.reasons]
        parts = dict.fromkeys(
            f"{described(node)}{place(node)}: {self.stages.reasons[node.id]}" for node in alone)
        inside = len(nodes) - len(alone)
        others = f"; with {count_text(inside, 'operation')} beside" if inside else ""
        return f"vmap: in a loop over lanes: {'; '.join(parts)}{others}"

    def _check_size(self, value: Value) -> None:
        if self.stages.symbols.intersection(symbols_of(value.shape)):
            what = text_at(value.node.loc) or described(value.node)
            raise unsupported(
                f"{what} in a function that fusec.vmap calls, where a lane's data decide the size "
                "of what it returns", loc=value.node.loc, cure=rest.cure_of_size(value))
