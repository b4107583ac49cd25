"""Stages: the values that are computed for each block before the next barrier.

does:   puts the outputs of a graph, the partials of its barriers, and the values that a later stage
        reads rather than computes again, into families of roots; one task computes a family for
        one block.
needs:  the states of the graph.
leaves: the families, in order of their stages, those without blocks first.

A later stage computes a cheap value again from its operands: memory between stages is scarce where
arrays are larger than it.  A costly value is stored in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ops import registry
from fusec.ops.regions.cones import is_piecewise
from fusec.ops.splitting import Interval

from .barriers import Barrier
from .grids import Place
from .split_states import SplitStates, is_kept

COSTLY = 150.0  # additions an element: what is more is stored
_CHEAP = {"elementwise": 1.0, "view": 0.0, "source": 0.0, "reduce": 2.0, "fold": 2.0}
_SPREADING = ("elementwise", "view", "gather")


@dataclass(frozen=True, eq=False)
class Root:
    """A value that is stored in blocks, or the partials of a barrier.

    ``places``: of the axes of the result, then of the axes that a barrier joins along.  ``along``:
    for each of these the axis of the family's grid, None where it is not in blocks.
    """

    value: Value
    barrier: Barrier | None
    places: tuple[Place | None, ...]
    along: tuple[int | None, ...]

    @property
    def width(self) -> int:
        """The arrays that a task gives for it."""
        return self.barrier.width if self.barrier is not None else 1

    @property
    def sizes(self) -> list[int]:
        """The lengths of the axes that ``places`` are of."""
        inner = () if self.barrier is None else (
            self.barrier.operands[r.number].shape[r.axis] for r in self.barrier.reduced)
        return [*map(int, self.value.shape), *map(int, inner)]

    def intervals(self, states: SplitStates) -> list[list[Interval]]:
        """By axis of ``places`` the part of it that is in each block along the grid's axis; one for
        all where it is not in blocks."""
        parts = [[(0, size)] if place is None or at is None else
                 states.lines.intervals(place, size)
                 for place, at, size in zip(self.places, self.along, self.sizes, strict=True)]
        for axis, (first, last) in enumerate(
                () if self.barrier is None else self.barrier.only, self.value.type.rank):
            parts[axis] = [(max(start, first), min(stop, last)) for start, stop in parts[axis]]
        return parts


@dataclass(eq=False)
class BlockFamily:
    """Roots that are computed together: for each block of the ``grid``, which has a line for each
    of its axes."""

    stage: int
    grid: tuple[int, ...]
    roots: list[Root] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)  # of its blocks' graphs, in order
    leaves: list[Value] = field(default_factory=list)  # that these read
    regions: Container[Node] = ()  # the branches and loops among its nodes that read blocks

    @property
    def operands(self) -> list[Value]:
        """The values that its blocks' graphs compute, or compute partials of."""
        return [v for root in self.roots for v in (
            (root.value,) if root.barrier is None else root.barrier.operands)]


@dataclass
class Stages:
    """The families, and where each value that is stored is made."""

    graph: Graph
    states: SplitStates
    families: list[BlockFamily]
    stored: dict[Value, tuple[BlockFamily, Root]]


def stages_of(graph: Graph, states: SplitStates, outputs: Sequence[Value]) -> Stages:
    """The stages that compute these outputs of a graph."""
    planner = _Planner(graph, states)
    for value in outputs:
        planner.store(value)
    planner.run()
    families = sorted(planner.families.values(), key=lambda f: (f.stage, bool(f.grid)))
    for family in families:
        planner.complete(family)
    return Stages(graph, states, families, planner.stored)


class _Planner:
    """Finds the roots, from the outputs back."""

    def __init__(self, graph: Graph, states: SplitStates) -> None:
        self.graph, self.states = graph, states
        self.families: dict[tuple[int, tuple[int, ...]], BlockFamily] = {}
        self.stored: dict[Value, tuple[BlockFamily, Root]] = {}
        self._waiting: list[tuple[BlockFamily, Root]] = []
        self._costs: dict[Value, float] = {}
        self._order = {node.id: number for number, node in enumerate(graph.nodes)}

    def store(self, value: Value) -> None:
        """Have the value stored, unless it is an argument, which is."""
        barrier = self.states.barriers.get(value)
        if value in self.stored or (value.node.op == "Input" and barrier is None):
            return
        places, stage = list(self.states.of(value)), self.states.stages[value]
        if barrier is not None:
            stage = max(self.states.stages[v] for v in barrier.operands)
            places += [self.states.of(barrier.operands[r.number])[r.axis] for r in barrier.reduced]
        elif is_kept(value.node) and any(places):
            stage -= 1
        lines = [place.line for place in places if place is not None]
        grid = tuple(sorted(lines)) if len({*lines}) == len(lines) else tuple(lines)
        numbers = iter(range(len(lines)))
        is_plain = len({*lines}) == len(lines)
        along = tuple(None if place is None else (
            grid.index(place.line) if is_plain else next(numbers)) for place in places)
        family = self.families.setdefault(
            (stage, grid), BlockFamily(stage, grid, regions=self.states.regions))
        root = Root(value, barrier, tuple(places), along)
        family.roots.append(root)
        self.stored[value] = family, root
        self._waiting.append((family, root))

    def run(self) -> None:
        """Store what the roots need of earlier stages, until nothing more is needed."""
        while self._waiting:
            family, root = self._waiting.pop()
            values = (root.value,) if root.barrier is None else root.barrier.operands
            for value in self._read(family, values, root):
                self.store(value)

    def _read(
        self, family: BlockFamily, values: Sequence[Value], root: Root | None = None
    ) -> Iterator[Value]:
        """The values that a family reads to compute these."""
        stack, seen = list(values), set[Value]()
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            is_own = root is not None and value is root.value and root.barrier is None
            if not is_own and self._is_read(family, value):
                yield value
            else:
                stack += value.node.inputs

    def _is_read(self, family: BlockFamily, value: Value) -> bool:
        """Whether a task reads the value rather than computes it."""
        if value.node.op == "Input" or value in self.states.barriers:
            return True
        if value.node.attrs.get("is_by_block"):  # made for a block's own box: no other part of it
            return True
        is_whole, stage = self.states.is_whole(value), self.states.stages[value]
        if is_whole and not family.grid and stage == family.stage:
            return False
        if is_kept(value.node):
            return True
        if is_whole:
            return self._cost(value) > COSTLY and bool(value.shape or not _is_scalar(value))
        return stage < family.stage and self._cost(value) > COSTLY

    def _cost(self, value: Value) -> float:
        """Additions an element of it costs, counted up to what is costly."""
        known = self._costs.get(value)
        if known is not None:
            return known
        total, stack, seen = 0.0, [value], set[Value]()
        while stack and total <= COSTLY:
            v = stack.pop()
            if v in seen or v.node.op == "Input" or v in self.states.barriers or (
                    is_kept(v.node)):
                continue
            seen.add(v)
            row = registry.get(v.node.op)
            factor = _CHEAP.get(row.kind)
            if has_pieces(v.node):
                factor = 0.0
            elif row.kind in _SPREADING and _makes_more(v):
                total += row.cost
                continue
            total += COSTLY + 1.0 if factor is None else factor * row.cost
            stack += v.node.inputs
        self._costs[value] = total
        return total

    def complete(self, family: BlockFamily) -> None:
        """Note what the family's graphs are made of."""
        leaves: dict[Value, None] = {}
        nodes: dict[int, Node] = {}
        own = {root.value for root in family.roots if root.barrier is None}
        stack, seen = [(v, True) for v in family.operands], set[Value]()
        while stack:
            value, is_root = stack.pop()
            if value in seen:
                continue
            if not (is_root and value in own) and self._is_read(family, value):
                leaves[value] = None
                seen.add(value)
                continue
            seen.add(value)
            nodes[value.node.id] = value.node
            stack += [(v, v in own) for v in value.node.inputs]
        family.leaves = list(leaves)
        family.nodes = sorted(nodes.values(), key=lambda node: self._order[node.id])


def has_pieces(node: Node) -> bool:
    """Whether its result is put together of parts of its operands."""
    return node.op == "Concat" or (is_piecewise(node) and "starts" in node.attrs)


def _makes_more(value: Value) -> bool:
    """Whether it has more elements than its operands: each month's mean for each day.  Then these
    are stored, where they are costly, and readers make it of them."""
    read = value.node.inputs[:1] if value.node.op == "Gather" else value.node.inputs  # no indices
    return math.prod(value.shape) > sum(math.prod(v.shape) for v in read)


def _is_scalar(value: Value) -> bool:
    return registry.get(value.node.op).kind in _CHEAP


__all__ = ["BlockFamily", "Root", "Stages", "has_pieces", "stages_of"]
