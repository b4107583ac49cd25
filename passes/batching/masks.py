"""Branches of which both sides are done for all lanes, and the one that counts is chosen.

Costs are additions of one lane.  With masks a lane costs both sides, a vector of lanes at a time;
in a loop over lanes it costs the longer side, and what the loop and a mispredicted jump cost.
Only sides that raise nothing and read nothing at an index are done where they were not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ops import Builder, get

VECTOR = 4  # lanes of float64 that AVX2 computes at once
TURN = 10.0  # additions that take as long as one turn of a loop over lanes
LONG = 16  # elements from which on one lane's arrays are computed as vectors too
Costs = tuple[float, float] | None
_PURE = ("elementwise", "view", "reduce", "scan", "composite", "source")  # kinds of rows


@dataclass
class Unbranched:
    """Nodes of one lane without branches that masks do: ``values`` of others by those before."""

    builder: Builder
    values: dict[Value, Value] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    costs: dict[int, Costs] = field(default_factory=dict)  # of branches in branches, by node

    def of(self, values: Iterable[Value]) -> list[Value]:
        return [self.values.get(v, v) for v in values]

    def add(self, nodes: Iterable[Node]) -> None:
        """Nodes, in order; those that read what a branch gave are made anew."""
        for node in nodes:
            costs = branch_costs(node, self.costs) if node.op == "Cond" else None
            if costs is not None and costs[0] <= costs[1]:
                self._choose(node)
                self.notes.append(told(node, costs))
            elif any(v in self.values for v in node.inputs):
                copy = node.with_(inputs=self.of(node.inputs), control_inputs=())
                self.values.update(zip(node.outputs, copy.outputs, strict=True))

    def _choose(self, node: Node) -> None:
        test, *operands = self.of(node.inputs)
        sides = []
        for name in ("then", "orelse"):
            graph = node.attrs[name]
            inner = Unbranched(self.builder, dict(zip(graph.inputs, operands, strict=True)),
                               costs=self.costs)
            inner.add_copies(graph)
            new = {k: inner.values[v] for k, v in graph.updates}
            sides.append([*inner.of(graph.outputs),
                          *(new.get(k, operands[k]) for k in range(node.attrs["changed"]))])
            self.notes += inner.notes
        self.builder.loc, self.builder.device = node.loc, node.device
        for value, then, orelse in zip(node.outputs, *sides, strict=True):
            self.values[value] = self.builder.emit(
                "Where", test, then, orelse, kind=value.type.kind)

    def add_copies(self, graph: Graph) -> None:
        """The nodes of a side, over its operands."""
        for node in graph.nodes:
            if node.op == "Cond":
                self.add([node])
            elif node.op != "Input":
                copy = node.with_(inputs=self.of(node.inputs), control_inputs=(),
                                  name=self.builder.namer.fresh(node.name))
                self.values.update(zip(node.outputs, copy.outputs, strict=True))


def branch_costs(node: Node, known: dict[int, Costs]) -> Costs:
    """Of a lane with masks, and of one in a loop over lanes; None where masks cannot do it."""
    if node.id not in known:
        sides = [_side(node.attrs[name], known) for name in ("then", "orelse")]
        known[node.id] = _of_sides(node, *sides)
    return known[node.id]


def _of_sides(node: Node, then: float | None, orelse: float | None) -> Costs:
    if then is None or orelse is None:
        return None
    own = VECTOR if _longest(node) >= LONG else 1
    return (then + orelse) / VECTOR, max(then, orelse) / own + TURN


def _longest(node: Node) -> int:
    return max((t.size for t in node.types if t.is_static), default=1)


def _side(graph: Graph, known: dict[int, Costs]) -> float | None:
    """The additions of one side; None if it must not run where it was not taken."""
    total = 0.0
    for node in graph.nodes:
        if node.op == "Cond":
            inner = branch_costs(node, known)
            if inner is None or inner[0] > inner[1]:
                return None
            total += inner[0] * VECTOR
            continue
        row = get(node.op)
        if not _is_pure(node) or not all(t.is_static for t in node.types):
            return None
        sizes: Sequence[int] = [v.type.size for v in (*node.inputs, *node.outputs)]
        total += row.cost * max(sizes, default=1) if row.kind != "view" else 0.0
    return total


def _is_pure(node: Node) -> bool:
    row = get(node.op)
    if row.kind == "piecewise":
        return row.raises == "never"
    return row.kind in _PURE and not (
        row.may_raise or row.stateful or row.chooses or node.attrs.get("raises"))


def told(node: Node, costs: tuple[float, float]) -> str:
    """The choice in words."""
    where = "a branch" if node.loc is None else f"the branch at {node.loc}"
    return (f"vmap: {where}: both sides for all lanes, with masks ({costs[0]:.0f} additions a lane "
            f"against {costs[1]:.0f} one by one)")
