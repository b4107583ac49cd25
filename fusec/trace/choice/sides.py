"""Results of the two sides of a branch: the leaves that it decides, and the memory they are in.

An array that one side made is new after the branch; one that was there before is one of two, as the
run decides (`trace/values/selected_arrays.py`), or, where the graph cannot say which, a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fusec.core.records import dataclass, field, replace
from fusec.ir import Node, Value
from fusec.ops.calls.index_checks import Use

from ..facts.error_states import State
from ..facts.layout import Strides
from ..operands.perhaps_pythons import note_choice
from ..operands.python_numbers import Intervals, hull, interval
from ..operands.texts import one_of_texts
from ..values.array import TracedArray, from_value
from ..values.selected_arrays import MOST_CHOICES, Copied, Selected, depth, selected, sides_of
from ..values.selected_arrays import roots as memory_of
from ..values.storage import Storage, ViewStep
from ..values.trace import Trace
from .joined_containers import Contents
from .joined_kinds import note_joined
from .merge import (
    Disagreement,
    common_strides,
    converted,
    flatten,
    is_number,
    is_traced,
    joined,
    leaf_value,
    lifted,
    of_other_dtypes,
    over_leaves,
)
from .optional_values import zeros_like
from .regions import TraceRegion


@dataclass
class Side:
    """The record of one side of a branch."""

    region: TraceRegion
    result: Any
    variables: Mapping[str, Any]
    written: dict[Storage, Value]
    line: Callable[[], str]  # where it ends, for messages: looking through the code is slow
    checks: list[Node] = field(default_factory=list)
    index_uses: list[Use] = field(default_factory=list)
    raised: BaseException | None = None
    state: State | None = None  # what it has assigned where it raises
    left: Contents = field(default_factory=Contents)

    def value_of(self, trace: Trace, x: Any) -> Value:
        """The value of a leaf at the end of this side."""
        with self.at_its_end():
            return leaf_value(trace, x)

    @contextmanager
    def at_its_end(self) -> Iterator[None]:
        """Memory has the contents that it has there."""
        before = [(storage, storage.value, storage.version) for storage in self.written]
        for storage, value in self.written.items():
            storage.replace(value, storage.version)
        try:
            yield
        finally:
            for storage, old, version in before:
                storage.replace(old, version)


@dataclass
class DecidedLeaf:
    """A leaf that the branch decides."""

    index: int
    sides: tuple[Any, Any]
    inside: dict[Value, int] | None  # see `Pairs._one_of_two`
    strides: Strides | None  # of an array, where both sides lie in memory in the same way
    interval: tuple[int, int] | None = None  # what an int can be
    values: tuple[Value, ...] = ()  # of both sides
    steps: tuple[ViewStep, ...] = ()  # to a view of it


@dataclass
class Pairs:
    """The values of both sides that become outputs of the branch."""

    trace: Trace
    done: Sequence[Side]
    sides: tuple[list[Value], list[Value]] = field(default_factory=lambda: ([], []))
    slots: dict[Any, DecidedLeaf] = field(default_factory=dict)  # of pairs of arrays
    made: dict[int, TracedArray] = field(default_factory=dict)
    are_variables: bool = False  # or the results of ``and``, ``or`` and expressions
    # Slots that only copies can give, and the memory from before the branch that these may be.
    shared: dict[int, list[Storage]] = field(default_factory=dict)
    # The slots, and the sides, of an array that the side made and that another slot holds, or of
    # views of it: that slot, and the steps to the view.
    again: dict[tuple[int, int], tuple[DecidedLeaf, tuple[ViewStep, ...]]] = field(
        default_factory=dict)

    @property
    def start(self) -> int:
        """Objects made in a side, or between the two, were born later."""
        return self.done[0].region.start

    def leaf(self, a: Any, b: Any) -> DecidedLeaf | str:
        if type(a) is type(b) is str and a and b:  # else its truth would be known
            return one_of_texts(self.trace, a, b)
        return self._leaf(a, b)

    def _leaf(self, a: Any, b: Any) -> DecidedLeaf:
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

    def of_side(self, side: int, x: Any, elsewhere: Any = None) -> DecidedLeaf:
        """A value that only one side computes; the other one gives something else, or zeros."""
        if elsewhere is None:
            elsewhere = zeros_like(self.trace, x)
        return self._leaf(elsewhere, x) if side else self._leaf(x, elsewhere)

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

    def _note_again(self, slots: Sequence[DecidedLeaf], side: int) -> bool:
        """Whether one slot of a memory has the array that the others are, or are views of."""
        if not all(map(self._may_be_one, slots)):
            return False
        steps = [slot.sides[side].steps for slot in slots]
        if len({(slot.sides[side].storage, slot.sides[side].steps) for slot in slots}) == 1:
            self.again.update({(slot.index, side): (slots[0], ()) for slot in slots[1:]})
            return True
        if any(type(slot.sides[side].storage) is not Storage for slot in slots):
            return False
        whole = next((slot for slot, s in zip(slots, steps, strict=True) if not s), None)
        if whole is None or whole.strides is None or any(
                v.node.id >= self.start for s in steps for step in s for v in step.operands):
            return False
        self.again.update({(slot.index, side): (whole, s)
                           for slot, s in zip(slots, steps, strict=True) if slot is not whole})
        return True

    def _made_in(self, side: int) -> dict[Storage, list[DecidedLeaf]]:
        """The slots of each memory that a side made, where there are several."""
        by_storage: dict[Storage, list[DecidedLeaf]] = {}
        for key, slot in self.slots.items():
            for root in memory_of(key[side][0]):  # an array, or those of which it is one
                if root.born >= self.start:
                    by_storage.setdefault(root, []).append(slot)
        return {storage: slots for storage, slots in by_storage.items() if len(slots) > 1}

    def _may_be_one(self, slot: DecidedLeaf) -> bool:
        """Whether the slot can give one of two arrays of which both or one are new."""
        return slot.index not in self.shared and slot.sides[0].type == slot.sides[1].type and all(
            type(x.storage) is Storage or x.storage.born < self.start or (
                type(x.storage) is Selected and slot.inside is not None) for x in slot.sides)

    def _share(self, index: int, *storages: Storage) -> None:
        self.shared[index] = list(dict.fromkeys([*self.shared.get(index, ()), *(
            root for storage in storages for root in memory_of(storage)
            if root.born < self.start)]))

    def _new(self, a: Any, b: Any) -> DecidedLeaf:
        values = [side.value_of(self.trace, x) for side, x in zip(self.done, (a, b), strict=True)]
        if of_other_dtypes(values[0].type, values[1].type, self.are_variables):
            raise Disagreement
        type_ = joined(values[0].type, values[1].type)
        for side, value in zip(self.sides, values, strict=True):
            side.append(converted(self.trace, value, type_))
        index = len(self.sides[0]) - 1
        return DecidedLeaf(
            index, (a, b), self._one_of_two(a, b, index), common_strides(type_, a, b),
            hull([interval(self.trace, v) for v in values]), values=tuple(values))

    def _one_of_two(self, a: Any, b: Any, index: int) -> dict[Value, int] | None:
        """If one of the arrays was there before the branch, the outputs that hold the tests of
        branches inside it, and indices computed there; else None."""
        if _place(a) is None or _place(b) is None:
            return None
        start = self.start
        roots = [root for x in (a, b) for root in memory_of(x.storage)]
        news = [root for root in roots if root.born >= start]
        is_loops = any(isinstance(root, Copied) for root in news)  # who knows what it is?
        if len(news) == len(roots) and not is_loops:
            return None
        # The ways through choices double with each.
        if is_loops or max(depth(a), depth(b)) >= MOST_CHOICES or a.type != b.type or not all(
                _may_be_at_zero(x, start) for x in (a, b)):
            self._share(index, a.storage, b.storage)
            return None
        inside = dict.fromkeys(v for x in (a, b) for v in _decided_by(x) if v.node.id >= start)
        return {value: self._exported(value, a) for value in inside}

    def _exported(self, value: Value, a: TracedArray) -> int:
        """The output that holds a test or index made in one side (zero where the other one ran)."""
        nothing = self.trace.builder.const(value.type.zero)
        is_first = value in _decided_by(a)
        for side, mine in zip(self.sides, (is_first, not is_first), strict=True):
            side.append(value if mine else nothing)
        return len(self.sides[0]) - 1


@dataclass
class Filling:
    """Puts the results of the branch in the place of slots."""

    trace: Trace
    test: Value
    pairs: Pairs
    outputs: Sequence[Value]
    fresh: dict[int, TracedArray] = field(default_factory=dict)

    def filled(self, x: Any) -> Any:
        """``x`` with its slots replaced by the branch's results."""
        if not any(type(leaf) is DecidedLeaf for leaf in flatten(x)[0]):
            return x
        return over_leaves(lambda leaf: self._view(leaf) if type(leaf) is DecidedLeaf else leaf, x)

    def _view(self, slot: DecidedLeaf) -> TracedArray:
        array = self._given(slot)
        if not slot.steps:
            return array
        return TracedArray(self.trace, array.storage, (*array.steps, *slot.steps))

    def _given(self, slot: DecidedLeaf) -> TracedArray:
        """A traced value: an array gets memory of its own, or is one of two."""
        arrays = self.pairs.made
        if slot.index not in arrays:
            value = self.outputs[slot.index]
            note_joined(self.trace, value, *slot.values)
            note_choice(self.trace, value, self.test, slot.values)
            arrays[slot.index] = self._fresh(slot)
            if slot.interval is not None:
                self.trace.part(Intervals)[value] = slot.interval
            if slot.index in self.pairs.shared and arrays[slot.index].storage is not None:
                arrays[slot.index] = TracedArray(self.trace, Copied(
                    self.trace, value, self.pairs.shared[slot.index], slot.strides))
            elif slot.inside is not None or self._is_again(slot):
                arrays[slot.index] = self._selected(slot)
        return arrays[slot.index]

    def _fresh(self, slot: DecidedLeaf) -> TracedArray:
        """Memory for the slot's value."""
        if slot.index not in self.fresh:
            self.fresh[slot.index] = from_value(self.trace, self.outputs[slot.index], slot.strides)
        return self.fresh[slot.index]

    def _is_again(self, slot: DecidedLeaf) -> bool:
        return any((slot.index, side) in self.pairs.again for side in (0, 1))

    def _selected(self, slot: DecidedLeaf) -> TracedArray:
        then, orelse = (self._outside(x, slot.inside or {}, self._memory(slot, side))
                        for side, x in enumerate(slot.sides))
        return selected(self.trace, self.test, then, orelse, self.outputs[slot.index])

    def _memory(self, slot: DecidedLeaf, side: int) -> TracedArray:
        """The stand-in for an array that a side made."""
        holder, steps = self.pairs.again.get((slot.index, side), (slot, ()))
        array = self._fresh(holder)
        return TracedArray(self.trace, array.storage, steps) if steps else array

    def _outside(
        self, x: TracedArray, inside: Mapping[Value, int], fresh: TracedArray
    ) -> TracedArray:
        """An array that a side leaves, as code after the branch sees it."""
        storage, start = x.storage, self.pairs.start
        if isinstance(storage, Selected) and storage.born >= start:
            then, orelse = (self._outside(side, inside, fresh) for side in sides_of(x))
            return selected(self.trace, self._after(storage.test, inside), then, orelse)
        if storage is None or storage.born >= start:
            return fresh
        if not x.steps:
            return x
        return TracedArray(self.trace, storage, tuple(
            replace(step, operands=tuple(self._after(v, inside) for v in step.operands))
            if step.operands else step for step in x.steps))

    def _after(self, value: Value, inside: Mapping[Value, int]) -> Value:
        return self.outputs[inside[value]] if value in inside else value


def _place(x: Any) -> tuple[Storage, tuple[Any, ...]] | None:
    """The memory that an array shows; None for numbers."""
    if type(x) is not TracedArray or x.storage is None:
        return None
    return x.storage, x.steps


def _steps(x: TracedArray) -> list[ViewStep]:
    """The steps to it, and to those it may be."""
    inner = x.storage.sides if isinstance(x.storage, Selected) else ()
    return [*x.steps, *(step for side in inner for step in _steps(side))]


def _decided_by(x: TracedArray) -> list[Value]:
    """The tests and indices that decide its memory."""
    tests: list[Value] = []
    waiting = [x]
    while waiting:
        storage = waiting.pop().storage
        if isinstance(storage, Selected):
            tests.append(storage.test)
            waiting += storage.sides
    return [*tests, *(v for step in _steps(x) for v in step.operands)]


def _may_be_at_zero(x: TracedArray, start: int) -> bool:
    """Whether its indices are older than the branch, or may be zero where they do not matter."""
    inside = [s for s in _steps(x) if any(v.node.id >= start for v in s.operands)]
    if not inside:
        return True
    types = [root.value.type for root in memory_of(x.storage)] if x.storage is not None else []
    return all(step.op == "Pick" for step in inside) and all(
        t.is_static and 0 not in t.shape for t in types) and not any(
        0 in dict(step.attrs).get("sizes", ()) for step in _steps(x))
