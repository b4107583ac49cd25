"""The values at the end of a loop's body, compared with those at its beginning.

That completes the carried values, or says which facts another attempt has to know.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from fusec.errors import UnsupportedError, unsupported, user_error
from fusec.ir import TensorType, Value
from fusec.ir.sizes.dims import symbols_of

from ..choice.aliases import memory_of, shown_elsewhere
from ..choice.choice import Choice
from ..choice.half_choices import UnboundReads, is_users
from ..choice.joined_containers import holders_of, loop_leaves
from ..choice.joined_kinds import is_of_other_kind
from ..choice.merge import (
    Disagreement,
    converted,
    cure_for_kind,
    is_number,
    is_traced,
    joined,
    leaf_value,
    lifted,
    misfit,
    same,
    shown,
)
from ..choice.optional_values import aligned, likeness
from ..choice.records import HoldsItself, before_all
from ..choice.regions import TraceRegion
from ..guards.container_changes import may_be_held
from ..guards.places import UNBOUND, Absent, Attribute
from ..operands.overflow import OverflowChecks
from ..operands.perhaps_pythons import Pythons, is_perhaps_pythons
from ..operands.python_numbers import SLOW, Intervals, hull, interval, is_slow
from ..operands.sizes import SizeTable
from ..values.array import TracedArray
from ..values.selected_arrays import roots
from ..values.storage import Storage
from ..values.trace import Trace
from .loop_facts import Carried, Leaf
from .parameters import Parameters


class RebindingError(UnsupportedError):
    """A loop binds arrays anew that it also writes: in another order each time, perhaps."""


class Finals(Parameters):
    """The comparison after the body."""

    finals: dict[str, Any]  # what each variable holds after an iteration

    def _compare(self, finals: dict[str, Any]) -> None:
        """The variables and storages at the end of the body, with those at its beginning."""
        for name, value in finals.items():
            finals[name] = self._aligned(name, value)
            if name not in self.facts.optional or name in self.entered:
                self._variable(name, finals[name])
        self._storages()
        self._check_sharing(finals)
        self.facts.learn(self.facts.joined, *self.copies.joined_by(self.entry, finals))
        self.facts.learn(self.facts.parted, *self.copies.parted_by(self.entry, finals))
        self.copies.note_strays(finals)
        self._keep_changed()
        moved = None if self.facts.changed else self.copies.changed_and_moved(self.entry, finals)
        if moved is not None:
            raise _aliased_container(self.trace, moved)

    def _keep_changed(self) -> None:
        """Changes of the body to a list, other names may read after the loop, if not this one."""
        changed = [name for name, value in self.entry.items()
                   if value is not UNBOUND and not self._is_needed(name)
                   and self.copies.changed_for_others(name, value)]
        if changed:
            self.parts.needed = (*self.parts.needed, *changed)
            self.facts.changed = True

    def _learns_holders(self) -> bool:
        """Whether the body has made variables of the items of a container that one holds."""
        self.facts.holders.update(holders_of(self.trace))
        news = self.facts.holders.keys() - self.holders.keys()
        is_new = bool(news) and any(
            loop_leaves(news, x)[1] != loop_leaves((), x)[1]
            for x in self.entry.values() if x is not UNBOUND)
        self.facts.changed |= is_new
        return is_new

    def _aligned(self, name: str, value: Any) -> Any:
        """A variable's value at the end, as an optional value where it may be None."""
        before = self.entry.get(name, UNBOUND)
        if name not in self.entry or value is UNBOUND:
            return value
        if before is UNBOUND:
            value = self._opened(value)
            if is_users(name) and self._may_stay_unbound(name, value):
                like = value.orelse if type(value) is Choice else value
                self.facts.learn_optional(name, Choice(True, Absent(name), likeness(like)))
            return value
        try:
            wanted, value = aligned(before, value, (before_all(self.trace), self.opening))
        except HoldsItself as error:
            raise error.refusal(self.trace) from None
        if loop_leaves(self.holders, wanted)[1] != loop_leaves(self.holders, before)[1]:
            self.facts.learn_optional(name, likeness(wanted))
        return value

    def _opened(self, value: Any) -> Any:
        """A value with the objects that the body made as records."""
        try:
            return self.opening.opened(value)
        except HoldsItself as error:
            raise error.refusal(self.trace) from None

    def _may_stay_unbound(self, name: str, value: Any) -> bool:
        """Whether an iteration need not bind it, or may read an earlier one's value."""
        return name in self.trace.part(UnboundReads) or (
            type(value) is Choice and value.name == name)

    def _variable(self, name: str, value: Any) -> None:
        if name not in self.entry:  # an attribute: from now on it is known that it is assigned
            self.facts.changed = True
            return
        before = self.entry[name]
        if value is UNBOUND:
            return
        if before is UNBOUND:
            if self.parts.variables.kind(name) is Attribute:
                raise unsupported(
                    f"the attribute {name!r} that only a loop makes", loc=self.trace.loc,
                    cure="give it a value before the loop")
            if self._is_needed(name):
                self._made_in_body(name, value)
            return
        leaves, structure = loop_leaves(self.holders, value)
        old, old_structure = loop_leaves(self.holders, before)
        if structure != old_structure:
            if may_be_held(before) and type(before) is type(value):
                raise unsupported(
                    f"binding {name!r} to another {type(value).__name__} in a loop that changes "
                    "the items of the first", loc=self.trace.loc,
                    cure=f"change the items of one {type(value).__name__}, and bind none")
            path, *parts = misfit(before, value, lambda a, b: a)
            shown_parts = parts if path else [before, value]
            raise self._disagreement(".".join((name, *path)), *shown_parts)
        for i, (a, b) in enumerate(zip(old, leaves, strict=True)):
            self._leaf((name, i), a, b)

    def _made_in_body(self, name: str, value: Any) -> None:
        """A variable without a value before the loop: the last iteration's is its result."""
        for i, leaf in enumerate(loop_leaves(self.holders, value)[0]):
            if is_number(leaf) or is_traced(leaf):
                final = leaf_value(self.trace, leaf)
                self._check_size(name, final.type)
                if type(leaf) is TracedArray or not is_constant(final):
                    self._carry((name, i), final.type, None).final = final

    def _check_size(self, name: str, type_: TensorType) -> None:
        """Nothing that lives longer than an iteration has a size that it decides."""
        sizes = self.trace.part(SizeTable)
        definers = [sizes.definers.get(symbol) for symbol in symbols_of(type_.shape)]
        if any(v is None or not self.region.is_outer(v) for v in definers):
            raise unsupported(
                f"the array {name!r}, whose size each iteration of this loop decides, after it",
                loc=self.trace.loc, cure="compute from it in the loop what is needed later, or "
                "make it before the loop with its largest size")

    def _leaf(self, key: Leaf, before: Any, after: Any) -> None:
        carried = self.by_leaf.get(key)
        if carried is None:
            self._uncarried(key, before, after)
            return
        if is_number(before) and key not in self.facts.moving and (
                same(before, after) or self._is_parameter(carried, after)):
            self.facts.learn(self.facts.fixed, key)
            return
        before, after = lifted(self.trace, before), lifted(self.trace, after)
        if not (is_number(after) or is_traced(after)):
            raise self._disagreement(key[0], before, after)
        final = leaf_value(self.trace, after)
        entered = self.sizes.fitted(key, carried.parameter.type, final.type)
        try:
            type_ = joined(entered, final.type)
        except Disagreement:
            why = self._disagreement(key[0], before, after)
            if self.facts.learn_sizes(key, entered, final.type, why):
                return
            raise why from None
        if type_ != entered:
            self.facts.types[key] = replace(type_, shape=before.shape) if type_.shape else type_
            self.facts.changed = True
        carried.final = self.sizes.left(key, converted(self.trace, final, type_), carried)
        self._learn_kind(key, carried, final.type, is_perhaps_pythons(self.trace, final))
        self._check_bounds(key, carried)
        if key in self.facts.rebound:
            self._check_rebinding(key, before, after)

    def _learn_kind(
        self, key: Leaf, carried: Carried, final: TensorType, is_pythons: bool
    ) -> None:
        """Of a number that an iteration leaves as one of another kind, or as Python's own."""
        assert carried.final is not None
        if final.kind != "array" and is_of_other_kind(final, carried.final.type):
            self.facts.learn(self.facts.open, key)
        if carried.final.type.kind == "scalar" and is_pythons:
            if carried.parameter in self.trace.part(Pythons):  # which is known, too
                self.facts.pythons.add(key)
            else:
                self.facts.learn(self.facts.pythons, key)

    def _check_bounds(self, key: Leaf, carried: Carried) -> None:
        """That an iteration leaves a Python int within the supposed range; a range that does not
        depend on that is news, where something had to be checked."""
        supposed = self.trace.part(Intervals).get(carried.parameter)
        if supposed is None or carried.final is None:
            return
        bounds = interval(self.trace, carried.final)
        if supposed is SLOW:
            if not is_slow(bounds):
                self.facts.bounds[key], self.facts.changed = None, True
            elif bounds is not SLOW and self.region.trace.part(OverflowChecks).count > self.checked:
                assert carried.initial is not None
                found = hull([interval(self.trace, carried.initial), bounds])
                if found is not SLOW:  # which says no more than was supposed
                    self.facts.bounds[key], self.facts.changed = found, True
        elif bounds is None or not supposed[0] <= bounds[0] <= bounds[1] <= supposed[1]:
            self.facts.bounds[key], self.facts.changed = None, True

    def _is_parameter(self, carried: Carried, x: Any) -> bool:
        return is_traced(x) and x.storage is None and x.value == carried.parameter

    def _uncarried(self, key: Leaf, before: Any, after: Any) -> None:
        if same(before, after):
            return
        before, after = lifted(self.trace, before), lifted(self.trace, after)
        if is_traced(before) and before.is_array and is_traced(after) and after.is_array:
            self.facts.learn(self.facts.rebound, key)
        elif key in self.facts.fixed and is_number(after):
            self.facts.learn_moving(key)
        else:
            raise self._disagreement(key[0], before, after)

    def _disagreement(self, name: str, before: Any, after: Any) -> Exception:
        what = "slice" if type(before) is type(after) is slice else "type"
        return user_error(
            TypeError, f"the loop variable {name!r} changes its {what}", self.trace.loc,
            cure_for_kind(before, after) or "give it its final shape and kind before the loop",
            values=[("before the loop", shown(before)), ("after an iteration", shown(after))])

    def _check_rebinding(self, key: Leaf, before: TracedArray, after: TracedArray) -> None:
        """Carried by value, an array must not be seen through other names when it is written."""
        storage, name, own = after.storage, key[0], self.arrays[key].storage
        if storage is None or before.storage is None or own is None:
            return
        others = older(after, self.region)
        if others and (own.version > 0 or any(o in self.facts.storages for o in others)):
            raise self._aliased(name)
        if after.steps and storage.born < self.region.start and storage in self.facts.storages:
            raise self._aliased(name)
        if any(self._is_changed(root) for root in roots(before.storage)):
            raise self._aliased(name)  # under another name, while this one may still be bound to it
        written = own in self._written_later() or (storage.version > 0 and storage in [
            a.storage for a in self.arrays.values()])
        if written and (before.storage.origin is not None or before.storage.is_shared
                        or roots(before.storage) != [before.storage]
                        or shown_elsewhere(before.storage, self._rebound_cells())):
            raise self._aliased(name)

    def _written_later(self) -> set[Storage | None]:
        """The carried storages that the body writes, and memory bound to their names, in turn."""
        stored = [a.storage for a in self.arrays.values()]
        written, more = set[Storage | None](), {s for s in stored if s is not None and s.version}
        while not more <= written:
            written |= more
            more = {root for (name, i), a in self.arrays.items() if a.storage in written
                    for x in loop_leaves(self.holders, self.finals[name])[0][i:i + 1]
                    for root in memory_of(self.trace, x)}
        return written

    def _rebound_cells(self) -> set[int]:
        return self.parts.variables.ids(name for name, _ in self.arrays)

    def _is_changed(self, storage: Storage) -> bool:
        """Whether the body writes to memory that is older than the loop."""
        started = [c.parameter for c in self.carried if c.storage is storage]
        return storage in self.region.written() and storage.value not in started

    def _aliased(self, name: str) -> Exception:
        return RebindingError(
            f"binding {name!r} in a loop to memory that is also written and seen elsewhere is not "
            f"supported inside a fusec.jit function", loc=self.trace.loc,
            cure="copy the array before the loop, or write into it with x[...] = value instead of "
            "binding the name")

    def _check_sharing(self, finals: dict[str, Any]) -> None:
        """Of two variables that an iteration finds or leaves with one array the next may write
        neither."""
        for values in (self.entry, finals):
            held = {name: loop_leaves(self.holders, values[name])[0] for name, _ in self.arrays
                    if values.get(name, UNBOUND) is not UNBOUND}
            for key in of_one_memory(self.trace, {
                    key: held[key[0]][key[1]] for key in self.arrays if key[0] in held}):
                own = self.arrays[key].storage
                if own is not None and own.version > 0:
                    raise self._aliased(key[0])

    def _storages(self) -> None:
        written = self.region.written()
        self.facts.learn(self.facts.storages, *written)
        for carried in self.carried:
            if carried.storage is not None:
                carried.final = carried.storage.value


def _aliased_container(trace: Trace, container: Any) -> Exception:
    kind = type(container).__name__
    return RebindingError(
        f"binding a variable in a loop to another {kind}, where the {kind} is also changed and "
        "known by another name, is not supported inside a fusec.jit function", loc=trace.loc,
        cure=f"copy the {kind} before the loop: {kind}(x)")


def older(leaf: Any, region: TraceRegion) -> list[Storage]:
    return [root for root in memory_of(region.trace, leaf) if root.born < region.start]


def of_one_memory(trace: Trace, leaves: dict[Leaf, Any]) -> set[Leaf]:
    """Those that show memory which another one shows too: a write to one would be seen in both."""
    shown = {key: set(memory_of(trace, leaf)) for key, leaf in leaves.items()}
    times = Counter(root for memory in shown.values() for root in memory)
    return {key for key, memory in shown.items() if any(times[root] > 1 for root in memory)}


def is_constant(value: Value) -> bool:
    return value.node.op == "Const"
