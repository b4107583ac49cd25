"""How often a loop runs, as far as that follows from its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import maximum
from fusec.ops import Builder
from fusec.ops.admission.integer_ranges import Around, interval, is_wide
from fusec.ops.regions.loop_numbers import BREAKS, ENDS, STEPS, is_and, is_or, known_truth


@dataclass(frozen=True)
class Counter:
    """A carried number that each iteration changes by the same constant."""

    position: int
    step: Any


@dataclass(frozen=True)
class Trips:
    """A loop ends when a counter has passed ``end`` (an operand or a constant of the test, or of
    the ``if`` around a ``break``).

    ``is_exact``: at no other time; else it may end before.  ``least``: iterations that there are in
    any case; ``more``: those after the counter has passed.
    """

    counter: Counter
    start: Value
    end: Value
    is_inclusive: bool
    is_exact: bool
    least: int = 0
    more: int = 0

    @property
    def is_broken_off(self) -> bool:
        """Whether the end is that of a `break`."""
        return self.least > 0 or self.more > 0

    def most(self, around: Around) -> Any:
        """A number of iterations that is not exceeded; None where none is known."""
        (low, high), (first, last) = interval(self.start, around), interval(self.end, around)
        span = (last, low) if self.counter.step > 0 else (high, first)
        if None in span:
            return None
        return self.over(span[0] - span[1])

    def over(self, distance: Any) -> Any:
        """The iterations that a counter takes for a distance."""
        step = abs(self.counter.step)
        quotient = (distance + (step if self.is_inclusive else step - 1)) // step
        return maximum(quotient, self.least) + self.more

    def count(self, builder: Builder) -> Value:
        """The number of iterations, as a Python int of the graph around."""
        pair = (self.end, self.start) if self.counter.step > 0 else (self.start, self.end)
        value = builder.emit("Sub", *(as_int(builder, v) for v in pair))
        step = abs(self.counter.step)
        more = step if self.is_inclusive else step - 1
        if more:
            value = builder.emit("Add", value, builder.const(more))
        if step != 1:
            value = builder.emit("FloorDiv", value, builder.const(step))
        return builder.emit("Maximum", value, builder.const(0))


def as_int(builder: Builder, value: Value) -> Value:
    """A number as a Python int."""
    if value.node.op == "Const":
        return builder.const(value.node.attrs["value"])
    return value if value.type.is_weak else builder.emit(
        "Cast", value, dtype=value.dtype, kind="weak")


def counters(node: Node) -> list[Counter]:
    """The counters of a loop."""
    body, carried = node.attrs["body"], node.attrs["carried"]
    scalars = [i for i, v in enumerate(body.inputs[:carried]) if v.type.kind != "array"]
    found = []
    for position, value in zip(scalars, body.outputs, strict=True):
        step = _step(value, body.inputs[position])
        if step is not None and value.dtype.kind == "i":
            found.append(Counter(position, step))
    return found


def _step(value: Value, counter: Value) -> Any:
    """The constant that is added to the counter; None where the value is something else."""
    sign = STEPS.get(value.node.op)
    if sign is None:
        return None
    a, b = value.node.inputs
    if sign > 0 and b == counter:
        a, b = b, a
    if a != counter or b.node.op != "Const" or not b.node.attrs["value"]:
        return None
    number = b.node.attrs["value"]
    number = int(number) if isinstance(number, np.integer) else number  # which would wrap
    return number if sign > 0 else -number


def trips(node: Node) -> Trips | None:
    """The trip count of the loop; None where it has no counter, or one that may wrap."""
    by_parameter = {c.position: c for c in counters(node)
                    if is_wide(node.inputs[c.position].dtype)}
    test = node.attrs["test"]
    return _ended_by(node, test.outputs[0], dict(zip(test.inputs, range(len(test.inputs)),
                                                     strict=True)), by_parameter, True)


def _ended_by(
    node: Node, value: Value, parameters: Mapping[Value, int], by_parameter: dict[int, Counter],
    is_exact: bool,
) -> Trips | None:
    test = value.node
    if test.op == "LogicalNot" and parameters.get(test.inputs[0], node.attrs["carried"]) < (
            node.attrs["carried"]):
        return _broken_off(node, parameters[test.inputs[0]], by_parameter)
    if test.op in ENDS:
        return _compared(node, test, parameters, by_parameter, is_exact)
    if test.op == "Cast" and test.inputs[0].dtype.kind == "b":
        return _ended_by(node, test.inputs[0], parameters, by_parameter, is_exact)
    if test.op == "Cond" and _is_false(test.attrs["orelse"], value.index):
        side: Graph = test.attrs["then"]
        inner = {p: parameters[v] for p, v in zip(side.inputs, test.inputs[1:], strict=True)
                 if v in parameters}
        parts = [(side.outputs[value.index], inner), (test.inputs[0], dict(parameters))]
    elif is_and(test):
        parts = [(v, dict(parameters)) for v in test.inputs[:2]]
    else:
        return None
    found = (_ended_by(node, v, p, by_parameter, False) for v, p in parts)
    return next((t for t in found if t is not None), None)


def _is_false(graph: Graph, index: int) -> bool:
    value = graph.outputs[index] if index < len(graph.outputs) else None
    return value is not None and known_truth(value) is False


def _compared(
    node: Node, test: Node, parameters: Mapping[Value, int], by_parameter: dict[int, Counter],
    is_exact: bool,
) -> Trips | None:
    left, right = test.inputs
    counter = by_parameter.get(parameters.get(left, -1))
    is_upward = test.op.startswith("Less")
    if counter is None or (counter.step > 0) != is_upward:
        return None
    end: Value | None = right if right.node.op == "Const" else None
    number = parameters.get(right, -1)
    if number >= node.attrs["carried"]:
        end = node.inputs[number]
    if end is None or end.dtype.kind != "i":
        return None
    return Trips(counter, node.inputs[counter.position], end, ENDS[test.op], is_exact)


def _broken_off(node: Node, flag: int, by_parameter: dict[int, Counter]) -> Trips | None:
    """The trip count of a loop that goes on until a carried flag is set, where a counter does."""
    body: Graph = node.attrs["body"]
    scalars = [i for i, v in enumerate(body.inputs[: node.attrs["carried"]])
               if v.type.kind != "array"]
    ends = (_break(node, reason, by_parameter, scalars)
            for reason in _reasons(body.outputs[scalars.index(flag)]))
    return next((t for t in ends if t is not None), None)


def _reasons(flag: Value) -> Iterator[Value]:
    """Of each of these a flag is true where it is."""
    node = flag.node
    if node.op == "Where" and known_truth(node.inputs[1]):
        yield node.inputs[0]
        yield from _reasons(node.inputs[2])
    elif is_or(node):
        for value in node.inputs:
            yield from _reasons(value)
    else:
        yield flag


def _break(
    node: Node, reason: Value, by_parameter: dict[int, Counter], scalars: Sequence[int]
) -> Trips | None:
    """The end of a loop that breaks off where a counter, before or after it is moved, is compared
    so."""
    test, body = reason.node, node.attrs["body"]
    if test.op not in BREAKS:
        return None
    left, right = test.inputs
    numbers = {body.outputs[scalars.index(n)]: n for n in by_parameter} | {
        body.inputs[n]: n for n in by_parameter}
    counter = by_parameter.get(numbers.get(left, -1))
    number = body.inputs.index(right) if right in body.inputs else -1
    end = right if right.node.op == "Const" else (
        node.inputs[number] if number >= node.attrs["carried"] else None)
    if counter is None or end is None or end.dtype.kind != "i":
        return None
    start, is_moved = node.inputs[counter.position], left != body.inputs[counter.position]
    if not _passes(test.op, counter, start, end, is_moved):
        return None
    return Trips(counter, start, end, BREAKS[test.op], False,
                 least=int(is_moved), more=int(not is_moved))


def _passes(op: str, counter: Counter, start: Value, end: Value, is_moved: bool) -> bool:
    """Whether a counter comes to the end by the comparison: it may pass by one that is ``==``."""
    if op != "Equal":
        return op.startswith("Greater") == (counter.step > 0)
    if counter.step != 1 or start.node.op != "Const" or end.node.op != "Const":
        return False
    return bool(start.node.attrs["value"] + is_moved <= end.node.attrs["value"])
