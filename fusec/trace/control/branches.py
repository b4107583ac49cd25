"""Branches on data: both sides are traced, what they leave behind is merged.

Cheap scalar sides become ``Where``; all others a ``Cond`` node, of which one side runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fusec.errors import unsupported, user_error
from fusec.ir import Node, Value
from fusec.ir.dims import UndecidedSizeError
from fusec.ops import get
from fusec.ops.checks import describe_error

from ..array import TracedArray, from_value
from ..context import Trace
from ..convert.control import RESULT
from ..index_uses import Use, lost_checks, note_inside
from ..layout import Strides
from ..optional import aligned, assuming, bound, settled
from ..python_numbers import interval
from ..selected import MOST_CHOICES, Copied, Selected, depth, selected, sides_of
from ..selected import roots as memory_of
from ..storage import Storage, ViewStep
from .cells import UNBOUND, Variables
from .identities import relinked
from .merge import (
    Disagreement,
    common_strides,
    converted,
    flatten,
    is_number,
    is_traced,
    joined,
    last_line,
    leaf_value,
    lifted,
    merged,
    of_other_dtypes,
    shown,
    unflatten,
)
from .perhaps import merged_tails
from .raising import as_checked, is_programs
from .regions import Region, assign, captures, subgraph
from .unbound import check_bound, half_bound, is_users, left_by_one

SELECT_COST = 60.0  # scalar work of both sides up to which computing both beats a jump


@dataclass
class Side:
    """What one side of a branch did."""

    region: Region
    result: Any
    variables: Mapping[str, Any]
    written: dict[Storage, Value]
    line: str  # where it ends
    checks: list[Node] = field(default_factory=list)
    index_uses: list[Use] = field(default_factory=list)
    raised: Exception | None = None

    def value_of(self, trace: Trace, x: Any) -> Value:
        """What a leaf holds at the end of this side."""
        before = [(storage, storage.value, storage.version) for storage in self.written]
        for storage, value in self.written.items():
            storage.replace(value, storage.version)
        try:
            return leaf_value(trace, x)
        finally:
            for storage, old, version in before:
                storage.replace(old, version)


@dataclass
class _Slot:
    """A leaf that the branch decides."""

    index: int
    sides: tuple[Any, Any]
    choice: Choice | None
    strides: Strides | None  # of an array, where both sides lie in memory in the same way
    interval: tuple[int, int] | None = None  # what an int can be
    steps: tuple[ViewStep, ...] = ()  # to a view of it


@dataclass
class Choice:
    """That the branch gives one of two arrays; ``tests`` are the outputs that hold the tests of
    branches inside it."""

    tests: dict[Value, int]


@dataclass
class _Pairs:
    """The values of both sides that become outputs of the branch."""

    trace: Trace
    done: Sequence[Side]
    sides: tuple[list[Value], list[Value]] = field(default_factory=lambda: ([], []))
    slots: dict[Any, _Slot] = field(default_factory=dict)  # of pairs of arrays
    made: dict[int, TracedArray] = field(default_factory=dict)
    are_variables: bool = False  # or the results of ``and``, ``or`` and expressions
    # Slots that only copies can give, and the memory from before the branch that these may be.
    shared: dict[int, list[Storage]] = field(default_factory=dict)
    # The slots, and the sides, of an array that the side made and that another slot holds, or of
    # views of it: that slot, and the steps to the view.
    again: dict[tuple[int, int], tuple[_Slot, tuple[ViewStep, ...]]] = field(default_factory=dict)

    def leaf(self, a: Any, b: Any) -> _Slot:
        a, b = (lifted(self.trace, x) for x in (a, b))
        for x in (a, b):
            if not (is_number(x) or is_traced(x)):
                raise Disagreement
        key = tuple(_place(x) for x in (a, b))
        if None in key:
            return self._new(a, b)
        if key not in self.slots:
            self.slots[key] = self._new(a, b)
            self._note_sharing()
        return self.slots[key]

    def _note_sharing(self) -> None:
        """Arrays made in a side that appear in several pairs are one array on that side only."""
        count = -1
        while len(self.shared) > count:  # what can only be a copy may be in other pairs too
            count = len(self.shared)
            self.again = {}
            for side in (0, 1):
                for storage, slots in self._made_in(side).items():
                    if not self._note_again(slots, side):
                        for slot in slots:
                            self._share(slot.index, *(x.storage for x in slot.sides))
                            self.shared[slot.index].append(storage)  # by which it is seen

    def _note_again(self, slots: Sequence[_Slot], side: int) -> bool:
        """Whether one of the slots of a memory holds what the others are, or are views of."""
        if not all(map(self._may_be_one, slots)):
            return False
        steps = [slot.sides[side].steps for slot in slots]
        if len(set(steps)) == 1:
            self.again.update({(slot.index, side): (slots[0], ()) for slot in slots[1:]})
            return True
        whole = next((slot for slot, s in zip(slots, steps, strict=True) if not s), None)
        start = self.done[0].region.start
        if whole is None or whole.strides is None or any(
                v.node.id >= start for s in steps for step in s for v in step.operands):
            return False
        self.again.update({(slot.index, side): (whole, s)
                           for slot, s in zip(slots, steps, strict=True) if slot is not whole})
        return True

    def _made_in(self, side: int) -> dict[Storage, list[_Slot]]:
        """The slots of each memory that a side made, where there are several."""
        start = self.done[0].region.start
        found: dict[Storage, list[_Slot]] = {}
        for key, slot in self.slots.items():
            for root in memory_of(key[side][0]):  # an array, or those of which it is one
                if root.born >= start:
                    found.setdefault(root, []).append(slot)
        return {storage: slots for storage, slots in found.items() if len(slots) > 1}

    def _may_be_one(self, slot: _Slot) -> bool:
        """Whether the slot can give one of two arrays of which both or one are new."""
        start = self.done[0].region.start
        return slot.index not in self.shared and slot.sides[0].type == slot.sides[1].type and all(
            type(x.storage) is Storage or x.storage.born < start for x in slot.sides)

    def _share(self, index: int, *storages: Storage) -> None:
        start = self.done[0].region.start
        self.shared[index] = list(dict.fromkeys([*self.shared.get(index, ()), *(
            root for storage in storages for root in memory_of(storage) if root.born < start)]))

    def _new(self, a: Any, b: Any) -> _Slot:
        values = [side.value_of(self.trace, x) for side, x in zip(self.done, (a, b), strict=True)]
        if of_other_dtypes(values[0].type, values[1].type, self.are_variables):
            raise Disagreement
        type_ = joined(values[0].type, values[1].type)
        for side, value in zip(self.sides, values, strict=True):
            side.append(converted(self.trace, value, type_))
        index = len(self.sides[0]) - 1
        return _Slot(index, (a, b), self._choice(a, b, index), common_strides(type_, a, b),
                     self._interval(values))

    def _choice(self, a: Any, b: Any, index: int) -> Choice | None:
        """The arrays, if one of them was there before the branch."""
        if _place(a) is None or _place(b) is None:
            return None
        start = self.done[0].region.start
        roots = [root for x in (a, b) for root in memory_of(x.storage)]
        if any(isinstance(root, Copied) and root.born >= start for root in roots):
            self._share(index, a.storage, b.storage)  # a loop's result: who knows what it is
            return None
        if all(root.born >= start for root in roots):
            return None
        if max(depth(a), depth(b)) >= MOST_CHOICES:  # the ways through them double with each
            self._share(index, a.storage, b.storage)
            return None
        inside = {test for x in (a, b) for test in _tests(x.storage) if test.node.id >= start}
        if a.type != b.type or any(
                v.node.id >= start for x in (a, b) for v in _indices(x)):
            self._share(index, a.storage, b.storage)
            return None
        return Choice({test: self._exported(test, a) for test in inside})

    def _exported(self, test: Value, a: TracedArray) -> int:
        """The output that holds a test made in one side (false where the other one ran)."""
        false = self.trace.builder.const(False if test.type.is_weak else np.bool_(False))
        is_first = test in _tests(a.storage)
        for side, mine in zip(self.sides, (is_first, not is_first), strict=True):
            side.append(test if mine else false)
        return len(self.sides[0]) - 1

    def _interval(self, values: Sequence[Value]) -> tuple[int, int] | None:
        found = [interval(self.trace, v) for v in values]
        known = [bounds for bounds in found if bounds is not None]
        if len(known) < len(found):
            return None
        return min(b[0] for b in known), max(b[1] for b in known)


def branch(
    trace: Trace, test: Value, variables: Variables, needed: Sequence[str],
    then: Callable[[], Any], orelse: Callable[[], Any], read: Sequence[str] = (),
) -> Any:
    """Trace both sides, bind the merged variables, and give the merged result.

    Variables of ``read`` are certainly read later: a side that leaves one unbound raises.
    """
    assert trace.hooks is not None
    where = trace.hooks.where
    sides = [_trace_side(trace, variables, thunk, test, truth)
             for thunk, truth in ((then, True), (orelse, False))]
    trace.hooks.where = where  # what follows belongs to the line of the branch
    failing = [side.raised is not None for side in sides]
    if any(failing):
        return _checked(trace, test, sides, (then, orelse), failing)
    pairs = _Pairs(trace, sides)
    states = {name: _merged_variable(trace, test, name, sides, pairs, variables, name in read)
              for name in variables.needed(needed)}
    result = _merged_result(trace, sides, pairs)
    storages = list(dict.fromkeys(s for side in sides for s in side.written))
    outputs = _emit(trace, test, sides, pairs, storages)
    for storage, value in zip(storages, outputs[len(pairs.sides[0]):], strict=True):
        assign(trace, storage, value)
    filling = Filling(trace, test, pairs, outputs)
    hooks: Any = trace.hooks
    older = hooks.effects.was_there

    def joined_of(name: str, x: Any) -> Any:
        a, b = (variables.left_by(side.variables, name) for side in sides)
        if name == RESULT or variables.is_tail(name):  # which nothing changes after a return
            return filling.filled(x)
        return relinked(trace, a, b, filling.filled(x), older)

    variables.write({name: joined_of(name, x) for name, x in states.items()})
    check_bound(trace, test, [s.variables for s in sides], [n for n in read if n in states])
    return relinked(trace, sides[0].result, sides[1].result, filling.filled(result), older)


def _trace_side(
    trace: Trace, variables: Variables, thunk: Callable[[], Any], test: Value, truth: bool
) -> Side:
    with assuming(trace, test, truth):
        return _traced_side(trace, variables, thunk)


def _traced_side(trace: Trace, variables: Variables, thunk: Callable[[], Any]) -> Side:
    before = variables.read()
    region = Region(trace)
    try:
        result = settled(trace, bound(trace, thunk()))
        held = {name: settled(trace, x) for name, x in variables.read().items()}
        return Side(region, result, held, region.written(), last_line(trace, thunk),
                    region.take_checks(), region.take_index_uses())
    except UndecidedSizeError:
        raise
    except RecursionError:
        trace.endless = trace.endless or trace.loc
        raise
    except Exception as error:
        if not is_programs(error):
            raise
        if len(trace.checks) > region.first_check:  # what it may have raised before
            trace.check(trace.builder.const(np.bool_(False)), as_checked(trace, error))
        return Side(region, None, {}, {}, "", region.take_checks(), region.take_index_uses(),
                    raised=error)
    finally:
        region.take_checks()
        variables.restore(before)
        region.undo()


def _checked(
    trace: Trace, test: Value, sides: Sequence[Side],
    thunks: Sequence[Callable[[], Any]], failing: Sequence[bool],
) -> Any:
    """A branch of which a side raises: a check, and then the other side without a branch."""
    if any(side.checks for side in sides if side.raised is not None):
        for side in sides:
            if side.raised is None:  # traced again, after the checks of the side that raises
                side.checks, side.index_uses = [], []
            elif not side.checks:
                side.checks = [_raise_always(trace, side.raised)]
        _emit(trace, test, sides, _Pairs(trace, sides), [])
        last = sides[1].raised
        if last is not None and all(failing):
            raise last
        return thunks[failing.index(False)]()
    if all(failing):
        raise _one_of(trace, test, *(side.raised for side in sides))
    raised = sides[failing.index(True)].raised
    assert raised is not None
    holds = trace.emit("LogicalNot", test) if failing[0] else test
    trace.check(holds, as_checked(trace, raised))
    return thunks[failing.index(False)]()


def _raise_always(trace: Trace, raised: Exception) -> Node:
    """A check that fails, of a side that raises."""
    error = describe_error(as_checked(trace, raised))
    return trace.emit("Check", trace.builder.const(np.bool_(False)), error=error).node


def _one_of(trace: Trace, test: Value, *errors: Any) -> Any:
    """What to raise where both sides raise: the first is a check, if it is another exception."""
    first, second = (getattr(e, "in_numpys_words", None) or e for e in errors)
    if type(first) is type(second) and first.args == second.args:
        return errors[0]
    trace.check(trace.emit("LogicalNot", test), as_checked(trace, errors[0]))
    return errors[1]


# -- merging --------------------------------------------------------------------------------------


def _merged_variable(
    trace: Trace, test: Value, name: str, sides: Sequence[Side], pairs: _Pairs,
    variables: Variables, is_read: bool,
) -> Any:
    a, b = (variables.left_by(side.variables, name) for side in sides)
    if variables.is_tail(name):
        return merged_tails(test, (a, b), sides, pairs)
    if (a is UNBOUND or b is UNBOUND) and a is not b and name in variables.attributes.initial:
        raise unsupported(
            f"the attribute {name!r} that only one side of a branch makes", loc=trace.loc,
            cure="give it a value before the branch")
    if a is UNBOUND or b is UNBOUND:
        if a is not b and is_users(name) and not is_read:
            return half_bound(trace, test, name, a, b, sides, pairs)
        # A check follows, or only that side goes on to read it.
        return left_by_one(trace, a, b, sides, pairs)
    pairs.are_variables = True
    try:
        return merged(*aligned(trace, a, b), pairs.leaf)
    except Disagreement:
        raise user_error(
            TypeError, f"the sides of a branch leave different things in {name!r}", trace.loc,
            "give the variable one shape, dtype and kind on both sides",
            values=_both(sides, a, b)) from None


def _both(sides: Sequence[Side], a: Any, b: Any) -> list[tuple[str, str]]:
    return [(f"then, to {sides[0].line}", shown(a)), (f"else, to {sides[1].line}", shown(b))]


def _merged_result(trace: Trace, sides: Sequence[Side], pairs: _Pairs) -> Any:
    pairs.are_variables = False
    a, b = (side.result for side in sides)
    try:
        return merged(*aligned(trace, a, b), pairs.leaf)
    except Disagreement:
        raise user_error(
            TypeError, "the sides of a branch return different things", trace.loc,
            "return the same structure, shapes and kinds on both sides",
            values=_both(sides, a, b)) from None


@dataclass
class Filling:
    """Puts what the branch gives in the place of slots."""

    trace: Trace
    test: Value
    pairs: _Pairs
    outputs: Sequence[Value]
    fresh: dict[int, TracedArray] = field(default_factory=dict)

    def filled(self, x: Any) -> Any:
        """``x`` with its slots replaced by what the branch gives."""
        leaves, structure = flatten(x)
        if not any(type(leaf) is _Slot for leaf in leaves):
            return x
        return unflatten(structure, [
            self._view(leaf) if type(leaf) is _Slot else leaf for leaf in leaves])

    def _view(self, slot: _Slot) -> TracedArray:
        found = self._given(slot)
        if not slot.steps:
            return found
        return TracedArray(self.trace, found.storage, (*found.steps, *slot.steps))

    def _given(self, slot: _Slot) -> TracedArray:
        """A traced value: an array gets memory of its own, or is one of two."""
        made = self.pairs.made
        if slot.index not in made:
            value = self.outputs[slot.index]
            made[slot.index] = self._fresh(slot)
            if slot.interval is not None:
                self.trace.intervals[value] = slot.interval
            if slot.index in self.pairs.shared and made[slot.index].storage is not None:
                made[slot.index] = TracedArray(self.trace, Copied(
                    self.trace, value, self.pairs.shared[slot.index], slot.strides))
            elif slot.choice is not None or self._is_again(slot):
                made[slot.index] = self._selected(slot)
        return made[slot.index]

    def _fresh(self, slot: _Slot) -> TracedArray:
        """Memory for what the slot gives."""
        if slot.index not in self.fresh:
            self.fresh[slot.index] = from_value(
                self.trace, self.outputs[slot.index], slot.strides)
        return self.fresh[slot.index]

    def _is_again(self, slot: _Slot) -> bool:
        return any((slot.index, side) in self.pairs.again for side in (0, 1))

    def _selected(self, slot: _Slot) -> TracedArray:
        tests = slot.choice.tests if slot.choice is not None else {}
        then, orelse = (self._outside(x, tests, self._memory(slot, side))
                        for side, x in enumerate(slot.sides))
        return selected(self.trace, self.test, then, orelse, self.outputs[slot.index])

    def _memory(self, slot: _Slot, side: int) -> TracedArray:
        """What stands for an array that a side made."""
        holder, steps = self.pairs.again.get((slot.index, side), (slot, ()))
        found = self._fresh(holder)
        return TracedArray(self.trace, found.storage, steps) if steps else found

    def _outside(
        self, x: TracedArray, tests: Mapping[Value, int], fresh: TracedArray
    ) -> TracedArray:
        """An array that a side leaves, as what follows the branch sees it."""
        storage = x.storage
        start = self.pairs.done[0].region.start
        if isinstance(storage, Selected) and storage.born >= start:
            test = self.outputs[tests[storage.test]] if storage.test in tests else storage.test
            then, orelse = (self._outside(side, tests, fresh) for side in sides_of(x))
            return selected(self.trace, test, then, orelse)
        return x if storage is not None and storage.born < start else fresh


def _place(x: Any) -> tuple[Storage, tuple[Any, ...]] | None:
    """The memory that an array shows; None for numbers."""
    if type(x) is not TracedArray or x.storage is None:
        return None
    return x.storage, x.steps


def _tests(storage: Storage | None) -> list[Value]:
    if not isinstance(storage, Selected):
        return []
    return [storage.test, *(test for side in storage.sides for test in _tests(side.storage))]


def _indices(x: TracedArray) -> list[Value]:
    """The run-time indices of its views, and of those it may be."""
    assert x.storage is not None
    own = [v for step in x.steps for v in step.operands]
    inner = x.storage.sides if isinstance(x.storage, Selected) else ()
    return [*own, *(v for side in inner for v in _indices(side))]


# -- emitting -------------------------------------------------------------------------------------


def _emit(
    trace: Trace, test: Value, sides: Sequence[Side], pairs: _Pairs, storages: Sequence[Storage]
) -> list[Value]:
    """What the branch gives: the merged leaves, then the contents of the storages."""
    after = [[side.written.get(s, s.value) for s in storages] for side in sides]
    for side, roots, new in zip(sides, pairs.sides, after, strict=True):
        reached = [*(v.node for v in (*roots, *new)), *side.checks]
        side.checks += lost_checks(trace, side.index_uses, reached)
    checked = any(side.checks for side in sides)
    if not pairs.sides[0] and not storages and not checked:
        return []
    if not storages and not checked and _is_cheap(sides, pairs):
        return [_select(trace, test, a, b) for a, b in zip(*pairs.sides, strict=True)]
    # A branch of checks alone has a result too: what is in a graph is reached from one.
    gives = list(pairs.sides) if pairs.sides[0] or storages else [
        [trace.builder.const(np.bool_(True))]] * 2
    before = [s.value for s in storages]
    outer: dict[Value, None] = {}
    for side, roots, new in zip(sides, gives, after, strict=True):
        needed = [*roots, *new, *(n.out() for n in side.checks)]
        outer.update(dict.fromkeys(captures(side.region, needed, ())))
    others = [v for v in outer if v not in before]
    graphs = [
        subgraph(name, roots, before, others, list(enumerate(new)), side.checks)
        for name, roots, new, side in zip(
            ("then", "orelse"), gives, after, sides, strict=True)
    ]
    value = trace.emit("Cond", test, *before, *others, then=graphs[0], orelse=graphs[1],
                       changed=len(before))
    if checked:
        trace.checks.append(value.node)
    note_inside(trace, value.node)
    return list(value.node.outputs) if gives[0] is pairs.sides[0] else []


def _select(trace: Trace, test: Value, a: Value, b: Value) -> Value:
    if a == b:
        return a
    return trace.emit("Where", test, a, b, kind=a.type.kind)


def _is_cheap(sides: Sequence[Side], pairs: _Pairs) -> bool:
    cost = 0.0
    for side, roots in zip(sides, pairs.sides, strict=True):
        for node in _inner_nodes(side.region, roots):
            if not _may_always_run(node):
                return False
            cost += get(node.op).cost
    return cost <= SELECT_COST


def _may_always_run(node: Node) -> bool:
    return get(node.op).kind == "elementwise" and all(not t.shape for t in node.types)


def _inner_nodes(region: Region, roots: Sequence[Value]) -> list[Node]:
    nodes: dict[int, Node] = {}
    stack = [v for v in roots if not region.is_outer(v)]
    while stack:
        node = stack.pop().node
        if node.id not in nodes and node.op != "Const":
            nodes[node.id] = node
            stack.extend(v for v in node.inputs if not region.is_outer(v))
    return list(nodes.values())
