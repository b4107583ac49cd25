"""Arrays from outside whose content Python reads while tracing: as a truth, an index, text.

The trace then depends on the content, so a guard ensures that only calls with equal content use it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fusec.ir import Node, Value

from ..facts.constant_values import constant_value, note_constant
from ..values.operations import operation
from ..values.trace import Trace
from .contents import ArrayContent
from .guard import Guard, itself
from .measures import Identity


class GuardedArrays(dict[int, tuple[np.ndarray, list[Guard]]]):
    """Of a trace: arrays from outside that have guards of their own."""


def guard_content(trace: Trace, x: np.ndarray) -> None:
    """Guard the content of an array that Python is about to read; one that the trace made is a
    constant."""
    if not trace.active or id(x) in trace.local.arrays or id(x) in trace.part(GuardedArrays):
        return
    trace.part(GuardedArrays)[id(x)] = x, _guards(trace, x, ArrayContent)


def guard_identity(trace: Trace, x: np.ndarray) -> None:
    """Guard which array it is, for ``G is H``."""
    if trace.active and id(x) not in trace.local.arrays and -id(x) not in trace.part(GuardedArrays):
        trace.part(GuardedArrays)[-id(x)] = x, _guards(trace, x, Identity)


def _guards(trace: Trace, x: np.ndarray, by: type) -> list[Guard]:
    """A guard for every place that holds the array."""
    reader, places = trace.feeds.readers.get(id(x)), trace.world.reachable.places_of(x)
    title = trace.feeds.titles.get(id(x)) or "an array from outside the function"
    readers = [(p.subject, p.read) for p in places] or [(title, reader or partial(itself, x))]
    return [Guard(subject, subject.removeprefix("attribute "), read, by(x))
            for subject, read in readers]


@operation
def value_of(trace: Trace, value: Value) -> Any:
    """The content of a value that depends on no argument and no effect, else None.  Arrays from
    outside that it depends on get guards."""
    constant = constant_value(value)
    if constant is not None:
        return constant
    arrays = _outside_inputs(trace, value)
    if arrays is None:
        return None
    for node, array in arrays.items():
        guard_content(trace, array)
        note_constant(node, array)
    return constant_value(value)


def _outside_inputs(trace: Trace, value: Value) -> dict[Node, np.ndarray] | None:
    """The inputs that a value depends on, if all are arrays from outside that nothing assigns."""
    first = len(trace.feeds.inputs) - len(trace.feeds.captured)
    numbers = {v.node: i for i, v in enumerate(trace.feeds.inputs)}
    arrays: dict[Node, np.ndarray] = {}
    todo, visited = [value.node], set[Node]()
    while todo:
        node = todo.pop()
        if node in visited:
            continue
        visited.add(node)
        if node.op != "Input":
            todo += [v.node for v in node.inputs]
            continue
        number = numbers.get(node, -1)
        if number < first:
            return None
        source = trace.feeds.captured[number - first]
        array = source() if callable(source) else source
        if type(array) is not np.ndarray:
            return None
        arrays[node] = array
    return arrays
