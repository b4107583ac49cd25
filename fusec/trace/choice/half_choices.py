"""Values that only one side of a branch leaves: variables that the other one does not bind, and
items that it does not append.

They become a `Choice` between a value and none, unless the code after it reads a variable in any
case: then a check is made at once.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fusec.errors import unsupported
from fusec.ir import Graph, Node, Value
from fusec.ops import get

from ..guards.container_changes import may_be_held
from ..guards.places import UNBOUND, Absent
from ..values.array import TracedArray, number
from ..values.storage import ViewStep
from ..values.trace import Trace
from .choice import Choice, unbound
from .joined_containers import Joining, over_parts
from .merge import Disagreement, flatten, is_traced, leaf_value, over_leaves, same
from .sides import Pairs, Side
from .tails import is_open

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
    joining: Joining, test: Value, name: str, a: Any, b: Any, sides: Sequence[Side], pairs: Pairs
) -> Choice:
    """The value of a variable after a branch of which one side leaves it unbound."""
    trace = pairs.trace
    side, value = (1, b) if a is UNBOUND else (0, a)
    inner: Any = False
    if type(value) is Choice and value.name == name:
        inner, value = value.test, value.orelse
    missing: Any = _is_other(trace, test, side)
    if inner is not False:
        missing = pairs.of_side(side, inner, True)
    region = sides[side].region
    shared = _storages(sides[side].variables)

    def exported(leaf: Any) -> Any:
        """Computed in its side alone, where nothing else shows its memory."""
        if not is_traced(leaf) or region.is_outer(leaf.origin) or (
                leaf.storage is not None and not _is_own(leaf, shared, region.start)):
            return leaf
        return pairs.of_side(side, leaf)

    bound = joining.kept(value, over_leaves(exported, value), side)
    return Choice(missing, Absent(name), bound)


def _is_other(trace: Trace, test: Value, side: int) -> TracedArray:
    """Whether the other side is taken."""
    return number(trace, test if side else trace.emit("LogicalNot", test))


def left_by_one(trace: Trace, a: Any, b: Any, sides: Sequence[Side], pairs: Pairs) -> Any:
    """A value that only one side of a branch leaves, and that is read only where that side ran.

    It is computed in any case, unless that may raise or never end.
    """
    side, value = (1, b) if a is UNBOUND else (0, a)
    region = sides[side].region
    slots: dict[Any, Any] = {}

    def exported(leaf: Any) -> Any:
        if not is_traced(leaf):
            return leaf
        needed = region.made_for([leaf_value(trace, leaf)])
        if all(map(never_raises, needed)):
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
            slots[key] = pairs.of_side(side, whole)
        return replace(slots[key], steps=steps) if steps else slots[key]

    return over_leaves(exported, value)


def merged_tails(
    test: Any, tails: tuple[tuple[Any, ...], tuple[Any, ...]], sides: Sequence[Side], pairs: Pairs
) -> tuple[Any, ...]:
    """The items appended after a branch, by those that its sides appended."""
    trace, count = pairs.trace, 0
    while all(len(tail) > count for tail in tails) and same(tails[0][count], tails[1][count]):
        count += 1
    merged = list(tails[0][:count])
    try:
        for k in (0, 1):
            absent: Any = _is_other(trace, test, k)
            for item in tails[k][count:]:
                missing = pairs.of_side(k, item.test, True) if is_open(item) else absent
                item = item.orelse if is_open(item) else item
                merged.append(Choice(missing, UNBOUND, _exported(item, k, sides, pairs)))
    except Disagreement:
        raise unsupported(
            "appending an array whose size the run decides, in a branch that data decides",
            loc=trace.loc, cure="append it after the branch, or what is computed from it") from None
    return tuple(merged)


def _exported(item: Any, k: int, sides: Sequence[Side], pairs: Pairs) -> Any:
    """The item with its side's values among the outputs; containers that were there before stay
    the same objects."""
    hooks: Any = pairs.trace.hooks
    if may_be_held(item):
        if hooks.effects.was_there(item):
            return item
        item = copy.copy(item)
    if type(item) is tuple or may_be_held(item):
        return over_parts(lambda x: _exported(x, k, sides, pairs), item)
    return over_leaves(
        lambda x: pairs.of_side(k, x) if is_traced(x) and not sides[k].region.is_outer(
            x.origin) else x, item)


def never_raises(node: Node) -> bool:
    """Whether the node, of which the operands are there, can be computed in any case."""
    if node.op == "Cond":
        sides: list[Graph] = [node.attrs["then"], node.attrs["orelse"]]
        return all(never_raises(inner) for side in sides for inner in side.nodes)
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
