"""Variables that a branch or loop may leave without a value.

They become a `Choice` between a value and none, unless what follows reads them in any case: then a
check is made at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fusec.errors import unsupported
from fusec.ir import Graph, Node, Value
from fusec.ops import get

from ..values.array import TracedArray, number
from ..values.storage import ViewStep
from ..values.trace import Trace
from .choice import UNBOUND, Absent, Choice, unbound
from .containers import kept
from .merge import flatten, is_number, is_traced, leaf_value, unflatten
from .optional import zeros_like
from .regions import Region
from .sides import Pairs, Side

_PLAIN = ("elementwise", "view", "source", "reduce", "fold", "composite")
_INTERNAL = "_fusec_"  # the converter's own variables are read where they are bound


class UnboundReads(set[str]):
    """Of a trace: variables that were read without a value."""


def is_users(name: str) -> bool:
    """Whether it is a variable of the program's own, not an attribute, nor the converter's."""
    return name.isidentifier() and not name.startswith(_INTERNAL)


def check_bound(
    trace: Trace, test: Value, sides: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> None:
    """Raise as Python does where the side that leaves a variable unbound is taken."""
    for name in names:
        missing = [side.get(name, UNBOUND) is UNBOUND for side in sides]
        if missing[0] != missing[1]:
            trace.part(UnboundReads).add(name)
            holds = trace.emit("LogicalNot", test) if missing[0] else test
            trace.check(holds, unbound(name))


def half_bound(
    trace: Trace, test: Value, name: str, a: Any, b: Any, sides: Sequence[Side], pairs: Pairs
) -> Choice:
    """What a variable is after a branch of which one side leaves it unbound."""
    side, value = (1, b) if a is UNBOUND else (0, a)
    inner: Any = False
    if type(value) is Choice and value.name == name:
        inner, value = value.test, value.orelse
    missing: Any = number(trace, test if side else trace.emit("LogicalNot", test))
    if inner is not False:
        missing = pairs.leaf(True, inner) if side else pairs.leaf(inner, True)
    leaves, structure = flatten(value)
    region = sides[side].region
    shared = _storages(sides[side].variables)

    def exported(leaf: Any) -> Any:
        """Computed in its side alone, where nothing else shows its memory."""
        if not is_traced(leaf) or region.is_outer(leaf.origin) or (
                leaf.storage is not None and not _is_own(leaf, shared, region.start)):
            return leaf
        zeros = zeros_like(trace, leaf)
        return pairs.leaf(zeros, leaf) if side else pairs.leaf(leaf, zeros)

    hooks: Any = trace.hooks
    made = unflatten(structure, [exported(leaf) for leaf in leaves])
    return Choice(missing, Absent(name), kept(value, made, hooks.effects.was_there))


def left_by_one(trace: Trace, a: Any, b: Any, sides: Sequence[Side], pairs: Pairs) -> Any:
    """What only one side of a branch leaves, and what follows reads only where that side ran.

    It is computed in any case, unless that may raise or never end.
    """
    side, value = (1, b) if a is UNBOUND else (0, a)
    leaves, structure = flatten(value)
    region = sides[side].region
    slots: dict[Any, Any] = {}

    def exported(leaf: Any) -> Any:
        if not is_traced(leaf):
            return leaf
        needed = _needed(region, leaf_value(trace, leaf))
        if all(map(_never_raises, needed)):
            return leaf
        whole: TracedArray = leaf
        steps: tuple[ViewStep, ...] = ()
        if leaf.storage is not None:
            if leaf.storage.born < region.start:
                return leaf
            whole, steps = TracedArray(trace, leaf.storage), leaf.steps
        if not whole.type.is_static or any(
                not region.is_outer(v) for step in steps for v in step.operands):
            if not any(get(n.op).raises == "often" for n in needed):
                return leaf
            raise unsupported(
                "returning an array of a size known only when it runs, and of what may raise, from "
                "inside a loop", loc=trace.loc,
                cure="leave the loop with break, and compute the result after it")
        key = whole.storage or whole.value
        if key not in slots:
            zeros = zeros_like(trace, whole)
            slots[key] = pairs.leaf(zeros, whole) if side else pairs.leaf(whole, zeros)
        return replace(slots[key], steps=steps) if steps else slots[key]

    return unflatten(structure, [exported(leaf) for leaf in leaves])


def _needed(region: Region, value: Value) -> list[Node]:
    """The nodes of a side that a value of it needs."""
    found: dict[int, Node] = {}
    stack = [value]
    while stack:
        value = stack.pop()
        if value.node.id not in found and not region.is_outer(value):
            found[value.node.id] = value.node
            stack += value.node.inputs
    return [*found.values()]


def _never_raises(node: Node) -> bool:
    """Whether the node, of which the operands are there, can be computed in any case."""
    if node.op == "Cond":
        sides: list[Graph] = [node.attrs["then"], node.attrs["orelse"]]
        return all(_never_raises(inner) for side in sides for inner in side.nodes)
    row = get(node.op)
    return row.raises == "never" or row.kind in _PLAIN


def _storages(variables: Mapping[str, Any]) -> list[Any]:
    """The memory of every array that variables hold, once for each."""
    return [leaf.storage for value in variables.values() if value is not UNBOUND
            for leaf in flatten(value)[0] if type(leaf) is TracedArray and leaf.is_array]


def _is_own(leaf: TracedArray, shared: Sequence[Any], start: int) -> bool:
    storage = leaf.storage
    return storage is not None and storage.born >= start and not leaf.steps and (
        leaf.type.is_static and sum(s is storage for s in shared) <= 1)


__all__ = ["check_bound", "half_bound", "is_number", "is_users"]
