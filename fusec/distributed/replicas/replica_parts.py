"""The part of each worker in a replicated step, as the text that travels, and its arguments.

A worker's values are numbered: its Variables first; the others as they are first read, those that
come in the one message from the client (its pieces of arguments, arguments that all need, numbers)
among results of its tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fusec.core.records import dataclass, field
from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Graph, Value
from fusec.ops import Builder
from fusec.ops.splitting import Box
from fusec.passes.split.geometries import Geometries, Geometry
from fusec.passes.split.local_graphs import LocalGraph, local_graph
from fusec.passes.split.loops.region_boxes import whole_box
from fusec.passes.split.stages import BlockFamily, Root, has_pieces

from .replica_plan import ReplicaPlan
from .ring import JOINS, SumRing
from .ring_spec import RING, RingSpec

ARGUMENTS, RESULTS = "arguments", "results"  # keys of the two messages between client and worker
CLIENT = "/job:localhost/task:0/device:CPU:0"
Piece = int | None  # None: of a value that is not in pieces


class PartArgument(NamedTuple):
    """A value that a worker is sent: an input of the plan, of a piece or whole; or a number."""

    input: int = -1
    piece: Piece = None
    number: int = 0


@dataclass
class ReplicaPart:
    """One worker's part.  ``given``: the values that it is sent; ``results``: of those that it
    sends back the number of the plan's result, and the piece; ``writes``: pairs of a Variable and
    the number of its new value."""

    task: int
    text: str
    given: Sequence[PartArgument]
    results: Sequence[tuple[int, Piece]]
    writes: Sequence[tuple[int, int]]


class PieceGraphs:
    """The graphs of a plan's families for each piece; pieces that look alike share one."""

    def __init__(self, plan: ReplicaPlan) -> None:
        self.plan = plan
        self._geometries = {id(f): Geometries(plan.stages.states, f, has_neighbours=False)
                            for f in plan.stages.families}
        self._graphs: dict[tuple[int, int], tuple[LocalGraph, str]] = {}

    def of(self, family: BlockFamily, piece: Piece) -> tuple[Geometry, LocalGraph, str]:
        """The boxes of a piece, its graph, and the graph's text."""
        if len(family.grid) > 1:
            raise _both(family)
        geometry = self._geometries[id(family)].of(() if piece is None else (piece,))
        if geometry is None:
            raise _empty(family.roots[0])
        key = id(family), geometry.key
        if key not in self._graphs:
            made = local_graph(family, geometry)
            self._graphs[key] = made, made.graph.to_json()
        return geometry, *self._graphs[key]


def part_of(
    plan: ReplicaPlan, graphs: PieceGraphs, ring: SumRing, tasks: Sequence[int], member: int
) -> ReplicaPart:
    """The part of one of the workers of these tasks."""
    return _PartBuilder(plan, graphs, ring, tasks, member).build()


@dataclass
class _PartBuilder:
    plan: ReplicaPlan
    graphs: PieceGraphs
    ring: SumRing
    tasks: Sequence[int]
    member: int
    values: dict[tuple[Value, Piece], int] = field(default_factory=dict)
    partials: dict[tuple[Root, int], int] = field(default_factory=dict)
    given: dict[PartArgument, int] = field(default_factory=dict)
    actions: list[dict[str, Any]] = field(default_factory=list)
    makers: dict[int, int] = field(default_factory=dict)  # by value the action that makes it
    count: int = 0

    def build(self) -> ReplicaPart:
        plan = self.plan
        for met in plan.variables:
            self.values[plan.inputs[met.input], None] = self._new()
        self._add("recv", (), key=ARGUMENTS, peer=CLIENT, lossy=False)
        for number, family in enumerate(plan.stages.families):
            for piece in self._pieces(family):
                self._compute(family, piece)
            self._join(family, number)
        order = {met.input: at for at, met in enumerate(plan.variables)}
        writes = [(order[number], self._value(value, None)) for number, value in plan.updates]
        results = list(self._results())
        reads = [self._value(plan.results[n].value, piece) for n, piece in results]
        if results:
            self._add("send", reads, key=RESULTS, peer=CLIENT, lossy=False)
        self.actions[0]["writes"] = list(self.given.values())
        for action in self.actions:
            action["after"] = sorted({self.makers[n] for n in action["reads"] if n in self.makers})
        text = json.dumps({
            "name": plan.name, "values": self.count, "variables": list(range(len(plan.variables))),
            "writes": writes, "actions": self.actions})
        return ReplicaPart(self.tasks[self.member], text, [*self.given], results, writes)

    # -- values

    def _new(self) -> int:
        self.count += 1
        return self.count - 1

    def _sent(self, given: PartArgument) -> int:
        """The number of a value that the client sends."""
        if given not in self.given:
            self.given[given] = self._new()
            self.makers[self.given[given]] = 0
        return self.given[given]

    def _value(self, value: Value | None, piece: Piece) -> int:
        assert value is not None
        known = self.values.get((value, piece))
        if known is not None:
            return known
        return self._sent(PartArgument(self.plan.inputs.index(value), piece))

    def _add(self, kind: str, reads: Sequence[int], made: int = 0, **more: Any) -> list[int]:
        """An action; the numbers of what it makes."""
        writes = [self._new() for _ in range(made)]
        self.makers |= dict.fromkeys(writes, len(self.actions))
        self.actions.append({"kind": kind, "device": "CPU", "reads": list(reads), "writes": writes,
                             "position": len(self.actions), **more})
        return writes

    # -- actions

    def _pieces(self, family: BlockFamily) -> Sequence[Piece]:
        if not family.grid:
            return (None,)
        return range(*self.ring.starts[self.member:self.member + 2])

    def _compute(self, family: BlockFamily, piece: Piece) -> None:
        """The task of a family for one piece."""
        geometry, local, text = self.graphs.of(family, piece)
        reads = [self._leaf(family, leaf, box, piece) for leaf, box in geometry.reads]
        reads += [self._sent(PartArgument(number=n)) for n in local.numbers(family, geometry)]
        made = self._add("task", reads, len(local.graph.outputs), graph=text)
        for root, first in zip(family.roots, local.outputs, strict=True):
            if first is None:
                raise _empty(root)
            if root.barrier is None:
                self.values[root.value, None if self.plan.axis_of(root.value) is None
                            else piece] = made[first]
            else:
                assert piece is not None
                self.partials[root, piece] = made[first]

    def _leaf(self, family: BlockFamily, leaf: Value, box: Box, piece: Piece) -> int:
        """What a task reads of a value: all of it, or its own piece."""
        axis, states = self.plan.axis_of(leaf), self.plan.stages.states
        wanted = list(whole_box(leaf))
        if axis is not None:
            place = states.of(leaf)[axis]
            assert place is not None and piece is not None
            wanted[axis] = states.lines.intervals(place, leaf.shape[axis])[piece]
        if tuple(box) != tuple(wanted):
            if axis is None:
                return self._cut(leaf, box)
            raise _beyond(family, leaf)
        return self._value(leaf, None if axis is None else piece)

    def _cut(self, leaf: Value, box: Box) -> int:
        """A part of a value that all workers have."""
        (made,) = self._add("task", [self._value(leaf, None)], 1, graph=_cutting(leaf, box))
        return made

    def _join(self, family: BlockFamily, number: int) -> None:
        """The rings of a family: one for each way to join and dtype."""
        groups: dict[tuple[str, str], list[Root]] = {}
        for root in family.roots:
            if root.barrier is not None:
                if root.barrier.join not in JOINS:
                    raise _no_ring(root)
                groups.setdefault((root.barrier.join, root.value.dtype.str), []).append(root)
        pieces = [p for p in self._pieces(family) if p is not None]
        for k, ((join, _), roots) in enumerate(groups.items()):
            ring = SumRing(self.ring.starts, join, self.ring.is_lossy)
            spec = RingSpec(ring, f"ring{number}.{k}", self.member, tuple(self.tasks), len(roots))
            reads = [self.partials[root, piece] for piece in pieces for root in roots]
            totals = self._add(RING, reads, len(roots), ring=spec.to_form())
            self.values |= {(root.value, None): n for root, n in zip(roots, totals, strict=True)}

    def _results(self) -> Iterator[tuple[int, Piece]]:
        """The values that this worker sends back: its pieces; the first worker also whole ones."""
        first, after = self.ring.starts[self.member:self.member + 2]
        for n, result in enumerate(self.plan.results):
            if result.value is not None and result.axis is not None:
                yield from ((n, piece) for piece in range(first, after))
            elif result.value is not None and self.member == 0:
                yield n, None


def _cutting(leaf: Value, box: Box) -> str:
    """The text of a graph that takes a part of a value."""
    builder = Builder()
    whole = builder.source("Input", "whole", type=leaf.type, index=0, path="whole")
    part = builder.emit("Slice", whole, starts=tuple(a for a, _ in box), steps=(1,) * len(box),
                        sizes=tuple(b - a for a, b in box))
    return Graph.build([whole], [part], name="part").to_json()


# ---------------------------------------------------------------------------------------- refusals


def _both(family: BlockFamily) -> UnsupportedError:
    node = family.roots[0].value.node
    return unsupported(
        "a value with an element for each two rows of the batch, in a replicated step",
        loc=node.loc,
        cure="compute it of arrays that are not in pieces: replicate(step, axis={...})")


def _beyond(family: BlockFamily, leaf: Value) -> UnsupportedError:
    barriers = (root.barrier.node for root in family.roots if root.barrier is not None)
    nodes = [n for n in (*family.nodes, *barriers) if n.loc is not None]
    moving = [n for n in nodes if "starts" in n.attrs or has_pieces(n)]
    node = next(reversed(moving or nodes), leaf.node)
    return unsupported(
        f"reading {leaf.name.removesuffix(':0')} beyond the own piece of the batch, in a "
        "replicated step", loc=node.loc, cure="rows of a batch are computed each by itself; shift "
        "or pad them before the call")


def _empty(root: Root) -> UnsupportedError:
    return unsupported("a value of which some pieces of the batch have no element, in a replicated "
                       "step", loc=root.value.node.loc, cure="slice the batch before the call")


def _no_ring(root: Root) -> UnsupportedError:
    assert root.barrier is not None
    barrier = root.barrier
    what = {"moments": "a variance", "totals": "a scan"}.get(
        barrier.join, f"np.{barrier.node.op.lower()}")
    return unsupported(
        f"{what} over the batch in a replicated step",
        loc=root.value.node.loc,
        cure="sums, means, products and extrema over the batch are joined; a variance is "
        "((x - x.mean(axis=0)) ** 2).mean(axis=0)")


__all__ = ["ARGUMENTS", "CLIENT", "RESULTS", "PartArgument", "PieceGraphs", "ReplicaPart",
           "part_of"]
