"""Derivatives of branches: a branch on the same test.

On the way back each side computes again what costs little, and is given what costs more, which the
branch of the way there keeps: a value of the side that was taken, and zeros for the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.ir import Graph, Node, Value
from fusec.ir.dims import Dim
from fusec.ir.walks import nodes_behind
from fusec.ops import Builder
from fusec.ops.derivatives import Term, full
from fusec.records import dataclass, field

from .bodies import Body, Opened, adjoint_type, name_of, of_kind, opened, placeholder
from .reverse import Reverse, control_rule, pull
from .tape import kept_values, read_by_derivatives
from .trips import Around, interval

SIDES = ("then", "orelse")


@dataclass
class Side:
    """A side and a copy of it: ``outputs`` are its results, ``ends`` what its parameters are."""

    graph: Graph
    body: Opened
    outputs: list[Value]
    ends: list[Value]
    seeds: dict[int, Value] = field(default_factory=dict)  # of results, then of arrays
    totals: dict[int, Value] = field(default_factory=dict)  # by parameter
    kept: list[Value] = field(default_factory=list)

    @classmethod
    def of(cls, builder: Builder, graph: Graph) -> Side:
        body = opened(builder, graph)
        updates = body.new_contents(graph)
        return cls(graph, body, [body.values[v] for v in graph.outputs],
                   [updates.get(i, v) for i, v in enumerate(body.parameters)])


def sides_of(builder: Builder, node: Node) -> list[Side]:
    return [Side.of(builder, node.attrs[name]) for name in SIDES]


@control_rule("Cond")
def reverse_cond(reverse: Reverse, node: Node, given: Sequence[Term | None]) -> None:
    """Add to the totals of the branch's operands."""
    builder = reverse.builder
    operands = node.inputs[1:]
    plan = _Plan.of(reverse, node, given)
    if not plan.wanted:
        return
    sides = sides_of(builder, node)
    for side in sides:
        _differentiate(reverse, node, side, plan)
    builder.loc, builder.device = node.loc, node.device
    kept = _kept_by(builder, node, sides)
    results = _back(reverse, node, sides, plan, kept)
    for n, value in zip(plan.order, results, strict=True):
        term, outer = Term(builder, value), operands[n]
        if n in plan.arrays and plan.starts_with_total(n):
            reverse.totals[outer] = term
        else:
            reverse.add(outer, term)


@dataclass
class _Plan:
    """The cotangents of results that are given, and the operands whose are wanted.

    Arrays are handed over as what the branch of the way back changes: a cotangent of an array that
    a side writes, and the total so far of one that it reads.
    """

    node: Node
    outputs: dict[int, Term]  # by result
    changed: dict[int, Term]  # by operand that the sides update
    wanted: list[int]

    @classmethod
    def of(cls, reverse: Reverse, node: Node, given: Sequence[Term | None]) -> _Plan:
        changed = node.attrs["changed"]
        count = len(node.types) - changed
        cts = {k: ct for k, ct in enumerate(given) if ct is not None}
        operands = node.inputs[1:]
        wanted = [n for n, v in enumerate(operands)
                  if v in reverse.found.values and v not in operands[:n]]
        return cls(node, {k: ct for k, ct in cts.items() if k < count},
                   {k - count: ct for k, ct in cts.items() if k >= count}, wanted)

    @property
    def arrays(self) -> list[int]:
        """Operands whose cotangents are arrays that the way back changes: wanted ones, and those
        with a cotangent that the sides overwrite."""
        operands = self.node.inputs[1:]
        return sorted({*self.changed, *(n for n in self.wanted
                                        if operands[n].type.kind == "array")})

    @property
    def order(self) -> list[int]:
        """The wanted operands: numbers first, then arrays, as the way back gives them."""
        return [n for n in self.wanted if n not in self.arrays] + [
            n for n in self.arrays if n in self.wanted]

    def starts_with_total(self, number: int) -> bool:
        """Whether the total so far of the operand is what the way back adds to."""
        return number >= self.node.attrs["changed"]


def _differentiate(reverse: Reverse, node: Node, side: Side, plan: _Plan) -> None:
    builder, inside = reverse.builder, side.body.parameters
    results: dict[Value, Term] = {}

    def seed(key: int, value: Value) -> None:
        side.seeds[key] = placeholder(builder, adjoint_type(value), f"ct_{name_of(value)}")
        term = Term(builder, side.seeds[key])
        results[value] = results[value] + term if value in results else term

    for k in plan.outputs:
        seed(k, side.outputs[k])
    for n in plan.arrays:
        changed = n < node.attrs["changed"]
        seed(-1 - n, side.ends[n] if changed else inside[n])
    totals = pull(builder, results, [inside[n] for n in plan.wanted],
                  _around(side, node, reverse.around))
    builder.loc = node.loc
    for n, total in zip(plan.wanted, totals, strict=True):
        term = full(builder, inside[n].dtype.type(0), inside[n]) if total is None else total
        side.totals[n] = of_kind(term, adjoint_type(inside[n]).kind)
    known = {v for v in inside if not v.shape}
    read = read_by_derivatives(list(side.totals.values()), list(side.seeds.values()))
    kept = kept_values(read, known.__contains__)
    side.kept = [v for v in kept if v not in inside and _is_static(v)]


def _is_static(value: Value) -> bool:
    return not any(isinstance(n, Dim) and n.symbols for n in value.shape)


def _around(side: Side, node: Node, around: Around | None) -> dict[Value, tuple[object, object]]:
    known = dict(around or {})
    for inner, outer in zip(side.body.parameters, node.inputs[1:], strict=True):
        if not inner.shape and inner.dtype.kind in "iu":
            known[inner] = interval(outer, known)
    return known


def _kept_by(builder: Builder, node: Node, sides: Sequence[Side]) -> list[list[Value]]:
    """For each side the values that it keeps: results of a branch that has them as well."""
    everything = [v for side in sides for v in side.kept]
    if not everything:
        return [[] for _ in sides]
    zeros = {v: of_kind(full(builder, v.dtype.type(0), v), adjoint_type(v).kind)
             for v in everything}
    more = [More([v if v in side.kept else zeros[v] for v in everything]) for side in sides]
    branch = extended_cond(builder, node, sides, more)
    first = len(sides[0].outputs)
    results = iter(branch.out(first + k) for k in range(len(everything)))
    return [[next(results) for _ in side.kept] for side in sides]


@dataclass
class More:
    """What a side of an extended branch has beside the side that it extends: results; arrays that
    it changes, as (operand, placeholder in the copy of the side, new contents); and what it reads,
    as (operand, placeholder)."""

    outputs: list[Value] = field(default_factory=list)
    changed: list[tuple[Value, Value, Value]] = field(default_factory=list)
    read: list[tuple[Value, Value]] = field(default_factory=list)


def extended_cond(
    builder: Builder, node: Node, sides: Sequence[Side], more: Sequence[More]
) -> Node:
    """The branch with more results, which both sides have."""
    changed, operands = node.attrs["changed"], node.inputs[1:]
    graphs: dict[str, Any] = {name: _extended_side(builder, name, side, changed, own)
                              for name, side, own in zip(SIDES, sides, more, strict=True)}
    return builder.emit(
        "Cond", node.inputs[0], *operands[:changed], *(v for v, _, _ in more[0].changed),
        *operands[changed:], *(v for v, _ in more[0].read), **graphs,
        changed=changed + len(more[0].changed), extends=node.name).node


def _extended_side(
    builder: Builder, name: str, side: Side, changed: int, more: More
) -> Graph:
    body = Body(builder)
    parameters = [(v, v) for v in side.body.parameters]
    parameters[changed:changed] = [(seed, seed) for _, seed, _ in more.changed]
    parameters += [(seed, seed) for _, seed in more.read]
    for like, stands_for in parameters:
        body.parameter(like.type, name_of(like), stands_for)
    sinks = [v for m in side.body.nodes for v in m.outputs[:1]]
    body.copied(sinks)
    results = body.copied(side.outputs)
    results += [of_kind(Term(builder, v), adjoint_type(v).kind)
                for v in body.copied(more.outputs)]
    ends = body.copied([*side.ends[:changed], *(end for _, _, end in more.changed)])
    return body.graph(name, results, dict(enumerate(ends)),
                      [body.values[v].node for v in sinks])


def _back(
    reverse: Reverse, node: Node, sides: Sequence[Side], plan: _Plan, kept: list[list[Value]],
) -> list[Value]:
    """The cotangents of the wanted operands, in the plan's order."""
    builder, operands = reverse.builder, node.inputs[1:]
    starts = {n: _start(reverse, node, plan, n) for n in plan.arrays}
    cts = {k: of_kind(ct, adjoint_type(node.out(k)).kind) for k, ct in plan.outputs.items()}
    read = [n for n, _ in enumerate(operands) if any(_reads(side, n) for side in sides)]
    numbers = [n for n in plan.order if n not in plan.arrays]
    graphs: dict[str, Any] = {}
    for at, (name, side) in enumerate(zip(SIDES, sides, strict=True)):
        body = Body(builder)
        for n, start in starts.items():
            body.parameter(start.type, name_of(side.seeds[-1 - n]), side.seeds[-1 - n])
        for k, ct in cts.items():
            body.parameter(ct.type, name_of(side.seeds[k]), side.seeds[k])
        for other, values in enumerate(kept):
            for k, value in enumerate(values):
                inner = body.parameter(value.type, "kept")
                if other == at:
                    body.values[side.kept[k]] = of_kind(
                        Term(builder, inner), side.kept[k].type.kind)
        for n in read:
            body.parameter(operands[n].type, name_of(operands[n]), side.body.parameters[n])
        outputs = body.copied([side.totals[n] for n in numbers])
        ends = {k: body.copied([side.totals[n]])[0] for k, n in enumerate(starts)
                if n in side.totals}
        graphs[name] = body.graph(name, outputs, ends)
    flat = [value for values in kept for value in values]
    back = builder.emit("Cond", node.inputs[0], *starts.values(), *cts.values(), *flat,
                        *(operands[n] for n in read), **graphs, changed=len(starts)).node
    found = {n: back.out(k) for k, n in enumerate(numbers)}
    found |= {n: back.out(len(numbers) + k) for k, n in enumerate(starts)}
    return [found[n] for n in plan.order]


def _start(reverse: Reverse, node: Node, plan: _Plan, number: int) -> Value:
    outer = node.inputs[1 + number]
    term = plan.changed.get(number) if number < node.attrs["changed"] else (
        reverse.totals.get(outer))
    if term is None:
        term = full(reverse.builder, outer.dtype.type(0), outer)
    return of_kind(term, "array")


def _reads(side: Side, number: int) -> bool:
    """Whether the way back reads an operand."""
    from_seeds = {*side.kept, *side.seeds.values()}
    parameter = side.body.parameters[number]
    return parameter in _behind(list(side.totals.values()), from_seeds)


def _behind(roots: Sequence[Value], known: set[Value]) -> set[Value]:
    nodes = nodes_behind(roots, known.__contains__)
    return {v for node in nodes for v in node.inputs if v not in known} | (set(roots) - known)
