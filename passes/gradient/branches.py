"""Derivatives of branches: a branch on the same test.

In the backward pass each side recomputes cheap values, and is given costly ones, which the branch
of the forward pass keeps: a value of the side that was taken, and zeros for the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.core.locations import of_gradient
from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ir.uses import values_read
from fusec.ops import Builder
from fusec.ops.admission.integer_ranges import Around, interval
from fusec.ops.derivatives import Term, full

from .bodies import (
    Body,
    OpenedGraph,
    adjoint_type,
    check_sizes,
    name_of,
    of_kind,
    opened,
    placeholder,
)
from .loops.run_sizes import copied_after_sizes, numbers_of
from .loops.stacks import LoopContext, Stack, continued, is_beside
from .loops.trips import as_int
from .reverse_mode import Reverse, control_rule, pull
from .tape import is_of_known_size, kept_values, read_by_derivatives

SIDES = ("then", "orelse")


@dataclass
class BranchSide:
    """A side and a copy of it: ``outputs`` are its results, ``ends`` its parameters' values."""

    graph: Graph
    body: OpenedGraph
    outputs: list[Value]
    ends: list[Value]
    seeds: dict[int, Value] = field(default_factory=dict)  # of results, then of arrays
    totals: dict[int, Value] = field(default_factory=dict)  # by parameter
    kept: list[Value] = field(default_factory=list)
    sizes: dict[str, Value] = field(default_factory=dict)  # see `numbers_of`
    stacks: list[Stack] = field(default_factory=list)

    @classmethod
    def of(cls, builder: Builder, graph: Graph) -> BranchSide:
        body = opened(builder, graph)
        updates = body.new_contents(graph)
        return cls(graph, body, [body.values[v] for v in graph.outputs],
                   [updates.get(i, v) for i, v in enumerate(body.parameters)])


def sides_of(builder: Builder, node: Node) -> list[BranchSide]:
    return [BranchSide.of(builder, node.attrs[name]) for name in SIDES]


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
    builder.loc, builder.device = of_gradient(node.loc), node.device
    results = _back(reverse, sides, plan, _Kept(reverse, node, sides))
    for n, value in zip(plan.order, results, strict=True):
        term, outer = Term(builder, value), operands[n]
        if n in plan.arrays and plan.starts_with_total(n):
            reverse.totals[outer] = term
        else:
            reverse.add(outer, term)


@dataclass
class _Plan:
    """The cotangents of results that are given, and the operands whose are wanted.

    Arrays are handed over that the branch of the backward pass changes: a cotangent of an array
    that a side writes, and the total so far of one that it reads.
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
        wanted = [n for n, v in enumerate(operands) if v in reverse.dependents.values]
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
        """Whether the total so far of the operand is the one that the backward pass adds to; once,
        where it stands among the operands twice."""
        operands = self.node.inputs[1:]
        return number >= self.node.attrs["changed"] and operands[number] not in operands[:number]


def _differentiate(reverse: Reverse, node: Node, side: BranchSide, plan: _Plan) -> None:
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
    outer = reverse.inside
    own = LoopContext(_around(side, node, None if outer is None else outer.around),
                      () if outer is None else outer.nest)
    totals = pull(builder, results, [inside[n] for n in plan.wanted], own)
    side.stacks = own.stacks
    builder.loc = of_gradient(node.loc)
    for n, total in zip(plan.wanted, totals, strict=True):
        term = full(builder, inside[n].dtype.type(0), inside[n]) if total is None else total
        side.totals[n] = of_kind(term, adjoint_type(inside[n]).kind)
    known = {v for v in inside if not v.shape} | own.placeholders | {
        stack.first for stack in own.stacks}
    roots, seeds = list(side.totals.values()), set(side.seeds.values())
    read = read_by_derivatives(roots, seeds)
    kept = kept_values(read, known.__contains__)
    side.sizes = numbers_of(builder, side.body, roots, seeds.union(kept).__contains__)
    kept = kept_values({*read, *side.sizes.values()}, known.__contains__) if side.sizes else kept
    side.kept = [v for v in kept if v not in inside and is_of_known_size(v)]


def _around(
    side: BranchSide, node: Node, around: Around | None
) -> dict[Value, tuple[object, object]]:
    known = dict(around or {})
    for inner, outer in zip(side.body.parameters, node.inputs[1:], strict=True):
        if not inner.shape and inner.dtype.kind in "iu":
            known[inner] = interval(outer, known)
    return known


class _Kept:
    """The branch that keeps values, if there are any: ``values`` for each side, and the stacks of
    loops in the sides, ``outer`` as they are in the graph around."""

    def __init__(self, reverse: Reverse, node: Node, sides: Sequence[BranchSide]) -> None:
        self.builder, self.node, self.sides = reverse.builder, node, sides
        self.is_beside = is_beside(reverse.inside)
        self.inner = [(number, stack) for number, side in enumerate(sides)
                      for stack in side.stacks]
        self.outer: list[Stack] = []
        for number, (_, stack) in enumerate(self.inner):
            self.outer.append(continued(
                self.builder, stack, reverse.inside, self._count_of(number)))
        self.values: list[list[Value]] = [[] for _ in sides]
        if self.inner or any(side.kept for side in sides):
            self._extend()

    def _count_of(self, number: int) -> Callable[[], Value]:
        return lambda: self._counted(number)

    def _counted(self, number: int) -> Value:
        """How many entries the branch adds to a stack, by counting."""
        return _counting_cond(self.builder, self.node, self.sides, *self.inner[number])

    def _extend(self) -> None:
        builder, everything = self.builder, [v for side in self.sides for v in side.kept]
        zeros = {v: of_kind(full(builder, v.dtype.type(0), v), adjoint_type(v).kind)
                 for v in everything}
        given = {v: of_kind(Term(builder, v), adjoint_type(v).kind) for v in everything}
        more = [MoreOfBranch([given[v] if v in side.kept else zeros[v] for v in everything])
                for side in self.sides]
        for (owner, inner), outer in zip(self.inner, self.outer, strict=True):
            for number, part in enumerate(more):
                _add_stack(builder, part, inner, outer, number == owner)
        branch = extended_cond(builder, self.node, self.sides, more)
        first = len(self.sides[0].outputs)
        results = iter(branch.outputs[first:])
        self.values = [[next(results) for _ in side.kept] for side in self.sides]
        for outer in self.outer:
            outer.pointer_after = next(results)
        for _ in range(self.node.attrs["changed"]):
            next(results)
        for outer in self.outer:
            outer.arrays_after = [next(results) for _ in outer.arrays]

    def read(self) -> list[tuple[Value, int, Value]]:
        """Stacks that the backward pass reads: values, the side, and their operands there."""
        found = []
        for (owner, inner), outer in zip(self.inner, self.outer, strict=True):
            arrays = outer.arrays_after if self.is_beside else outer.arrays
            pairs = zip([*arrays, outer.first], [*inner.arrays, inner.first], strict=True)
            found += [(value, owner, there) for value, there in pairs]
        return found


def _add_stack(
    builder: Builder, more: MoreOfBranch, inner: Stack, outer: Stack, is_owner: bool
) -> None:
    """A side's part in a stack of a loop in it, or in the other side."""
    if is_owner:
        more.outputs.append(inner.last)
        more.changed += list(zip(outer.arrays, inner.arrays, inner.arrays_after, strict=True))
        more.read.append((outer.first, inner.first))
        return
    pointer = placeholder(builder, inner.first.type, "pointer")
    more.outputs.append(pointer)
    more.read.append((outer.first, pointer))
    for array in outer.arrays:
        same = placeholder(builder, array.type, "stack")
        more.changed.append((array, same, same))


def _counting_cond(
    builder: Builder, node: Node, sides: Sequence[BranchSide], owner: int, stack: Stack
) -> Value:
    """As many entries as a loop in a side adds."""
    graphs: dict[str, Any] = {}
    count = stack.counted()
    for number, (name, side) in enumerate(zip(SIDES, sides, strict=True)):
        body = Body(builder)
        for v in side.body.parameters:
            body.parameter(v.type, name_of(v), v)
        (added,) = body.copied([count]) if number == owner else [builder.const(0)]
        graphs[name] = body.graph(name, [as_int(builder, added)])
    return builder.emit("Cond", *node.inputs, **graphs, changed=0)


@dataclass
class MoreOfBranch:
    """A side of an extended branch beyond the side that it extends: results; arrays that it
    changes, as (operand, placeholder in the copy of the side, new contents); and arrays that it
    reads, as (operand, placeholder)."""

    outputs: list[Value] = field(default_factory=list)
    changed: list[tuple[Value, Value, Value]] = field(default_factory=list)
    read: list[tuple[Value, Value]] = field(default_factory=list)


def extended_cond(
    builder: Builder, node: Node, sides: Sequence[BranchSide], more: Sequence[MoreOfBranch]
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
    builder: Builder, name: str, side: BranchSide, changed: int, more: MoreOfBranch
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
    results += body.copied(more.outputs)
    ends = body.copied([*side.ends[:changed], *(end for _, _, end in more.changed)])
    return body.graph(name, results, dict(enumerate(ends)),
                      [body.values[v].node for v in sinks])


def _back(reverse: Reverse, sides: Sequence[BranchSide], plan: _Plan, kept: _Kept) -> list[Value]:
    """The cotangents of the wanted operands, in the plan's order."""
    builder, node = reverse.builder, plan.node
    starts = {n: _start(reverse, node, plan, n) for n in plan.arrays}
    cts = {k: of_kind(ct, adjoint_type(node.out(k)).kind) for k, ct in plan.outputs.items()}
    read = [n for n, _ in enumerate(node.inputs[1:]) if any(_reads(side, n) for side in sides)]
    numbers = [n for n in plan.order if n not in plan.arrays]
    graphs: dict[str, Any] = {}
    for at, (name, side) in enumerate(zip(SIDES, sides, strict=True)):
        body = Body(builder)
        for n, start in starts.items():
            body.parameter(start.type, name_of(side.seeds[-1 - n]), side.seeds[-1 - n])
        for k, ct in cts.items():
            body.parameter(ct.type, name_of(side.seeds[k]), side.seeds[k])
        _give_kept(body, kept, at)
        for n in read:
            body.parameter(node.inputs[1 + n].type, "read", side.body.parameters[n])
        copied_after_sizes(body, list(side.totals.values()), side.sizes, side.graph)
        outputs = body.copied([side.totals[n] for n in numbers])
        ends = {k: body.copied([side.totals[n]])[0] for k, n in enumerate(starts)
                if n in side.totals}
        graphs[name] = body.graph(name, outputs, ends)
        check_sizes(node, graphs[name], side.graph)
    back = builder.emit(
        "Cond", node.inputs[0], *starts.values(), *cts.values(),
        *(value for values in kept.values for value in values),
        *(value for value, _, _ in kept.read()), *(node.inputs[1 + n] for n in read), **graphs,
        changed=len(starts)).node
    found = {n: back.out(k) for k, n in enumerate(numbers)}
    found |= {n: back.out(len(numbers) + k) for k, n in enumerate(starts)}
    return [found[n] for n in plan.order]


def _give_kept(body: Body, kept: _Kept, number: int) -> None:
    """Parameters for all that was kept; a side knows its own."""
    for other, (side, values) in enumerate(zip(kept.sides, kept.values, strict=True)):
        for there, value in zip(side.kept, values, strict=True):
            inner = body.parameter(value.type, "kept")
            if other == number:
                body.values[there] = of_kind(Term(body.builder, inner), there.type.kind)
    for value, owner, there in kept.read():
        body.parameter(value.type, "stack", there if owner == number else None)


def _start(reverse: Reverse, node: Node, plan: _Plan, number: int) -> Value:
    outer = node.inputs[1 + number]
    term = reverse.total(outer) if plan.starts_with_total(number) else plan.changed.get(number)
    if term is None:
        term = full(reverse.builder, outer.dtype.type(0), outer)
    return of_kind(term, "array")


def _reads(side: BranchSide, number: int) -> bool:
    """Whether the way back reads an operand."""
    from_seeds = {*side.kept, *side.seeds.values()}
    parameter = side.body.parameters[number]
    roots = [*side.totals.values(), *side.sizes.values()]
    return parameter not in from_seeds and (
        parameter in values_read(roots, from_seeds.__contains__))
