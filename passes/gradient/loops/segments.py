"""Loops of which not everything can be kept: segments, of which the beginnings are kept.

A loop of T iterations becomes a loop over segments of L iterations.  The forward pass keeps the
carried values at the beginning of each segment; the backward pass runs each segment again, keeps
its iterations' values in memory that the next segment uses again, and goes back.  So T / L + L
entries are kept, not T, for one more run; where that is too much still, segments have segments
(Griewank and Walther, *Evaluating Derivatives*, 2nd edition, section 12.3: multi-level plans).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, Value
from fusec.ir.uses import values_read
from fusec.ops import Builder, get

from ..bodies import Body, name_of
from ..reverse_mode import Reverse
from ..tape import UNKNOWN, bytes_of, is_of_known_size
from .loop_parts import LoopAndBody
from .stacks import LoopContext, Stack, is_beside
from .trips import Around

MOST_LEVELS = 5  # of segments in segments
MANY = 1000  # iterations, where the run says how many there are


@dataclass(frozen=True)
class SegmentPlan:
    """Segments of ``lengths[0]`` iterations, in these segments of ``lengths[1]``, and so on;
    ``rest``: bytes that an iteration may keep for itself; ``kept``: bytes in all."""

    lengths: tuple[int, ...]
    rest: int
    kept: int


def planned(trips: int | None, state: int, entry: int, budget: int) -> SegmentPlan | None:
    """How to keep no more than ``budget`` bytes, with the fewest runs; None where every iteration
    may keep its ``entry`` bytes.

    ``state``: bytes of carried values at the beginning of a segment.  Where no number of levels is
    enough, single iterations run again, whose loops may keep less in turn; else the plan is taken
    that keeps the least, where it keeps less than everything: a loop that carries a record of all
    iterations has beginnings as large as that.  ``trips`` None: the run says it; then half of the
    memory is for the iterations of a segment, unless there is enough for `MANY`.
    """
    state, entry = max(state, 1), max(entry, 1)
    if trips is None:
        length = max(budget // 2 // entry, 1)
        return None if MANY * entry <= budget else SegmentPlan((length,), budget // 2, budget)
    if trips * entry <= budget or trips < 2:
        return None
    plans = [_with_levels(trips, state, entry, budget, levels)
             for levels in range(1, MOST_LEVELS + 1)]
    fitting = [plan for plan in plans if plan.kept <= budget] or [
        plan for plan in plans if plan.lengths[-1] == 1 and plan.rest >= 0]
    least = fitting[0] if fitting else min(plans, key=lambda plan: plan.kept)
    return least if least.kept < trips * entry else None


def _with_levels(trips: int, state: int, entry: int, budget: int, levels: int) -> SegmentPlan:
    """Equal numbers of segments on each level, of which the innermost keeps iterations."""
    lengths, kept = list[int](), 0
    for level in range(levels, 0, -1):
        count = (trips * entry / state) ** (1 / (level + 1))
        length = math.ceil(trips / min(max(math.ceil(count), 1), trips))
        kept += math.ceil(trips / length) * state
        lengths.append(length)
        trips = length
        if length == 1:
            break
    return SegmentPlan(tuple(lengths), budget - kept, kept + trips * entry)


def plan_of(
    reverse: Reverse, parts: LoopAndBody, kept: Sequence[Value], inside: LoopContext
) -> SegmentPlan | None:
    """How to keep less, where keeping everything takes more memory than there is to be."""
    state = [v for n, v in enumerate(parts.body.parameters[: parts.carried])
             if n not in parts.counters]
    count, inner = parts.most_trips(inside.around), bytes_in(inside.stacks)
    if not is_beside(reverse.inside) or count == 0:
        return None
    if parts.trips is None or not parts.trips.is_exact or inner is None or (
            not all(map(is_of_known_size, state))):
        _note_everything(reverse, parts, kept, inner)
        return None
    entry = sum(map(bytes_of, kept)) + (-(-inner // count) if count else inner)
    plan = planned(count, sum(map(bytes_of, state)), entry, reverse.budget)
    if plan is not None and not may_run_again(parts.node):
        note(reverse.builder, parts.node, f"keeps {in_words(entry)} of each iteration, whatever "
             "config.gradient_memory says: it prints or draws, and so does not run again")
        plan = None
    elif plan is not None:
        note(reverse.builder, parts.node, told(plan, count, entry, reverse.budget))
    elif entry and count:
        beyond = ", more than config.gradient_memory, as beginnings of segments would be" if (
            count * entry > reverse.budget) else ""
        note(reverse.builder, parts.node,
             f"keeps {in_words(count * entry)}, of {count} iterations{beyond}")
    reverse.budget -= (count or 0) * entry if plan is None else plan.kept
    return plan


def _note_everything(
    reverse: Reverse, parts: LoopAndBody, kept: Sequence[Value], inner: int | None
) -> None:
    why = "how often loops in it run" if inner is None else (
        "how often it runs, or how much it carries")
    own = sum(map(bytes_of, kept))
    if own:
        note(reverse.builder, parts.node, f"keeps {in_words(own)} of each iteration, whatever "
             f"config.gradient_memory says: data decide {why}")


def may_run_again(node: Node) -> bool:
    """Whether running an iteration again is as if it had not: no prints, no draws."""
    rows = map(get, {op for graph in node.graphs for op in _ops(graph)})
    return not any(row.stateful and not row.checks for row in rows)


def _ops(graph: Graph) -> set[str]:
    inner = (_ops(g) for node in graph.nodes for g in node.graphs)
    return set(graph.ops).union(*inner)


def state_of(parts: LoopAndBody, roots: Sequence[Value], seeds: Sequence[Value]) -> list[Value]:
    """The carried values that iterations of the backward pass must be given."""
    read = values_read(roots, set(seeds).__contains__)
    return [v for n, v in enumerate(parts.body.parameters[: parts.carried])
            if v in read and n not in parts.counters]


def in_segments(parts: LoopAndBody, around: Around, length: int) -> LoopAndBody:
    """The loop as one over segments; ``around``: the bounds of numbers in its body."""
    builder, node, n = parts.builder, parts.node, parts.carried
    builder.loc, builder.device = node.loc, node.device
    trips, first = parts.number_of_trips(around), builder.const(0)
    total, count = _counts(parts, trips, around, length)
    body = Body(builder)
    inner = [body.parameter(v.type, name_of(v)) for v in parts.body.parameters[:n]]
    number_of = body.parameter(first.type, "segment")
    read = [body.parameter(v.type, name_of(v)) for v in parts.body.parameters[n:]]
    total_inside = body.parameter(total.type, "trips")
    body.parameter(count.type, "segments")
    some = _length(builder, trips, length, number_of, total_inside)
    loop = _inner_loop(parts, inner, read, some)
    ends = [*loop.outputs[:n], builder.emit("Add", number_of, builder.const(1))]
    whole = builder.emit(
        "Loop", *node.inputs[:n], first, *node.inputs[n:], total, count,
        test=_test(builder, body, n, len(body.inputs) - 1), body=_graph(body, "segments", ends),
        carried=n + 1, names=(*_names(node, n), "segment")).node
    result = LoopAndBody.of(builder, whole)
    result.name = parts.name
    return result


def _counts(
    parts: LoopAndBody, trips: int | None, around: Around, length: int
) -> tuple[Value, Value]:
    """How often the loop runs, and how many segments that is."""
    builder = parts.builder
    if trips is not None:
        return builder.const(trips), builder.const(-(-trips // length))
    assert parts.trips is not None
    total, most = parts.trips.count(builder), parts.trips.most(around)
    more = builder.emit("Add", total, builder.const(length - 1))
    count = builder.emit("FloorDiv", more, builder.const(length))
    if type(most) is int:  # says how much memory is enough
        count = builder.emit("Minimum", count, builder.const(-(-most // length)))
    return total, count


def _names(node: Node, count: int) -> tuple[str, ...]:
    names: Any = node.attrs.get("names") or ("",) * count
    return tuple(names)


def _length(
    builder: Builder, trips: int | None, length: int, number: Value, total: Value
) -> Value:
    """The iterations of a segment: fewer in the last one."""
    if trips is not None and trips % length == 0:
        return builder.const(length)
    before = builder.emit("Mul", number, builder.const(length))
    return builder.emit("Minimum", builder.const(length), builder.emit("Sub", total, before))


def _inner_loop(
    parts: LoopAndBody, carried: Sequence[Value], read: Sequence[Value], length: Value
) -> Node:
    """A segment: the loop's body so many times."""
    builder, old, n = parts.builder, parts.body, parts.carried
    body, first = Body(builder), builder.const(0)
    for v in old.parameters[:n]:
        body.parameter(v.type, name_of(v), v)
    done = body.parameter(first.type, "iteration")
    for v in old.parameters[n:]:
        body.parameter(v.type, name_of(v), v)
    body.parameter(length.type, "length")
    sinks = [v for m in old.nodes for v in m.outputs[:1]]  # checks, too
    body.copied(sinks)
    ends = [*body.copied(parts.ends), builder.emit("Add", done, builder.const(1))]
    return builder.emit(
        "Loop", *carried, first, *read, length,
        test=_test(builder, body, n, len(body.inputs) - 1),
        body=_graph(body, "segment", ends, [body.values[v].node for v in sinks]),
        carried=n + 1, names=(*_names(parts.node, n), "iteration")).node


def _graph(body: Body, name: str, ends: Sequence[Value], extra: Sequence[Node] = ()) -> Graph:
    """A loop's body that leaves these values among the carried ones."""
    return body.graph(
        name, [v for v, p in zip(ends, body.inputs, strict=False) if p.type.kind != "array"],
        {k: v for k, (v, p) in enumerate(zip(ends, body.inputs, strict=False))
         if p.type.kind == "array"}, extra)


def _test(builder: Builder, like: Body, left: int, right: int) -> Graph:
    """Whether one parameter is less than another."""
    test = Body(builder)
    for v in like.inputs:
        test.parameter(v.type, name_of(v))
    return test.graph("test", [builder.emit("Less", test.inputs[left], test.inputs[right])])


# ------------------------------------------------------------------------------------ in words


def bytes_in(stacks: Sequence[Stack]) -> int | None:
    """The memory of stacks; None where data decide how much it is."""
    total = sum(bytes_of(array) for stack in stacks for array in stack.arrays)
    return total if total < UNKNOWN else None


def told(plan: SegmentPlan, count: int | None, entry: int, budget: int) -> str:
    """The plan in words, with its reason."""
    would = f"{in_words(entry)} of each iteration" if count is None else (
        f"{in_words(count * entry)} of {count} iterations")
    length, levels = plan.lengths[0], len(plan.lengths)
    times = "again" if levels == 1 else f"{levels} times again"
    part = "each iteration" if length == 1 else f"each {length} iterations"
    return (f"would keep {would}, and may keep "
            f"{in_words(max(budget, 0))} (config.gradient_memory): it keeps {in_words(plan.kept)}, "
            f"the beginning of {part}, and computes the rest {times}")


def note(builder: Builder, node: Node, text: str) -> None:
    """Tell `fusec.explain` of a loop's way back."""
    where = "a loop" if node.loc is None else f"the loop at {node.loc}"
    line = f"gradients: {where} {text}"
    if line not in builder.notes:
        builder.notes.append(line)


def in_words(count: int) -> str:
    """Bytes as text: 200 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
