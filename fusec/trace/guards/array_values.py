"""Arrays from outside whose content Python reads while tracing (as a truth, an index, text), and
which of the program's arrays are one: ``a is b``.

The trace then depends on the content, so a guard ensures that only calls with equal content use it.
An array of the program's own, an argument or one from outside, has one handle in a trace, wherever
it is found.  Two handles are two arrays: of outside that is guarded, of arguments the launcher sees
to it, and those that share memory have another key.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import is_static

from ..facts.constant_values import constant_value, note_constant
from ..values.array import TracedArray
from ..values.operations import operation
from ..values.trace import Trace
from .contents import ArrayContent
from .guard import Guard, itself
from .measures import Identity
from .relations import Relation


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


@dataclass(frozen=True)
class Handle:
    """The program's stand-in for an array; ``read`` finds it at each call, None for an argument."""

    array: TracedArray
    title: str
    read: Callable[[], Any] | None


class Handles:
    """Of a trace: the handles by the arrays' keys, and by their ids."""

    def __init__(self) -> None:
        self.by_array: dict[Any, TracedArray] = {}
        self.known: dict[int, Handle] = {}
        self.apart: set[tuple[int, int]] = set()  # arguments, by input, that are to be two arrays

    def is_one(self, x: TracedArray) -> bool:
        """Whether it stands for an array from outside, and is not a view of one."""
        return id(x) in self.known

    def of(self, key: Any, make: Callable[[], TracedArray], title: str = "",
           read: Callable[[], Any] | None = None) -> TracedArray:
        """The handle for this key, made when it is first asked for."""
        handle = self.by_array.get(key)
        if handle is None:
            handle = self.by_array[key] = make()
            self.known[id(handle)] = Handle(handle, title, read)
        return handle


class Different(Relation):
    """Two places that must go on to hold different arrays: the guard reads whether they do."""

    __slots__ = ()

    def matches(self, value: bool) -> bool:
        return bool(value)

    def text(self) -> str:
        return "another array than another name"


def handle_of(
    trace: Trace, x: np.ndarray, make: Callable[[], TracedArray]
) -> TracedArray:
    """That of an array from outside."""
    read = trace.feeds.readers.get(id(x)) or partial(itself, x)
    title = trace.feeds.titles.get(id(x)) or "an array from outside the function"
    return trace.part(Handles).of(id(x), make, title, read)


def note_distinct(trace: Trace, a: Any, b: Any) -> None:
    """``a is b`` is False: see to it that it is in each call."""
    handles = trace.part(Handles)
    one, other = handles.known.get(id(a)), handles.known.get(id(b))
    if a is b or one is None or other is None or _differ(a, b):
        return
    if one.read is not None and other.read is not None:
        first, second = one.read, other.read
        trace.world.guards[id(a), f"is not {id(b)}"] = Guard(
            one.title, one.title, lambda: first() is not second(), Different())
    elif one.read is None and other.read is None:
        handles.apart.add((a.storage.origin, b.storage.origin))
    else:
        raise unsupported("'is' of an argument and an array from outside", loc=trace.loc,
                          cure="pass both, or compare what tells them apart")


def _differ(a: TracedArray, b: TracedArray) -> bool:
    """Whether the key, and guards of layouts, tell them apart."""
    known = is_static(a.shape) and is_static(b.shape)
    return a.dtype != b.dtype or a.ndim != b.ndim or (known and a.shape != b.shape)


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
