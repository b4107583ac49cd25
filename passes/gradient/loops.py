"""The way back through a loop: a loop over its iterations, the last first.

The loop is run as it is, with a tape: for each iteration what `fusec.passes.gradient.tape` says the
way back must be given.  The loop of the way back carries the cotangents of what the loop carries,
and adds up those of what it reads from around it; a cotangent of an array is changed in place where
the array was written or read, so that an iteration costs what it costs on the way there.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.dims import Dim
from fusec.ir.walks import nodes_behind
from fusec.ops import Builder
from fusec.ops.derivatives import Term, full, refusal
from fusec.records import dataclass, field

from .bodies import Body, Opened, adjoint_type, name_of, of_kind, opened, placeholder
from .dependents import dependents, is_differentiable
from .reverse import Reverse, control_rule, pull
from .tape import kept_values, read_by_derivatives
from .trips import Around, Counter, Trips, counters, interval, trips


@dataclass
class LoopParts:
    """A loop and a copy of its body: ``ends`` is what each carried value is at the end of an
    iteration."""

    builder: Builder
    node: Node
    body: Opened
    ends: list[Value]
    counters: dict[int, Counter]
    trips: Trips | None

    @classmethod
    def of(cls, builder: Builder, node: Node) -> LoopParts:
        graph: Graph = node.attrs["body"]
        body = opened(builder, graph)
        updates = body.new_contents(graph)
        scalars = iter(graph.outputs)
        ends = [updates.get(i, v) if v.type.kind == "array" else body.values[next(scalars)]
                for i, v in enumerate(body.parameters[: node.attrs["carried"]])]
        return cls(builder, node, body, ends, {c.position: c for c in counters(node)}, trips(node))

    @property
    def carried(self) -> int:
        return len(self.ends)

    def around(self, around: Around | None) -> dict[Value, tuple[object, object]]:
        """What is known of numbers in the body."""
        known = dict(around or {})
        for position, (inner, outer) in enumerate(
                zip(self.body.parameters, self.node.inputs, strict=True)):
            if inner.shape or inner.dtype.kind not in "iu":
                continue
            counter = self.counters.get(position)
            if position >= self.carried:
                known[inner] = interval(outer, known)
            elif counter is not None:
                known[inner] = self._counted(counter, outer, known)
        return known

    def _counted(self, counter: Counter, start: Value, known: Around) -> tuple[object, object]:
        """A counter's values in iterations."""
        low, high = interval(start, known)
        most = None if self.trips is None else self.trips.most(known)
        last = None if most is None else (most - 1) * counter.step
        if counter.step > 0:
            return low, None if None in (high, last) else high + last
        return None if None in (low, last) else low + last, high


@dataclass
class _Adjoint:
    """What the way back carries: cotangents of carried values, and totals of what is read."""

    carried: list[int]
    read: list[int]
    seeds: dict[int, Value] = field(default_factory=dict)  # placeholders, by parameter
    totals: dict[int, Value] = field(default_factory=dict)  # after an iteration

    @property
    def numbers(self) -> list[int]:
        return [*self.carried, *self.read]


@control_rule("Loop")
def reverse_loop(reverse: Reverse, node: Node, given: Sequence[Term | None]) -> None:
    """Add to the totals of the loop's operands."""
    builder = reverse.builder
    parts = LoopParts.of(builder, node)
    adjoint = _adjoint(reverse, parts, given)
    if not adjoint.numbers:
        return
    seeds = [adjoint.seeds[n] for n in adjoint.numbers]
    roots = [adjoint.totals[n] for n in adjoint.numbers]
    parameters = {v: n for n, v in enumerate(parts.body.parameters)}
    replayed = parts.counters

    def is_known(value: Value) -> bool:
        number = parameters.get(value, -1)
        return number >= parts.carried or number in replayed

    kept = kept_values(read_by_derivatives(roots, seeds), is_known)
    count, tapes = _taped(parts, kept, reverse.around)
    back = _Back(parts, adjoint, kept)
    results = back.loop(reverse, given, count, tapes)
    _deliver(reverse, parts, adjoint, results)


def _adjoint(reverse: Reverse, parts: LoopParts, given: Sequence[Term | None]) -> _Adjoint:
    """Differentiate one iteration."""
    builder, inside = reverse.builder, parts.body.parameters
    adjoint = _active(reverse, parts, given)
    results: dict[Value, Term] = {}
    for n in adjoint.numbers:
        seed = placeholder(builder, adjoint_type(inside[n]), f"ct_{name_of(inside[n])}")
        adjoint.seeds[n] = seed
        value, term = parts.ends[n] if n < parts.carried else inside[n], Term(builder, seed)
        results[value] = results[value] + term if value in results else term
    totals = pull(builder, results, [inside[n] for n in adjoint.numbers],
                  parts.around(reverse.around))
    builder.loc = parts.node.loc
    for n, total in zip(adjoint.numbers, totals, strict=True):
        term = full(builder, inside[n].dtype.type(0), inside[n]) if total is None else total
        adjoint.totals[n] = of_kind(term, adjoint.seeds[n].type.kind)
    return adjoint


def _active(reverse: Reverse, parts: LoopParts, given: Sequence[Term | None]) -> _Adjoint:
    """Of which values cotangents are wanted, and reach them: fixed points over iterations."""
    inside, operands = parts.body.parameters, parts.node.inputs
    varied = varied_values(parts, {n for n, v in enumerate(operands)
                                   if v in reverse.found.values})
    useful = {n for n, ct in enumerate(given) if ct is not None}
    size = -1
    while len(useful) != size:
        size = len(useful)
        ends = [parts.ends[n] for n in useful if n < parts.carried]
        read = {v for node in nodes_behind(ends) for v in node.inputs} | set(ends)
        useful |= {n for n, v in enumerate(inside) if v in read}
    numbers = sorted(varied & useful)
    return _Adjoint([n for n in numbers if n < parts.carried],
                    [n for n in numbers if n >= parts.carried])


def varied_values(parts: LoopParts, given: set[int]) -> set[int]:
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


# ------------------------------------------------------------------------------ the way there


def _taped(
    parts: LoopParts, kept: Sequence[Value], around: Around | None
) -> tuple[Value, list[Value]]:
    """How often the loop runs, and the tapes of the values, which a loop like it keeps."""
    builder, node = parts.builder, parts.node
    builder.loc, builder.device = node.loc, node.device
    exact = parts.trips if parts.trips is not None and parts.trips.is_exact else None
    if not kept and exact is not None:
        return exact.count(builder), []
    tapes = [_empty_tape(parts, value, around) for value in kept]
    taped = extended_loop(parts, More(True, list(zip(tapes, kept, strict=True))))
    count = taped.out(parts.carried) if exact is None else exact.count(builder)
    return count, [taped.out(parts.carried + 1 + k) for k in range(len(kept))]


def _empty_tape(parts: LoopParts, value: Value, around: Around | None) -> Value:
    """Memory for the value in each iteration."""
    if any(isinstance(n, Dim) and n.symbols for n in value.shape):
        raise refusal(parts.node, f"the way back needs {value.type} of each iteration, of a size "
                                  "that only the run knows")
    most = None if parts.trips is None else parts.trips.most(around or {})
    if most is None:
        raise refusal(parts.node, "how often it runs is known at no time before it has run")
    zero = parts.builder.const(value.dtype.type(0))
    return parts.builder.emit("BroadcastTo", zero, shape=(most, *value.shape))


@dataclass
class More:
    """What a loop carries beside what the loop carries that it extends.

    ``counts``: whether the number of iterations, from 0.  ``tapes``: pairs of an array and the
    value that it keeps at that number.  ``states``: first value, its placeholder in the copy of the
    body, and its next value there.
    """

    counts: bool = False
    tapes: Sequence[tuple[Value, Value]] = ()
    states: Sequence[tuple[Value, Value, Value]] = ()

    def firsts(self, builder: Builder) -> list[Value]:
        count = [builder.const(0)] if self.counts else []
        return [*count, *(tape for tape, _ in self.tapes), *(first for first, _, _ in self.states)]


def extended_loop(parts: LoopParts, more: More) -> Node:
    """The loop with more that it carries."""
    builder, node, n = parts.builder, parts.node, parts.carried
    firsts = more.firsts(builder)
    names = node.attrs.get("names") or ("",) * n
    return builder.emit(
        "Loop", *node.inputs[:n], *firsts, *node.inputs[n:], test=_extended_test(parts, firsts),
        body=_extended_body(parts, more, firsts), carried=n + len(firsts),
        names=(*names, *("tape",) * len(firsts)), extends=node.name).node


def _extended_test(parts: LoopParts, firsts: Sequence[Value]) -> Graph:
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


def _extended_body(parts: LoopParts, more: More, firsts: Sequence[Value]) -> Graph:
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


def _more_ends(body: Body, more: More, news: Sequence[Value]) -> list[Value]:
    """What is carried beside the loop's own, at the end of an iteration."""
    builder = body.builder
    ends = [builder.emit("Add", news[0], builder.const(1))] if more.counts else []
    for new, (_, value) in zip(news[len(ends):], more.tapes, strict=False):
        (copy,) = body.copied([value])
        part = of_kind(Term(builder, copy), "array")
        ends.append(builder.emit("PickUpdate", new, part, news[0], axes=(0,), safe=(0,)))
    return [*ends, *body.copied([value for _, _, value in more.states])]


# ------------------------------------------------------------------------------ the way back


@dataclass
class _Back:
    """The loop of the way back."""

    parts: LoopParts
    adjoint: _Adjoint
    kept: Sequence[Value]

    def loop(
        self, reverse: Reverse, given: Sequence[Term | None], count: Value,
        tapes: Sequence[Value],
    ) -> list[Value]:
        """Its results: the cotangents of carried values, then the totals of others."""
        builder, adjoint = reverse.builder, self.adjoint
        builder.loc, builder.device = self.parts.node.loc, self.parts.node.device
        first = builder.emit("Sub", count, builder.const(1))
        starts = [self._start(reverse, given, n) for n in adjoint.numbers]
        body, test = Body(builder), Body(builder)
        index = body.parameter(first.type, "iteration")
        test.parameter(first.type, "iteration")
        for n, start in zip(adjoint.numbers, starts, strict=True):
            body.parameter(start.type, name_of(adjoint.seeds[n]), adjoint.seeds[n])
            test.parameter(start.type, name_of(adjoint.seeds[n]))
        outer = [*tapes, *self._others(body, tapes, index)]
        for value in outer:
            test.parameter(value.type, name_of(value))
        ends = body.copied([adjoint.totals[n] for n in adjoint.numbers])
        outputs = [builder.emit("Sub", index, builder.const(1))]
        outputs += [v for v in ends if v.type.kind != "array"]
        updates = {k: v for k, v in enumerate(ends, 1) if v.type.kind == "array"}
        go_on = builder.emit("GreaterEqual", test.inputs[0], builder.const(0))
        names = ("iteration", *(name_of(adjoint.seeds[n]) for n in adjoint.numbers))
        loop = builder.emit(
            "Loop", first, *starts, *outer, test=test.graph("test", [go_on]),
            body=body.graph("back", outputs, updates), carried=1 + len(starts), names=names)
        return [loop.node.out(1 + k) for k in range(len(starts))]

    def _start(self, reverse: Reverse, given: Sequence[Term | None], number: int) -> Value:
        """A cotangent before the last iteration; a total so far."""
        builder, outer = reverse.builder, self.parts.node.inputs[number]
        term = given[number] if number < self.parts.carried else reverse.totals.get(outer)
        if number >= self.parts.carried and outer in self.parts.node.inputs[:number]:
            term = None  # it stands among the operands twice
        if term is None:
            term = full(builder, outer.dtype.type(0), outer)
        return of_kind(term, self.adjoint.seeds[number].type.kind)

    def _others(self, body: Body, tapes: Sequence[Value], index: Value) -> list[Value]:
        """Give the body tapes and what else it reads; the operands that the latter are."""
        builder, inside = self.parts.builder, self.parts.body.parameters
        stored = [body.parameter(tape.type, "tape") for tape in tapes]
        needed = self._needed_parameters()
        outer: list[Value] = []
        starts: dict[int, Value] = {}
        for n in needed:
            operand = self.parts.node.inputs[n]
            outer.append(operand)
            if n < self.parts.carried:
                starts[n] = body.parameter(operand.type, name_of(inside[n]))
            else:
                body.parameter(operand.type, name_of(inside[n]), inside[n])
        for n, start in starts.items():
            body.values[inside[n]] = _replayed(builder, start, index, self.parts.counters[n],
                                               inside[n].type)
        for value, tape in zip(self.kept, stored, strict=True):
            part = builder.emit("Pick", tape, index, axes=(0,), safe=(0,),
                                kind="array" if value.type.kind == "array" else "scalar")
            body.values[value] = of_kind(Term(builder, part), value.type.kind)
        return outer

    def _needed_parameters(self) -> list[int]:
        """The parameters of the body that the way back reads."""
        known = {*self.kept, *self.adjoint.seeds.values()}
        roots = [self.adjoint.totals[n] for n in self.adjoint.numbers]
        nodes = nodes_behind(roots, known.__contains__)
        read = {v for node in nodes for v in node.inputs} | set(roots)
        return [n for n, v in enumerate(self.parts.body.parameters)
                if v in read and v not in known]


def _replayed(
    builder: Builder, start: Value, index: Value, counter: Counter, type_: TensorType
) -> Value:
    """What a counter is in an iteration."""
    by = index if counter.step == 1 else builder.emit("Mul", index, builder.const(int(
        counter.step)))
    if not start.type.is_weak:
        by = builder.emit("Cast", by, dtype=start.dtype)
    value = builder.emit("Add", start, by)
    return of_kind(Term(builder, value), type_.kind)


def _deliver(
    reverse: Reverse, parts: LoopParts, adjoint: _Adjoint, results: Sequence[Value]
) -> None:
    """Hand the operands what arrived at the loop's beginning."""
    operands = parts.node.inputs
    for n, value in zip(adjoint.numbers, results, strict=True):
        outer, term = operands[n], Term(reverse.builder, value)
        if outer not in reverse.found.values:
            continue
        if n >= parts.carried and outer not in operands[:n]:
            reverse.totals[outer] = term  # it began with the total so far
        else:
            reverse.add(outer, term)
