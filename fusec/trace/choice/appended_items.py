"""Lists that a loop of the graph appends to: what it appends is collected in arrays.

``path.append(x)`` once per iteration, in a loop of known length, writes ``x`` to row k of an array
that the loop carries.  After the loop the rows are the list's new elements; ``np.array(path)`` is
then the array itself.  The body may do nothing else with the list: Python would see it as it is
while tracing.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Container
from types import CodeType
from typing import Any

import numpy as np

from fusec.errors import ConcreteValueError
from fusec.ir import TensorType, Value
from fusec.records import dataclass, field

from ..values.array import TracedArray, from_value, number
from ..values.selected_arrays import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace
from .merge import flatten, is_number, is_traced, leaf_value, lifted, unflatten
from .regions import placeholder


class Rows(dict[Value, tuple[Value, int]]):
    """Of a trace: what loops appended, of which array."""


@dataclass
class Appended:
    """One value appended in every iteration: its leaves, by the rows that the loop carries."""

    name: str
    owner: list[Any]
    structure: Any
    leaves: list[Value]
    memory: list[Storage | None]  # of each leaf, with its version
    versions: list[int]
    keys: list[tuple[str, int]] = field(default_factory=list)

    def elements(self, trace: Trace, stacks: list[Value], k: int, start: int) -> Any:
        """What iteration ``k`` appended; views of what is older than the loop are copies that are
        not to be written."""
        return unflatten(self.structure, [
            _row(trace, stack, k, leaf.type.kind, older_roots(storage, start))
            for stack, leaf, storage in zip(stacks, self.leaves, self.memory, strict=True)])


def older_roots(storage: Storage | None, start: int) -> list[Storage]:
    """The memory from before a node that an array shows."""
    return [] if storage is None else [r for r in roots(storage) if r.born < start]


class Collector:
    """Takes the appends of one trace of a loop body."""

    def __init__(self, trace: Trace, body: Callable[..., Any], carried: Container[str]) -> None:
        self.trace = trace
        self.region = trace.record.regions[-1]
        self.uses, self.lists = _lists(body, carried)
        self.found: list[Appended] = []

    def takes(self, fn: Any, args: tuple[Any, ...]) -> bool:
        """Whether ``fn(*args)`` is such an append; it is noted and must not run."""
        name = self.lists.get(id(getattr(fn, "__self__", None)))
        if name is None or fn.__name__ != "append" or len(args) != 1 or (
                self.trace.record.regions[-1] != self.region):
            return False
        leaves, structure = flatten(args[0])
        leaves = [lifted(self.trace, leaf) for leaf in leaves]
        if not all(is_number(leaf) or is_traced(leaf) for leaf in leaves):
            return False
        values = [leaf_value(self.trace, leaf) for leaf in leaves]
        if not values or not all(v.type.is_static for v in values):
            return False
        memory = [leaf.storage if is_traced(leaf) else None for leaf in leaves]
        self.found.append(Appended(name, fn.__self__, structure, values, memory, [
            0 if s is None else s.version for s in memory]))
        return True

    def check(self, written: Container[Storage]) -> None:
        """Raise where the body does more with a list than append to it, or writes to what it
        appended."""
        for appended in self.found:
            for storage, version in zip(appended.memory, appended.versions, strict=True):
                if storage is not None and (storage.version != version or any(
                        r in written or r.stands_for is not None for r in roots(storage)
                        if r.born < self.region or r.stands_for is not None)):
                    raise ConcreteValueError(
                        "an array in a list is written in the loop that appends it",
                        loc=self.trace.loc, cure="append a copy: items.append(x.copy())")
        for name in {a.name for a in self.found}:
            if self.uses[name] != sum(a.name == name for a in self.found):
                raise ConcreteValueError(
                    f"the list {name!r} is read in a loop that appends to it", loc=self.trace.loc,
                    cure="write into an array made before the loop (x[i] = value)")

    def rows(self, count: int) -> list[tuple[tuple[str, int], Value, Value]]:
        """For each leaf a key, and a parameter for the rows with the leaf that goes into them."""
        rows = []
        for position, appended in enumerate(self.found):
            for i, leaf in enumerate(appended.leaves):
                key = f"{appended.name}.append {position}", i
                type_ = TensorType(leaf.dtype, (count, *leaf.shape), "array")
                rows.append((key, placeholder(self.trace, type_, appended.name), leaf))
                appended.keys.append(key)
        return rows


def _lists(
    body: Callable[..., Any], carried: Container[str]
) -> tuple[dict[str, int], dict[int, str]]:
    """Uses of names in the body, and lists that only one of its variables holds, by identity.

    Variables that the loop may bind are left out.
    """
    code: Any = body.__code__
    inner = {n for c in code.co_consts if isinstance(c, CodeType) for n in c.co_freevars}
    held: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, body.__closure__ or (), strict=True):
        try:
            held[name] = cell.cell_contents
        except ValueError:
            continue
    uses = dict.fromkeys(held, 0)
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_DEREF" and step.argval in uses:
            uses[step.argval] += 1
    lists = {id(x): name for name, x in held.items() if type(x) is list and name not in inner
             and name not in carried and _is_alone(name, held)}
    return uses, lists


def _is_alone(name: str, held: dict[str, Any]) -> bool:
    """Whether no other variable holds what this one does."""
    return not any(_holds(other, held[name]) for n, other in held.items() if n != name)


def _holds(container: Any, x: list[Any]) -> bool:
    if type(container) is dict:
        container = list(container.values())
    return container is x or (type(container) in (list, tuple) and any(i is x for i in container))


def _row(trace: Trace, stack: Value, k: int, kind: str, others: list[Storage]) -> Any:
    shape = stack.shape[1:]
    part = trace.emit("Slice", stack, starts=(k, *(0 for _ in shape)),
                      steps=(1,) * (1 + len(shape)), sizes=(1, *shape))
    if kind == "array":
        row = from_value(trace, trace.emit("Squeeze", part, axes=(0,)))
        if others:
            row = TracedArray(trace, Copied(trace, row.value, others))
    else:
        row = number(trace, trace.emit("Squeeze", part, axes=(0,), kind=kind))
    trace.part(Rows)[row.value] = stack, k
    return row


def restacked(trace: Trace, items: Any) -> TracedArray | None:
    """The array of which the items are all rows, in order; for items that are tuples or lists an
    array of the columns.  None for anything else."""
    if all(type(i) is TracedArray for i in items):
        rows = [trace.part(Rows).get(i.value) for i in items]
        stack = rows[0][0] if rows and rows[0] is not None else None
        whole = stack is not None and rows == [(stack, k) for k in range(stack.shape[0])]
        return from_value(trace, stack) if whole and stack is not None else None
    if not all(type(i) in (list, tuple) and len(i) == len(items[0]) for i in items):
        return None
    columns: list[Any] = [restacked(trace, [i[j] for i in items]) for j in range(len(items[0]))]
    if not columns or any(c is None or c.ndim != columns[0].ndim for c in columns):
        return None
    stacked: Any = np.stack(columns, axis=1)
    return stacked
