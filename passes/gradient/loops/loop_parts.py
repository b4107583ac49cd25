"""Loops taken apart, and loops that do the same and carry more."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, Value
from fusec.ir.uses import values_read
from fusec.ir.walks import nodes_behind
from fusec.ops import Builder, get
from fusec.ops.admission.integer_ranges import Around, Interval, interval, is_wide
from fusec.ops.derivatives import Term, refusal
from fusec.ops.regions.loop_numbers import TAPE

from ..bodies import Body, OpenedGraph, name_of, of_kind, opened
from ..dependents import dependents, is_differentiable
from .nests import Nested
from .trips import Counter, Trips, counters, trips


@dataclass
class LoopAndBody:
    """A loop and a copy of its body: ``ends`` has each carried value at the end of an
    iteration."""

    builder: Builder
    node: Node
    body: OpenedGraph
    ends: list[Value]
    counters: dict[int, Counter]
    trips: Trips | None
    name: str  # of the loop in the program that it stands for

    @classmethod
    def of(cls, builder: Builder, node: Node) -> LoopAndBody:
        graph: Graph = node.attrs["body"]
        body = opened(builder, graph)
        updates = body.new_contents(graph)
        scalars = iter(graph.outputs)
        ends = [updates.get(i, v) if v.type.kind == "array" else body.values[next(scalars)]
                for i, v in enumerate(body.parameters[: node.attrs["carried"]])]
        return cls(builder, node, body, ends, {c.position: c for c in counters(node)}, trips(node),
                   node.name)

    @property
    def carried(self) -> int:
        return len(self.ends)

    def around(self, around: Around | None) -> dict[Value, Interval]:
        """The bounds of numbers in the body."""
        known = dict(around or {})
        for position, (inner, outer) in enumerate(
                zip(self.body.parameters, self.node.inputs, strict=True)):
            if inner.shape or inner.dtype.kind not in "iu":
                continue
            counter = self.counters.get(position)
            if position >= self.carried:
                known[inner] = interval(outer, known)
            elif counter is not None and is_wide(inner.dtype):
                known[inner] = self._counted(counter, outer, known)
        return known

    def most_trips(self, around: Around) -> int | None:
        """Iterations, of the sizes that are traced, if nothing but a counter ends the loop."""
        most = None if self.trips is None or not self.trips.is_exact else self.trips.most(around)
        most = getattr(most, "hint", most)
        return most if isinstance(most, int) else None

    def number_of_trips(self, around: Around) -> int | None:
        """How often the loop runs, where that is known now."""
        ends = [] if self.trips is None else [
            interval(v, around) for v in (self.trips.start, self.trips.end)]
        is_known = all(type(low) is int and low == high for low, high in ends)
        return self.most_trips(around) if is_known else None

    def nested(self, around: Around) -> Nested:
        """The loop as one of several that are in one another."""
        return Nested(self.trips, around, [
            (c, self.node.inputs[n], self.body.parameters[n]) for n, c in self.counters.items()])

    def _counted(self, counter: Counter, start: Value, known: Around) -> Interval:
        """A counter's values in iterations."""
        low, high = interval(start, known)
        most = None if self.trips is None else self.trips.most(known)
        last = None if most is None else (most - 1) * counter.step
        if counter.step > 0:
            return low, None if None in (high, last) else high + last
        return None if None in (low, last) else low + last, high


def varied_values(parts: LoopAndBody, given: set[int]) -> set[int]:
    """The numbers of parameters that depend on those given, in some iteration."""
    inside, varied = parts.body.parameters, {
        n for n in given if is_differentiable(parts.body.parameters[n])}
    while varied:
        found = dependents(parts.ends, [inside[n] for n in varied]).values
        more = {n for n, v in enumerate(parts.ends) if v in found and is_differentiable(inside[n])}
        if more <= varied:
            break
        varied |= more
    return varied


@dataclass
class MoreOfLoop:
    """The carried values of a loop beyond those of the loop that it extends.

    ``start``: of a number that counts iterations.  ``tapes``: pairs of an array and the value that
    it keeps at that number.  ``states``: first value, its placeholder in the copy of the body, and
    its next value there.
    """

    start: Value | None = None
    tapes: Sequence[tuple[Value, Value]] = ()
    states: Sequence[tuple[Value, Value, Value]] = ()

    @property
    def firsts(self) -> list[Value]:
        count = [] if self.start is None else [self.start]
        return [*count, *(tape for tape, _ in self.tapes), *(first for first, _, _ in self.states)]

    @property
    def names(self) -> list[str]:
        """Of these: of tapes, which only the backward pass reads, and of others none."""
        return [TAPE if v in dict(self.tapes) else "" for v in self.firsts]


def extended_loop(parts: LoopAndBody, more: MoreOfLoop) -> Node:
    """The loop with more that it carries."""
    builder, node, n = parts.builder, parts.node, parts.carried
    firsts = more.firsts
    names = node.attrs.get("names") or ("",) * n
    return builder.emit(
        "Loop", *node.inputs[:n], *firsts, *node.inputs[n:], test=_extended_test(parts, firsts),
        body=_extended_body(parts, more, firsts), carried=n + len(firsts),
        names=(*names, *more.names), extends=parts.name).node


def _extended_test(parts: LoopAndBody, firsts: Sequence[Value]) -> Graph:
    old, test = parts.node.attrs["test"], Body(parts.builder)
    for k, v in enumerate(old.inputs):
        if k == parts.carried:
            _add_parameters(test, firsts)
        test.parameter(v.type, name_of(v), v)
    if len(old.inputs) == parts.carried:
        _add_parameters(test, firsts)
    return test.graph("test", test.copied(old.outputs))


def _add_parameters(body: Body, firsts: Sequence[Value]) -> list[Value]:
    return [body.parameter(first.type, "tape") for first in firsts]


def _extended_body(parts: LoopAndBody, more: MoreOfLoop, firsts: Sequence[Value]) -> Graph:
    builder, n, inside = parts.builder, parts.carried, parts.body.parameters
    body = Body(builder)
    for v in inside[:n]:
        body.parameter(v.type, name_of(v), v)
    news = _add_parameters(body, firsts)
    for (_, seed, _), new in zip(more.states, news[len(news) - len(more.states):], strict=True):
        body.values[seed] = new
    for v in inside[n:]:
        body.parameter(v.type, name_of(v), v)
    sinks = [v for m in parts.body.nodes for v in m.outputs[:1]]  # what has effects, too
    body.copied(sinks)
    ends = [*body.copied(parts.ends), *_more_ends(body, more, news)]
    arrays = [v.type.kind == "array" for v in body.inputs[: len(ends)]]
    return body.graph(
        "body", [v for v, is_array in zip(ends, arrays, strict=True) if not is_array],
        {k: v for k, v in enumerate(ends) if arrays[k]}, [body.values[v].node for v in sinks])


def _more_ends(body: Body, more: MoreOfLoop, news: Sequence[Value]) -> list[Value]:
    """The values carried beside the loop's own, at the end of an iteration."""
    builder = body.builder
    ends = [builder.emit("Add", news[0], builder.const(1))] if more.start is not None else []
    for new, (_, value) in zip(news[len(ends):], more.tapes, strict=False):
        (copy,) = body.copied([value])
        part = of_kind(Term(builder, copy), "array")
        ends.append(builder.emit("PickUpdate", new, part, news[0], axes=(0,), safe=(0,)))
    return [*ends, *body.copied([value for _, _, value in more.states])]


def counting_loop(parts: LoopAndBody, added: Sequence[Value]) -> list[Value]:
    """The sums of these numbers of each iteration, from a loop that computes nothing else.

    Raises where an effect decides how the loop goes on.
    """
    builder, node, n = parts.builder, parts.node, parts.carried
    needed = _deciding(parts, added)
    carried = [k for k in needed if k < n]
    read = [k for k in needed if k >= n]
    body, test, old = Body(builder), Body(builder), node.attrs["test"].inputs
    zeros = [builder.const(0) for _ in added]

    def add_parameters(numbers: Sequence[int]) -> None:
        for k in numbers:
            inside = parts.body.parameters[k]
            body.parameter(inside.type, name_of(old[k]), inside)
            test.parameter(old[k].type, name_of(old[k]), old[k])

    add_parameters(carried)
    totals = [body.parameter(zero.type, "count") for zero in zeros]
    for zero in zeros:
        test.parameter(zero.type, "count")
    add_parameters(read)
    ends = body.copied([parts.ends[k] for k in carried])
    ends += [builder.emit("Add", total, more)
             for total, more in zip(totals, body.copied(added), strict=True)]
    arrays = [v.type.kind == "array" for v in body.inputs[: len(ends)]]
    loop = builder.emit(
        "Loop", *(node.inputs[k] for k in carried), *zeros,
        *(node.inputs[k] for k in read), carried=len(ends), names=("count",) * len(ends),
        test=test.graph("test", test.copied(node.attrs["test"].outputs)),
        body=body.graph("count", [v for v, is_array in zip(ends, arrays, strict=True)
                                  if not is_array],
                        {k: v for k, v in enumerate(ends) if arrays[k]})).node
    return [loop.out(len(carried) + k) for k in range(len(added))]


def _deciding(parts: LoopAndBody, ends: Sequence[Value]) -> list[int]:
    """The parameters on which the test and these values depend, in any iteration."""
    old: Graph = parts.node.attrs["test"]
    inside = parts.body.parameters
    needed = set(_read(old.inputs, old.outputs))
    size = -1
    while len(needed) != size:
        size = len(needed)
        roots = [*ends, *(parts.ends[k] for k in needed if k < parts.carried)]
        _check_repeatable(parts, roots)
        needed |= set(_read(inside, roots))
    return sorted(needed)


def _check_repeatable(parts: LoopAndBody, roots: Sequence[Value]) -> None:
    for node in nodes_behind(roots):
        rows = map(get, {node.op}.union(*(g.ops for g in node.graphs)))
        if any(row.stateful and not row.checks for row in rows):  # a check holds again
            raise refusal(parts.node, "how often it runs is decided by what cannot be repeated: "
                                      f"{node.op}")


def _read(parameters: Sequence[Value], roots: Sequence[Value]) -> list[int]:
    """The numbers of the parameters behind the values."""
    read = values_read(roots)
    return [k for k, v in enumerate(parameters) if v in read]
