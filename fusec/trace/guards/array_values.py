"""Arrays from outside that Python takes the value of: a truth, a shape, an index, text.

The value is the one of the call that is traced; a guard on the array's content sees to it that only
calls with this value use the trace.
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
    """Of a trace: arrays that Python took the value of."""


def guard_content(trace: Trace, x: np.ndarray) -> None:
    """Python is about to use what is in the array; one that the trace made is a constant."""
    if not trace.active or id(x) in trace.local.arrays or id(x) in trace.part(GuardedArrays):
        return
    trace.part(GuardedArrays)[id(x)] = x, _guards(trace, x, ArrayContent)


def guard_identity(trace: Trace, x: np.ndarray) -> None:
    """Python asks which array it is (``G is H``)."""
    if trace.active and id(x) not in trace.local.arrays and -id(x) not in trace.part(GuardedArrays):
        trace.part(GuardedArrays)[-id(x)] = x, _guards(trace, x, Identity)


def _guards(trace: Trace, x: np.ndarray, by: type) -> list[Guard]:
    """For every place of the array."""
    reader, places = trace.feeds.readers.get(id(x)), trace.world.reachable.places_of(x)
    title = trace.feeds.titles.get(id(x)) or "an array from outside the function"
    found = [(p.subject, p.read) for p in places] or [(title, reader or partial(itself, x))]
    return [Guard(subject, subject.removeprefix("attribute "), read, by(x))
            for subject, read in found]


@operation
def value_of(trace: Trace, value: Value) -> Any:
    """What a value is that depends on arrays from outside alone, whose content is guarded then;
    None where arguments or effects are behind it."""
    found = constant_value(value)
    if found is not None:
        return found
    arrays = _behind(trace, value)
    if arrays is None:
        return None
    for node, array in arrays.items():
        guard_content(trace, array)
        note_constant(node, array)
    return constant_value(value)


def _behind(trace: Trace, value: Value) -> dict[Node, np.ndarray] | None:
    """The inputs behind a value, if all are arrays from outside that nothing assigns."""
    first = len(trace.feeds.inputs) - len(trace.feeds.captured)
    numbers = {v.node: i for i, v in enumerate(trace.feeds.inputs)}
    found: dict[Node, np.ndarray] = {}
    todo, seen = [value.node], set[Node]()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op != "Input":
            todo += [v.node for v in node.inputs]
            continue
        number = numbers.get(node, -1)
        if number < first:
            return None
        held = trace.feeds.captured[number - first]
        array = held() if callable(held) else held
        if type(array) is not np.ndarray:
            return None
        found[node] = array
    return found


__all__ = ["guard_content", "guard_identity", "value_of"]
