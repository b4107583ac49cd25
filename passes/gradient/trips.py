"""How often a loop runs, as far as that follows from its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusec.ir import Graph, Node, Value
from fusec.ir.dims import maximum
from fusec.ops import Builder
from fusec.ops.integer_ranges import Around, interval
from fusec.ops.loop_numbers import ENDS, STEPS, is_and
from fusec.records import dataclass


@dataclass(frozen=True)
class Counter:
    """A carried number that each iteration changes by the same constant."""

    position: int
    step: Any


@dataclass(frozen=True)
class Trips:
    """A loop ends when a counter has passed ``end`` (an operand or a constant of the test).

    ``is_exact``: at no other time; else it may end before.
    """

    counter: Counter
    start: Value
    end: Value
    is_inclusive: bool
    is_exact: bool

    def most(self, around: Around) -> Any:
        """A number of iterations that is not exceeded; None where none is known."""
        (low, high), (first, last) = interval(self.start, around), interval(self.end, around)
        span = (last, low) if self.counter.step > 0 else (high, first)
        if None in span:
            return None
        return maximum(self.quotient(span[0] - span[1]), 0)

    def quotient(self, distance: Any) -> Any:
        """The iterations that a counter takes for a distance; not positive where there are none."""
        step = abs(self.counter.step)
        return (distance + (step if self.is_inclusive else step - 1)) // step

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
    return number if sign > 0 else -number


def trips(node: Node) -> Trips | None:
    """What ends the loop; None where it is no counter."""
    by_parameter = {c.position: c for c in counters(node)}
    test = node.attrs["test"]
    return _ended_by(node, test.outputs[0], dict(zip(test.inputs, range(len(test.inputs)),
                                                     strict=True)), by_parameter, True)


def _ended_by(
    node: Node, value: Value, parameters: Mapping[Value, int], by_parameter: dict[int, Counter],
    is_exact: bool,
) -> Trips | None:
    test = value.node
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
    while value is not None and value.node.op == "Cast":
        value = value.node.inputs[0]
    return value is not None and value.node.op == "Const" and not value.node.attrs["value"]


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
