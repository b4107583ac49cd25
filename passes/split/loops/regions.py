"""Branches and loops that each block runs by itself: the states of their values.

A loop stays whole where no node of its body needs other blocks: each carried value has the same
state at the start of an iteration and at its end.  A carried value that begins in no blocks and is
in blocks after an iteration is in blocks from the start: states are widened until they stay.  A
branch stays whole where neither side needs other blocks.  Whether a loop goes on, and which side is
taken, is decided by values that are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

from fusec.core.records import dataclass, replace
from fusec.errors import unsupported
from fusec.ir import Graph, Node, Value
from fusec.ops.calls.subgraph_ops import is_region

from ..grids import Lines, Places
from ..split_states import SplitStates
from .reaches import Reach, reach_of, union

Placer = Callable[[SplitStates, Node], None]


@dataclass(frozen=True)
class SplitRegion:
    """A branch or loop, taken apart."""

    node: Node

    @property
    def is_loop(self) -> bool:
        return self.node.op == "Loop"

    @property
    def title(self) -> str:
        return "a loop" if self.is_loop else "a branch"

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """Those that give results: the body, or both sides."""
        attrs = self.node.attrs
        return (attrs["body"],) if self.is_loop else (attrs["then"], attrs["orelse"])

    @property
    def test(self) -> Graph | None:
        return self.node.attrs["test"] if self.is_loop else None

    @property
    def operands(self) -> tuple[Value, ...]:
        """Those of its graphs."""
        return self.node.inputs if self.is_loop else self.node.inputs[1:]

    def results(self, graph: Graph) -> list[Value]:
        """By result of the node the value of one of its graphs."""
        updates = dict(graph.updates)
        if not self.is_loop:
            changed = range(self.node.attrs["changed"])
            return [*graph.outputs, *(updates.get(k, graph.inputs[k]) for k in changed)]
        scalars = iter(graph.outputs)
        return [updates.get(k, v) if v.type.kind == "array" else next(scalars)
                for k, v in enumerate(graph.inputs[:self.node.attrs["carried"]])]

    @property
    def all_graphs(self) -> tuple[Graph, ...]:
        return self.graphs if self.test is None else (self.test, *self.graphs)


def inner_nodes(node: Node, regions: Container[Node]) -> Iterator[Node]:
    """The nodes in its graphs, parameters left out, and those in theirs, where it is one of the
    branches and loops that read blocks: what is inside of others has no places."""
    for graph in node.graphs if node in regions else ():
        for inner in graph.nodes:
            if inner.op != "Input":
                yield inner
                yield from inner_nodes(inner, regions)


def copied_region(node: Node) -> Node:
    """The branch or loop with graphs of its own, which no other node has."""
    attrs = {name: _copied(value) if isinstance(value, Graph) else value
             for name, value in node.attrs.items()}
    return node.with_(attrs=attrs)


def _copied(graph: Graph) -> Graph:
    values: dict[Value, Value] = {}
    nodes: list[Node] = []
    made: dict[int, Node] = {}
    for node in graph.nodes:
        copy = node.with_(inputs=[values[v] for v in node.inputs],
                          control_inputs=[made[n.id] for n in node.control_inputs])
        if is_region(copy):
            copy = copied_region(copy)
        made[node.id] = copy
        nodes.append(copy)
        values.update(zip(node.outputs, copy.outputs, strict=True))
    return replace(graph, inputs=tuple(values[v] for v in graph.inputs),
                   outputs=tuple(values[v] for v in graph.outputs), nodes=tuple(nodes),
                   updates=tuple((k, values[v]) for k, v in graph.updates), _index={})


# ------------------------------------------------------------------------------------------ placing


def place_region(states: SplitStates, node: Node, place: Placer) -> None:
    """Note the places of the results, and of all that is inside.

    Raises ``UnsupportedError`` where a block cannot run it by itself; the states are then as they
    were.
    """
    region, trial = SplitRegion(node), states.copied()
    stage = max(trial.stages[v] for v in node.inputs)
    given = [trial.places[v] for v in region.operands]
    results = [given[k] if region.is_loop else (None,) * v.type.rank
               for k, v in enumerate(node.outputs)]
    is_settled = False
    while not is_settled:
        for graph in region.all_graphs:
            _place_inside(trial, region, graph, given, stage, place)
        wider = results
        for graph in region.graphs:
            ends = [trial.places[v] for v in region.results(graph)]
            wider = [_wider(trial.lines, region, *two) for two in zip(wider, ends, strict=True)]
        is_settled = not region.is_loop or wider == results
        results = wider
        if region.is_loop:
            given[:len(results)] = results
    for value, places in zip(node.outputs, results, strict=True):
        trial.places[value], trial.stages[value] = places, stage
    _check_reach(trial, region)
    states.adopt(trial)


def _place_inside(
    states: SplitStates, region: SplitRegion, graph: Graph, given: Sequence[Places], stage: int,
    place: Placer,
) -> None:
    for value, places in zip(graph.inputs, given, strict=True):
        states.places[value], states.stages[value] = places, stage
    before = len(states.barriers) + len(states.scans)
    for node in graph.nodes:
        if node.op == "Input":
            continue
        place(states, node)
        if len(states.barriers) + len(states.scans) > before:
            raise unsupported(
                f"{region.title} with a step that needs every block along axis "
                f"{_cut_axis(states, node)}", loc=node.loc, cure="see docs/distributed.md")


def _cut_axis(states: SplitStates, node: Node) -> int:
    """The first axis in blocks of what a node reads."""
    return next(axis for v in node.inputs for axis, place in enumerate(states.places[v])
                if place is not None)


def _wider(lines: Lines, region: SplitRegion, one: Places, other: Places) -> Places:
    """The places of a value that may be in either."""
    found = []
    for axis, (a, b) in enumerate(zip(one, other, strict=True)):
        if a is not None and b is not None:
            lines.join(a, b)
            a, b = lines.settled(a), lines.settled(b)
            if a != b:
                raise _moves(region, axis)
        place = a if a is not None else b
        found.append(place and lines.settled(place))
    return tuple(found)


def _moves(region: SplitRegion, axis: int) -> Exception:
    return unsupported(f"{region.title} that reads neighbours along axis {axis}",
                       loc=region.node.loc, cure="see docs/distributed.md")


def _check_reach(states: SplitStates, region: SplitRegion) -> None:
    """Raise where an iteration reads another part of what is carried than it gives: block by block
    the edges would be those of before the loop."""
    if not region.is_loop:
        return
    (body,) = region.graphs
    carried = body.inputs[:len(region.node.types)]
    reaches: dict[Value, Reach] = {v: own_reach(states, v) for v in carried}
    reach_inside(states, body, reaches)
    for value in region.results(body):
        for axis, reach in enumerate(reaches.get(value, ())):
            if reach is not None and reach != (0, 0):
                raise _moves(region, axis)


def own_reach(states: SplitStates, value: Value) -> Reach:
    """Of a value of which each block reads its own part."""
    return tuple(None if place is None else (0, 0) for place in states.places[value])


def reach_inside(states: SplitStates, graph: Graph, reaches: dict[Value, Reach]) -> None:
    """Note the reaches of a graph's values, of those of its parameters."""
    for node in graph.nodes:
        if node.op != "Input":
            note_reach(states, node, reaches)


def note_reach(states: SplitStates, node: Node, reaches: dict[Value, Reach]) -> None:
    """Note how far the results of a node read beyond their own blocks."""
    if node not in states.regions:
        if not is_region(node):
            reach_of(states, node, reaches)
        return
    region = SplitRegion(node)
    for graph in region.graphs:
        inner = {v: reaches[operand] for v, operand in zip(
            graph.inputs, region.operands, strict=True) if operand in reaches}
        reach_inside(states, graph, inner)
        for value, own in zip(node.outputs, region.results(graph), strict=True):
            if own in inner:
                reaches[value] = union(reaches.get(value), inner[own])
    if region.is_loop:  # what an iteration carries to the next one
        values = zip(node.outputs, node.inputs, strict=False)
        everything: dict[tuple[int, int], None] = {}
        for value, operand in values:
            for found in (reaches.get(value), reaches.get(operand)):
                everything.update(dict.fromkeys(part for part in found or () if part is not None))
        low, high = min((a for a, _ in everything), default=0), max(
            (b for _, b in everything), default=0)
        for value in node.outputs:
            places = states.places[value]
            if any(places) and everything:
                reaches[value] = tuple(None if p is None else (low, high) for p in places)


__all__ = ["SplitRegion", "copied_region", "inner_nodes", "note_reach", "own_reach",
           "place_region"]
