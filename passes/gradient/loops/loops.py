"""The backward pass of a loop: a loop over its iterations, the last first.

The loop is run as it is, with stacks: in each iteration the values that the backward pass needs by
`fusec.passes.gradient.tape`.  The loop of the backward pass carries the cotangents of carried
values, and adds up those of values read from around it; a cotangent of an array is changed in place
where the array was written or read, so that an iteration costs as much as in the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Node, TensorType, Value
from fusec.ir.uses import values_read
from fusec.ops import Builder
from fusec.ops.derivatives import Term, full, refusal
from fusec.ops.regions.loop_numbers import WAY_BACK

from ..bodies import Body, adjoint_type, check_sizes, name_of, of_kind, placeholder
from ..reverse_mode import Reverse, control_rule, pull
from ..tape import is_of_known_size, kept_values, read_by_derivatives
from .loop_parts import LoopAndBody, MoreOfLoop, counting_loop, extended_loop, varied_values
from .run_sizes import copied_after_sizes, numbers_of
from .segments import in_segments, plan_of, state_of
from .stacks import LoopContext, Stack, begin, continued, is_beside, use
from .trips import Counter


@dataclass
class _Adjoint:
    """Values that the backward pass carries: cotangents of carried values, totals of read ones."""

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
    parts = LoopAndBody.of(reverse.builder, node)
    inside, outer = _inside(parts, reverse.inside), reverse.inside
    if outer is not None and outer.lengths:
        _in_segments(reverse, parts, given, outer.lengths, outer.budget)
        return
    adjoint = _adjoint(reverse, parts, given, inside)
    if not adjoint.numbers:
        return
    kept, sizes = _kept(parts, adjoint, inside)
    is_decided = outer is not None and outer.lengths is not None
    plan = None if is_decided else plan_of(reverse, parts, kept, inside)
    if plan is not None:
        _in_segments(reverse, parts, given, plan.lengths, plan.rest)
        return
    tape = _Tape(reverse, parts, kept, inside)
    results = _Back(parts, adjoint, tape, sizes, []).loop(reverse, given)
    _deliver(reverse, parts, adjoint, results)


def _in_segments(
    reverse: Reverse, parts: LoopAndBody, given: Sequence[Term | None], lengths: Sequence[int],
    budget: int,
) -> None:
    """The backward pass by segments of the first of these lengths; of 1 it is each iteration that
    runs again, and loops in it keep as much as ``budget`` allows."""
    around = _inside(parts, reverse.inside).around
    length, rest = lengths[0], tuple(lengths[1:])
    whole = parts if length == 1 else in_segments(parts, around, length)
    inside = LoopContext(whole.around(around), again=[], budget=budget,
                         lengths=None if length == 1 else rest)
    given = [*given, None][: whole.carried]
    adjoint = _adjoint(reverse, whole, given, inside)
    if not adjoint.numbers:
        return
    state = state_of(whole, list(adjoint.totals.values()), list(adjoint.seeds.values()))
    tape = _Tape(reverse, whole, state, inside)
    results = _Back(whole, adjoint, tape, {}, inside.again or []).loop(reverse, given)
    _deliver(reverse, whole, adjoint, results)


def _inside(parts: LoopAndBody, outer: LoopContext | None) -> LoopContext:
    """The facts in the body."""
    around = {} if outer is None else outer.around
    nest = () if outer is None else outer.nest
    return LoopContext(parts.around(around), (*nest, parts.nested(around)))


def _kept(
    parts: LoopAndBody, adjoint: _Adjoint, inside: LoopContext
) -> tuple[list[Value], dict[str, Value]]:
    """The values each iteration keeps, and by name the sizes among them for the backward pass."""
    numbers = {v: n for n, v in enumerate(parts.body.parameters)}
    arrays, seeds = inside.placeholders, set(adjoint.seeds.values())

    def is_known(value: Value) -> bool:
        number = numbers.get(value, -1)
        return number >= parts.carried or number in parts.counters or value in arrays

    roots = [adjoint.totals[n] for n in adjoint.numbers]
    read = read_by_derivatives(roots, seeds)
    kept = kept_values(read, is_known)
    given = seeds.union(kept)
    sizes = numbers_of(parts.builder, parts.body, roots, given.__contains__)
    if sizes:
        kept = kept_values({*read, *sizes.values()}, is_known)
    for value in kept:
        if not is_of_known_size(value):
            raise refusal(parts.node, f"the way back needs {value.type} of each iteration, of a "
                                      "size that only the run knows")
    return kept, sizes


def _adjoint(
    reverse: Reverse, parts: LoopAndBody, given: Sequence[Term | None], body: LoopContext
) -> _Adjoint:
    """Differentiate one iteration."""
    builder, inside = reverse.builder, parts.body.parameters
    adjoint = _active(reverse, parts, given)
    results: dict[Value, Term] = {}
    for n in adjoint.numbers:
        seed = placeholder(builder, adjoint_type(inside[n]), f"ct_{name_of(inside[n])}")
        adjoint.seeds[n] = seed
        value, term = parts.ends[n] if n < parts.carried else inside[n], Term(builder, seed)
        results[value] = results[value] + term if value in results else term
    totals = pull(builder, results, [inside[n] for n in adjoint.numbers], body)
    builder.loc = parts.node.loc
    for n, total in zip(adjoint.numbers, totals, strict=True):
        term = full(builder, inside[n].dtype.type(0), inside[n]) if total is None else total
        adjoint.totals[n] = of_kind(term, adjoint.seeds[n].type.kind)
    return adjoint


def _active(reverse: Reverse, parts: LoopAndBody, given: Sequence[Term | None]) -> _Adjoint:
    """Of which values cotangents are wanted, and reach them: fixed points over iterations."""
    inside, operands = parts.body.parameters, parts.node.inputs
    varied = varied_values(parts, {n for n, v in enumerate(operands)
                                   if v in reverse.dependents.values})
    useful = {n for n, ct in enumerate(given) if ct is not None}
    size = -1
    while len(useful) != size:
        size = len(useful)
        ends = [parts.ends[n] for n in useful if n < parts.carried]
        read = values_read(ends)
        useful |= {n for n, v in enumerate(inside) if v in read}
    numbers = sorted(varied & useful)
    return _Adjoint([n for n in numbers if n < parts.carried],
                    [n for n in numbers if n >= parts.carried])


# ------------------------------------------------------------------------------ the way there


class _Tape:
    """The loop with stacks: its own, for the values that each iteration keeps, and those of loops
    inside of it.  ``count``: how often the loop runs."""

    def __init__(
        self, reverse: Reverse, parts: LoopAndBody, kept: Sequence[Value], inside: LoopContext
    ) -> None:
        self.parts, self.kept, self.builder = parts, kept, reverse.builder
        self.is_beside = is_beside(reverse.inside)
        self.inner = inside.stacks
        around = {} if reverse.inside is None else reverse.inside.around
        self.builder.loc, self.builder.device = parts.node.loc, parts.node.device
        self.exact = parts.trips if parts.trips is not None and parts.trips.is_exact else None
        self._counts: list[Value] | None = None
        self.outer: list[Stack] = []
        self.own = Stack([v.type for v in kept], lambda: self._counted(0))
        if kept:
            begin(self.builder, self.own, reverse.inside, parts.nested(around))
        else:
            self.own.pointer = self.builder.const(0)
        for number, stack in enumerate(self.inner, 1):
            self.outer.append(continued(self.builder, stack, reverse.inside,
                                        self._count_of(number)))
        self.count = self._extend()

    def _count_of(self, number: int) -> Callable[[], Value]:
        return lambda: self._counted(number)

    def _counted(self, number: int) -> Value:
        """How many entries the loop adds, by counting: number 0 is its own stack, then those
        inside."""
        if not number and self.exact is not None:
            return self.exact.count(self.builder)
        if self._counts is None:
            one = self.builder.const(1)
            self._counts = counting_loop(
                self.parts, [one, *(stack.counted() for stack in self.inner)])
        return self._counts[number]

    def _extend(self) -> Value:
        """Make the loop; how often it runs."""
        if not self.kept and not self.inner and self.exact is not None:
            return self.exact.count(self.builder)
        states = []
        for inner, outer in zip(self.inner, self.outer, strict=True):
            states += list(zip(outer.arrays, inner.arrays, inner.arrays_after, strict=True))
            states.append((outer.first, inner.first, inner.last))
        tapes = list(zip(self.own.arrays, self.kept, strict=True))
        loop = extended_loop(self.parts, MoreOfLoop(self.own.first, tapes, states))
        results = iter(loop.outputs[self.parts.carried:])
        self.own.pointer_after = next(results)
        self.own.arrays_after = [next(results) for _ in tapes]
        for outer in self.outer:
            outer.arrays_after = [next(results) for _ in outer.arrays]
            outer.pointer_after = next(results)
        if self.exact is not None:
            return self.exact.count(self.builder)
        return self.builder.emit("Sub", self.own.last, self.own.first)

    def read(self, stack: Stack) -> list[Value]:
        """The arrays of a stack for the way back, when everything has been added."""
        return stack.arrays_after if self.is_beside else stack.arrays


# ------------------------------------------------------------------------------ the way back


@dataclass
class _Back:
    """The loop of the way back."""

    parts: LoopAndBody
    adjoint: _Adjoint
    tape: _Tape
    sizes: dict[str, Value]  # by name, what the way back learns them from
    again: Sequence[Stack]  # memory that each iteration uses anew

    def loop(self, reverse: Reverse, given: Sequence[Term | None]) -> list[Value]:
        """Its results: the cotangents of carried values, then the totals of others."""
        builder, adjoint = reverse.builder, self.adjoint
        builder.loc, builder.device = self.parts.node.loc, self.parts.node.device
        first = builder.emit("Sub", self.tape.count, builder.const(1))
        starts = [self._start(reverse, given, n) for n in adjoint.numbers]
        body, test = Body(builder), Body(builder)
        index = body.parameter(first.type, "iteration")
        test.parameter(first.type, "iteration")
        seeds = [adjoint.seeds[n] for n in adjoint.numbers]
        memory = [array for stack in self.again for array in stack.arrays]
        room = [_room(builder, stack, reverse.inside) for stack in self.again]
        starts += [array for stack in room for array in stack.arrays]
        for seed, start in zip((*seeds, *memory), starts, strict=True):
            body.parameter(start.type, name_of(seed), seed)
            test.parameter(start.type, name_of(seed))
        outer = self._others(body, index)
        for value in outer:
            test.parameter(value.type, name_of(value))
        roots = [*(adjoint.totals[n] for n in adjoint.numbers),
                 *(array for stack in self.again for array in stack.arrays_after)]
        ends = copied_after_sizes(body, roots, self.sizes,
                                  self.parts.node.attrs["body"])
        outputs = [builder.emit("Sub", index, builder.const(1))]
        outputs += [v for v in ends if v.type.kind != "array"]
        updates = {k: v for k, v in enumerate(ends, 1) if v.type.kind == "array"}
        go_on = builder.emit("GreaterEqual", test.inputs[0], builder.const(0))
        back = body.graph(WAY_BACK, outputs, updates)
        check_sizes(self.parts.node, back, self.parts.node.attrs["body"])
        names = ("iteration", *map(name_of, (*seeds, *memory)))
        loop = builder.emit(
            "Loop", first, *starts, *outer, test=test.graph("test", [go_on]),
            body=back, carried=1 + len(starts), names=names)
        results = iter(loop.node.outputs[1:])
        found = [next(results) for _ in seeds]
        for stack in room:
            stack.arrays_after = [next(results) for _ in stack.arrays]
        return found

    def _start(self, reverse: Reverse, given: Sequence[Term | None], number: int) -> Value:
        """A cotangent before the last iteration; a total so far."""
        builder, outer = reverse.builder, self.parts.node.inputs[number]
        term = given[number] if number < self.parts.carried else reverse.total(outer)
        if number >= self.parts.carried and outer in self.parts.node.inputs[:number]:
            term = None  # it stands among the operands twice
        if term is None:
            term = full(builder, outer.dtype.type(0), outer)
        return of_kind(term, self.adjoint.seeds[number].type.kind)

    def _others(self, body: Body, index: Value) -> list[Value]:
        """Give the body parameters for stacks and its other operands; these."""
        return [*self._own_entries(body, index), *self._inner_stacks(body),
                *self._parameters(body, index)]

    def _own_entries(self, body: Body, index: Value) -> list[Value]:
        """The entries of the iteration."""
        builder, stack = self.parts.builder, self.tape.own
        arrays = self.tape.read(stack)
        stored = [body.parameter(array.type, "kept") for array in arrays]
        place, outer = index, list(arrays)
        if stored and stack.first.node.op != "Const":
            place = builder.emit("Add", body.parameter(stack.first.type, "pointer"), index)
            outer.append(stack.first)
        for value, array in zip(self.tape.kept, stored, strict=True):
            part = builder.emit("Pick", array, place, axes=(0,), safe=(0,),
                                kind="array" if value.type.kind == "array" else "scalar")
            body.values[value] = of_kind(Term(builder, part), value.type.kind)
        return outer

    def _inner_stacks(self, body: Body) -> list[Value]:
        """The stacks of loops inside."""
        result = []
        for inner, outer in zip(self.tape.inner, self.tape.outer, strict=True):
            for array, value in zip(inner.arrays, self.tape.read(outer), strict=True):
                body.parameter(value.type, "stack", array)
                result.append(value)
        return result

    def _parameters(self, body: Body, index: Value) -> list[Value]:
        """Values that the loop reads from around it, and its counters' first ones."""
        builder, inside = self.parts.builder, self.parts.body.parameters
        outer: list[Value] = []
        for n in self._needed_parameters():
            operand = self.parts.node.inputs[n]
            outer.append(operand)
            if n >= self.parts.carried:
                body.parameter(operand.type, name_of(inside[n]), inside[n])
            else:
                start = body.parameter(operand.type, name_of(inside[n]))
                body.values[inside[n]] = _replayed(
                    builder, start, index, self.parts.counters[n], inside[n].type)
        return outer

    def _needed_parameters(self) -> list[int]:
        """The parameters of the body that the way back reads."""
        known = {*self.tape.kept, *self.adjoint.seeds.values()}
        roots = [*(self.adjoint.totals[n] for n in self.adjoint.numbers), *self.sizes.values()]
        read = values_read(roots, known.__contains__)
        return [n for n, v in enumerate(self.parts.body.parameters)
                if v in read and v not in known]


def _room(builder: Builder, stack: Stack, inside: LoopContext | None) -> Stack:
    """Memory for the values of iterations that run again."""
    room = Stack(stack.entries, stack.counted)
    use(builder, room, stack.arrays[0].shape[0], inside)
    return room


def _replayed(
    builder: Builder, start: Value, index: Value, counter: Counter, type_: TensorType
) -> Value:
    """The value of a counter in an iteration."""
    by = index if counter.step == 1 else builder.emit("Mul", index, builder.const(int(
        counter.step)))
    if not start.type.is_weak:
        by = builder.emit("Cast", by, dtype=start.dtype)
    value = builder.emit("Add", start, by)
    return of_kind(Term(builder, value), type_.kind)


def _deliver(
    reverse: Reverse, parts: LoopAndBody, adjoint: _Adjoint, results: Sequence[Value]
) -> None:
    """Hand the operands the cotangents at the loop's beginning."""
    operands = parts.node.inputs
    for n, value in zip(adjoint.numbers, results, strict=True):
        outer, term = operands[n], Term(reverse.builder, value)
        if outer not in reverse.dependents.values:
            continue
        if n >= parts.carried and outer not in operands[:n]:
            reverse.totals[outer] = term  # it began with the total so far
        else:
            reverse.add(outer, term)
