"""Loops whose iterations need other blocks, written out: one after the other, stage by stage.

does:   runs a loop's test on the numbers that the call knows, and puts the nodes of each iteration
        in the loop's place; of a branch that needs other blocks it takes the side that the call
        knows, or both and `np.where`.  Branches and loops that each block can run by itself stay.
needs:  a graph as `splittable` leaves it, the chunks of its parameters, the others' values.
leaves: a graph in which a ``Fence`` stands between iterations: no pass looks through it, so that
        the products of each are contracted as in the loop's own graph.  `without_fences` takes
        them out again.  Numbers that are known become parameters, which nothing folds.

Where edges would get longer than `LONGEST_EDGE` of a block, what is carried is stored in blocks
between two iterations, and the edge begins anew.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from fusec.core.display.amounts import count_text
from fusec.core.records import dataclass, field
from fusec.errors import UnsupportedError
from fusec.ir import Graph, Loc, Node, Value
from fusec.ir.graph import new_id
from fusec.ops import Builder, Namer, registry
from fusec.ops.calls.checks import has_effects
from fusec.ops.calls.subgraph_ops import is_region
from fusec.ops.rows.picking import PICKS

from ..far_pieces import by_rows, is_pieces
from ..split_states import Chunks, SplitStates, is_kept
from ..states import place_node, placed_inputs
from .chains import is_chain
from .known_numbers import KnownNumbers
from .reaches import Reach
from .refusals import MOST_ITERATIONS, MOST_NODES, check_sizes, impossible, or_rechunk, too_many
from .regions import SplitRegion, copied_region, note_reach

LONGEST_EDGE = 0.25  # of the shortest block: edges are computed twice


@dataclass
class Expanded:
    """``graph``: its first ``outputs`` outputs are the given graph's, the others are there to be
    kept while products are contracted; ``numbers``: of the parameters that were added, by number;
    ``loops``: what became of branches and loops, a line each."""

    graph: Graph
    outputs: int
    numbers: dict[int, Any]
    loops: list[str]


def expanded(graph: Graph, chunks: Chunks, given: Mapping[int, Any]) -> Expanded:
    """The graph with those of its branches and loops written out that blocks cannot run.

    Raises ``UnsupportedError`` where that cannot be done.
    """
    if not any(is_region(node) or is_pieces(node) for node in graph.nodes):
        return Expanded(graph, len(graph.outputs), {}, [])
    return _Expander(graph, chunks, given).run()


class _Expander:
    """Makes the new graph, and the states of its nodes as they are made."""

    def __init__(self, graph: Graph, chunks: Chunks, given: Mapping[int, Any]) -> None:
        self.graph = graph
        self.states = placed_inputs(graph.inputs, chunks)
        self.known = KnownNumbers({graph.inputs[k]: value for k, value in given.items()})
        self.builder = Builder(Namer(node.name for node in graph.nodes))
        self.nodes: list[Node] = []
        self.inputs = list(graph.inputs)
        self.fences: list[Value] = []
        self.numbers: dict[int, Any] = {}
        self.values: dict[Value, Value] = {}
        self.reaches: dict[Value, Reach] = {}
        self.written = 0  # nodes of loops written out
        self.counts = Counter[tuple[Loc | None, str]]()
        self.inside = 0  # how many graphs of branches and loops around

    def run(self) -> Expanded:
        for value in self.graph.inputs:
            self.reaches[value] = _none(self.states, value)
        for node in self.graph.nodes:
            if node.op == "Input":
                self.nodes.append(node)
                continue
            copy = node.with_inputs([self.values.get(v, v) for v in node.inputs])
            results = self.take(copy)
            self.values.update((v, r) for v, r in zip(node.outputs, results, strict=True)
                               if v != r)
        outputs = [self.values.get(v, v) for v in self.graph.outputs]
        made = Graph(tuple(self.inputs), (*outputs, *self.fences), (), tuple(self.nodes),
                     self.graph.name)
        return Expanded(made, len(outputs), self.numbers, [
            f"{text} at {loc}" + (f" ({count} times)" if count > 1 else "")
            for (loc, text), count in self.counts.items()])

    # -- nodes

    def take(self, node: Node) -> Sequence[Value]:
        """Put a node into the graph, or what stands for it; its results."""
        if is_region(node) and not all(map(self.states.is_whole, node.inputs)):
            return self._region(node)
        if node.op == "Check" and self._is_true(node.inputs[0]):
            return [self._emit(node, "Const", value=True, kind="scalar")]
        if registry.get(node.op).picks and any(
                self.states.places[node.inputs[0]][axis] for axis in node.attrs.get("axes", ())):
            made = self._part(node)
            if made is not None:
                return [made]
        return self._add(by_rows(self.states, node, self._emit))

    def _is_true(self, value: Value) -> bool:
        known = self.known.get(value)
        return known is not None and bool(known)

    def _add(self, node: Node) -> Sequence[Value]:
        place_node(self.states, node)
        self.nodes.append(node)
        note_reach(self.states, node, self.reaches)
        for value in node.outputs:
            if value in self.states.barriers or is_kept(node):
                self.reaches[value] = _none(self.states, value)
        self.known.note(node)
        return node.outputs

    def _emit(self, like: Node, op: str, *inputs: Value, **attrs: Any) -> Value:
        self.builder.stand_for(like)
        self.builder.control_inputs = ()
        value = self.builder.emit(op, *inputs, **attrs)
        self._add(value.node)
        return value

    def _part(self, node: Node) -> Value | None:
        """A part at numbers that are known, as a slice."""
        axes, operand = node.attrs["axes"], node.inputs[0]
        numbers = [self.known.get(v) for v in node.inputs[-len(axes):]]
        if node.op not in PICKS or None in numbers:
            return None
        starts, sizes = [0] * operand.type.rank, [*map(int, operand.shape)]
        for axis, number in zip(axes, numbers, strict=True):
            size = sizes[axis]
            if not -size <= number < size:
                return None  # NumPy's error, where it is computed
            starts[axis], sizes[axis] = int(number) % size, 1
        region = {"starts": tuple(starts), "sizes": tuple(sizes), "steps": (1,) * len(sizes)}
        if node.op == "PickUpdate":
            part = self._emit(node, "ExpandDims", node.inputs[1], axes=tuple(sorted(axes)))
            return self._emit(node, "SliceUpdate", operand, part, **region)
        part = self._emit(node, "Slice", operand, **region)
        part = self._emit(node, "Squeeze", part, axes=tuple(sorted(axes)))
        kind = node.types[0].kind
        return part if part.type.kind == kind else self._emit(
            node, "Cast", part, dtype=part.dtype, kind=kind)

    # -- branches and loops

    def _region(self, node: Node) -> Sequence[Value]:
        node = copied_region(node)
        region = SplitRegion(node)
        side = None if region.is_loop else self.known.get(node.inputs[0])
        try:
            results = self._add(node)
        except UnsupportedError as error:
            refusal = error
        else:
            if not self.inside:
                self.counts[node.loc, f"{region.title} within each block"] += 1
            return results
        if region.is_loop:
            return self._written_out(region, refusal)
        if side is not None:
            then, orelse = region.graphs
            return self._inlined(region, then if side else orelse, self._entries(
                region, then if side else orelse, region.operands, "side"))
        return self._both(region, refusal)

    def _both(self, region: SplitRegion, refusal: UnsupportedError) -> Sequence[Value]:
        """Both sides of a branch, and the results of the one that is taken."""
        if any(map(_may_raise, region.graphs)):
            raise impossible(region, refusal, "that may raise an error",
                              "compute both sides without what may raise, and take np.where")
        sides = [self._inlined(region, graph, self._entries(region, graph, region.operands, name))
                 for graph, name in zip(region.graphs, ("then", "orelse"), strict=True)]
        self.counts[region.node.loc, "a branch of which both sides are computed"] += not self.inside
        return [self._chosen(region.node, region.node.inputs[0], *two)
                for two in zip(*sides, strict=True)]

    def _chosen(self, like: Node, test: Value, one: Value, other: Value) -> Value:
        if one == other:
            return one
        return self._emit(like, "Where", test, one, other, kind=one.type.kind)

    def _written_out(self, region: SplitRegion, refusal: UnsupportedError) -> Sequence[Value]:
        """The iterations of a loop, while the numbers that are known say so, or may."""
        loop = _WrittenLoop(self, region)
        for number in itertools.count():
            goes_on = loop.test(refusal)
            if goes_on is False:
                break
            if number >= MOST_ITERATIONS or self.written > MOST_NODES:
                raise too_many(region, refusal, loop.going is not None)
            loop.run(number, goes_on)
        how = "at most " if loop.going is not None else ""
        text = f"a loop unrolled {how}{number} times, of {MOST_ITERATIONS:,} at most"
        if loop.stored:
            text += f", what it carries stored {count_text(loop.stored, 'time')}"
        if not self.inside:
            self.counts[region.node.loc, text] += 1
        return loop.results()

    def _entries(
        self, region: SplitRegion, graph: Graph, given: Sequence[Value], key: str,
        stored: Container[Value] = (),
    ) -> list[Value]:
        """What a graph is given: numbers that are known as parameters, the rest behind fences."""
        read = {v for node in graph.nodes for v in node.inputs} | {*graph.outputs} | {
            v for _, v in graph.updates}
        key = f"{region.node.name}/{key}"
        return [self._entry(region, value, f"{key}/{number}", value in stored)
                if inner in read else value
                for number, (inner, value) in enumerate(zip(graph.inputs, given, strict=True))]

    def _entry(self, region: SplitRegion, value: Value, key: str, stored: bool) -> Value:
        number = self.known.get(value)
        if number is not None:
            return self._number(region.node, value, number)
        return self._emit(region.node, "Fence", value, key=key, stored=stored)

    def moves(self, value: Value) -> bool:
        """Whether a block of it reads other blocks."""
        return any(part not in (None, (0, 0)) for part in self.reaches.get(value, ()))

    def _number(self, like: Node, value: Value, number: Any) -> Value:
        """A parameter for a number that is known."""
        name, index = self.builder.namer.fresh(f"{like.name}_number"), len(self.inputs)
        node = Node("Input", (), (value.type,), {"type": value.type, "index": index, "path": name},
                    name=name, loc=like.loc)
        self.inputs.append(node.out())
        self.numbers[index] = number
        self.nodes.append(node)
        place_node(self.states, node)
        self.known.numbers[node.out()] = number
        return node.out()

    def _inlined(self, region: SplitRegion, graph: Graph, entries: Sequence[Value]) -> list[Value]:
        """The nodes of a graph, of these parameters; the values of the results."""
        return self._fenced(region, self._copied(graph, entries, region.results(graph)))

    def _copied(
        self, graph: Graph, entries: Sequence[Value], wanted: Sequence[Value]
    ) -> list[Value]:
        values = dict(zip(graph.inputs, entries, strict=True))
        self.inside += 1
        for node in graph.nodes:
            if node.op == "Input":
                continue
            copy = node.with_(inputs=[values[v] for v in node.inputs], control_inputs=(),
                              name=self.builder.namer.fresh(node.name))
            self.written += 1
            check_sizes(copy)
            values.update(zip(node.outputs, self.take(copy), strict=True))
        self.inside -= 1
        return [values[v] for v in wanted]

    def _fenced(self, region: SplitRegion, ends: Sequence[Value]) -> list[Value]:
        """The values behind fences that are outputs of the graph: what is read later counts as
        read while products are contracted."""
        found = []
        for end in ends:
            fence = self._emit(region.node, "Fence", end, key=str(len(self.fences)), stored=False)
            self.fences.append(fence)
            known = self.known.get(end)
            if known is not None:
                self.known.numbers[fence] = known
            found.append(fence)
        return found


@dataclass
class _WrittenLoop:
    """One loop that is written out.  ``now``: what it carries; ``going``: whether data have not
    ended it yet, once they may have."""

    expander: _Expander
    region: SplitRegion
    now: list[Value] = field(default_factory=list)
    running: list[Value] = field(default_factory=list)  # if it goes on: the same, or numbers
    going: Value | None = None
    stored: int = 0
    step: int = 0  # how much longer an iteration makes edges
    begun: int = 0  # the number of the last iteration's first node

    def __post_init__(self) -> None:
        count = len(self.region.node.types)
        self.now = [*self.region.node.inputs[:count]]
        self.running = [*self.now]
        self.outer = self.region.node.inputs[count:]

    def test(self, refusal: UnsupportedError) -> Value | bool:
        """Whether there is another iteration: known, or a value that tells."""
        graph, self.begun = self.region.test, new_id()
        assert graph is not None
        given = dict(zip(graph.inputs, (*self.running, *self.outer), strict=True))
        known = self.expander.known.of_graph(graph, given)
        if known is not None:
            return known
        body = self.region.graphs[0]
        if _may_raise(body):
            raise impossible(
                self.region, refusal, "which data end and in which an iteration may raise an "
                "error", "give it a number of iterations: for _ in range(n)" + or_rechunk(refusal))
        expander = self.expander
        entries = expander._entries(self.region, graph, [*given.values()], "test")
        (found,) = expander._fenced(self.region, expander._copied(graph, entries, graph.outputs))
        return found

    def run(self, number: int, goes_on: Value | bool) -> None:
        """One iteration; ``goes_on``: whether it counts."""
        expander, (body,) = self.expander, self.region.graphs
        if not isinstance(goes_on, bool):
            self._goes_on_if(goes_on)
        before = self._edge(self.running)
        is_too_long = number > 0 and self._is_too_long(before + self.step)
        self.stored += is_too_long
        entries = expander._entries(
            self.region, body, [*self.running, *self.outer], str(number),
            [v for v in self.running if is_too_long and expander.moves(v)])
        self.now = [entry if is_kept(entry.node) else now
                    for now, entry in zip(self.now, entries, strict=False)]
        begun = self._edge(entries[:len(self.now)])
        ends = expander._inlined(self.region, body, entries)
        self.step = max(self.step, self._edge(ends) - begun)
        if self.going is None:
            self.now = self.running = [*map(self._shortened, ends)]
            return
        self.now = [self._shortened(expander._chosen(self.region.node, self.going, *two))
                    for two in zip(ends, self.now, strict=True)]
        self.running = [end if expander.known.get(end) is not None else now
                        for end, now in zip(ends, self.now, strict=True)]

    def _goes_on_if(self, test: Value) -> None:
        """Iterations count from now on where the test holds, too."""
        self.going = test if self.going is None else self._shortened(self.expander._emit(
            self.region.node, "LogicalAnd", self.going, test))

    def _shortened(self, value: Value) -> Value:
        """The value, stored where it is made of earlier iterations' sums."""
        if not is_chain(self.expander.states, value, self.begun):
            return value
        node = self.region.node
        return self.expander._emit(
            node, "Fence", value, key=f"{node.name}/{value.name}", stored=True)

    def results(self) -> list[Value]:
        return self.now

    def _edge(self, values: Sequence[Value]) -> int:
        """How far beyond its block any of them reads."""
        reaches = self.expander.reaches
        return max((max(-low, high) for v in values for part in reaches.get(v, ())
                    if part is not None for low, high in (part,)), default=0)

    def _is_too_long(self, edge: int) -> bool:
        states = self.expander.states
        shortest = [states.lines.shortest(place.line) for v in self.running
                    for place in states.of(v) if place is not None]
        return bool(shortest) and edge > max(1, int(LONGEST_EDGE * min(shortest)))


def _none(states: SplitStates, value: Value) -> Reach:
    return tuple(None if place is None else (0, 0) for place in states.places[value])


def _may_raise(graph: Graph) -> bool:
    """Whether a run of it may raise where the program's own would not."""
    return any((has_effects(node) or registry.get(node.op).may_raise) and not _is_safe(node)
               for node in _all_nodes(graph))


def _is_safe(node: Node) -> bool:
    """Whether it raises in no case, though its row may."""
    if is_region(node):
        return True  # what is inside is looked at
    return bool(registry.get(node.op).picks) and {*node.attrs["axes"]} <= {
        *node.attrs.get("safe", ())}


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for inner in node.graphs:
            yield from _all_nodes(inner)
