"""Parameters that stand for the values of any iteration while the body of a loop is traced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from fusec.ir import TensorType, Value
from fusec.ir.sizes.symbolic_numbers import is_int

from ..choice.joined_containers import Copies, holders_of, loop_leaves, with_objects
from ..choice.joined_kinds import JoinedKinds, note_joined
from ..choice.merge import common_strides, converted, is_number, leaf_value, lifted, unflatten
from ..choice.records import ObjectRecord, Opening, built, choose, records_in
from ..choice.regions import TraceRegion, placeholder
from ..guards.places import UNBOUND
from ..lists.appended_items import Appended
from ..lists.lists_of_loops import GrowingLists
from ..operands.overflow import OverflowChecks
from ..operands.perhaps_pythons import is_perhaps_pythons, note_pythons
from ..operands.python_numbers import SLOW, Intervals, interval, is_slow
from ..values.array import TracedArray, from_value, number
from ..values.trace import Trace, assign
from .carried_sizes import CarriedSizes
from .loop_facts import Carried, Leaf, LoopFacts, LoopParts
from .ranges import I64, most_trips


class Parameters:
    """An attempt as it begins: parameters in the place of the values of variables and storages."""

    def __init__(
        self, trace: Trace, parts: LoopParts, facts: LoopFacts, entry: dict[str, Any]
    ) -> None:
        self.trace, self.parts, self.facts = trace, parts, facts
        self.bindings, self.entry = entry, facts.entry(trace, entry)
        self.entered = set(facts.optional)  # which may be None in this attempt
        self.lists = self._lists()
        self.region = TraceRegion(trace)
        self.opening = Opening(trace, self.region.start)
        self.carried: list[Carried] = []
        self.appended: list[Appended] = []
        self.exits = False
        self.going: Carried | None = None  # the truth of a test with effects
        self.by_leaf: dict[Leaf, Carried] = {}
        self.arrays: dict[Leaf, TracedArray] = {}  # what stands for arrays carried by value
        self.copies = Copies(trace)
        trips = parts.count if type(parts.count) is int else None
        self.sizes = CarriedSizes(trace, facts, trips, self.carried.append)
        facts.holders.update(holders_of(trace))
        self.holders = dict(facts.holders)
        self.checked = trace.part(OverflowChecks).count

    def _lists(self) -> GrowingLists | None:
        """The lists that the body appends to and reads, in a loop of known length."""
        parts, facts = self.parts, self.facts
        if parts.item is None or parts.written is not None or not is_int(parts.count):
            return None
        lists = GrowingLists(
            self.trace, parts.body, parts.count, facts.lists, facts.change, self.entry)
        facts.storages = {s: None for s in facts.storages if s not in lists.given_up}
        facts.storages.update(dict.fromkeys(lists.storages))
        return lists if lists.lists else None

    def _counter(self) -> TracedArray | None:
        if self.parts.count is None:
            return None
        trace = self.trace
        parameter = placeholder(trace, TensorType(I64, (), "weak"), "k")
        trace.part(Intervals)[parameter] = (0, most_trips(trace, self.parts.count) - 1)
        self.carried.append(Carried(parameter, trace.builder.const(0), is_needed=True))
        return number(trace, parameter)

    def _set_up(self) -> None:
        bound = {}
        for name, value in self.entry.items():
            if value is not UNBOUND:
                bound[name] = self._with_parameters(name, value)
        self.parts.variables.write(bound)
        for storage in self.facts.storages:
            parameter = placeholder(self.trace, storage.value.type, "array")
            self.carried.append(Carried(parameter, storage.value, storage=storage,
                                         is_needed=True))
            assign(self.trace, storage, parameter)

    def _with_parameters(self, name: str, value: Any) -> Any:
        leaves, structure = loop_leaves(self.holders, value)
        inner = unflatten(structure, [
            self._parameter((name, i), leaf) for i, leaf in enumerate(leaves)])
        return with_objects(
            self._stand_in, value, self.copies.of(name, value, inner, self.facts))

    def _stand_in(self, before: ObjectRecord, record: ObjectRecord) -> Any:
        """The object of any iteration: in the first one it is that from before the loop, which
        other variables may hold too."""
        instance = built(self.trace, record)
        choose(self.trace, instance, *(() if before.source is None else (before.source,)))
        return instance

    def _parameter(self, key: Leaf, leaf: Any) -> Any:
        if key in self.facts.fixed:
            return leaf
        if is_number(leaf):
            initial = leaf_value(self.trace, leaf)
            type_ = self.facts.types.get(key) or initial.type
            carried = self._carry(key, type_, converted(self.trace, initial, type_))
            note_joined(self.trace, carried.parameter, initial)
            if key in self.facts.open:
                self.trace.part(JoinedKinds).add(carried.parameter)
            if key in self.facts.pythons or is_perhaps_pythons(self.trace, initial):
                note_pythons(self.trace, carried.parameter)
            self._bound(key, carried)
            return number(self.trace, carried.parameter)
        if key in self.facts.rebound:
            leaf = lifted(self.trace, leaf)
            type_ = self.facts.types.get(key) or leaf.value.type
            initial = converted(self.trace, leaf.value, type_)
            value = self._carry_sized(key, type_, initial) if self.sizes.axes(key) else (
                self._carry(key, type_, initial).parameter)
            array = self.arrays[key] = from_value(
                self.trace, value, common_strides(value.type, leaf, leaf))
            if array.storage is not None:
                array.storage.stands_for = leaf.storage
            return array
        return leaf

    def _bound(self, key: Leaf, carried: Carried) -> None:
        """The range of a Python int in an iteration: supposed at first, see `_check_bounds`."""
        parameter, initial = carried.parameter, carried.initial
        if not parameter.type.is_weak or parameter.dtype != I64 or initial is None:
            return
        start = interval(self.trace, initial)
        bounds = self.facts.bounds.get(key, SLOW) if is_slow(start) else None
        if bounds is not None:
            self.trace.part(Intervals)[parameter] = bounds

    def _carry_sized(self, key: Leaf, type_: TensorType, initial: Value) -> Value:
        """The parameter of an array whose size changes: a part of its buffer."""
        buffer, part = self.sizes.parameter(key, type_, initial)
        buffer.is_needed = self._is_needed(key[0])
        self.by_leaf[key] = buffer
        self.carried.append(buffer)
        return part

    def _carry(self, key: Leaf, type_: TensorType, initial: Value | None) -> Carried:
        carried = Carried(placeholder(self.trace, type_, key[0]), initial, leaf=key)
        carried.is_needed = self._is_needed(key[0])
        self.by_leaf[key] = carried
        self.carried.append(carried)
        return carried

    def _is_needed(self, name: str) -> bool:
        return name in self.parts.needed or name in self.parts.variables.others


class Instances:
    """The objects that variables hold after a loop, made of their attributes at its end."""

    def __init__(self, attempt: Any, names: Iterable[str]) -> None:
        self.trace, self.attempt = attempt.trace, attempt
        records = [x for name in names for x in records_in(attempt.finals[name])]
        self._times = Counter(id(x.source) for x in records)
        count = attempt.parts.count
        self._is_left = is_int(count) and count > 0  # the last iteration's are

    def of(self, name: str, value: Any) -> Any:
        before, final = self.attempt.entry.get(name, UNBOUND), self.attempt.finals[name]
        return with_objects(self._instance, final if before is UNBOUND else before, final, value)

    def _instance(self, before: ObjectRecord, final: ObjectRecord, record: ObjectRecord) -> Any:
        """It may be written if no other name can be that of the same object."""
        instance, source = built(self.trace, record), final.source
        is_own = self._is_left and self._times[id(source)] == 1 and not (
            self.attempt.opening.is_older(source) or id(source) in self.trace.local.chosen)
        if not is_own:
            choose(self.trace, instance, *(x for x in (source, before.source) if x is not None))
        return instance
