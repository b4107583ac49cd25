"""One attempt at tracing a loop body: what it carries, in which types, and what it needs to know.

Values that stand for those of any iteration take the place of variables and storages; afterwards
they are compared with what the body leaves behind.  What an attempt learns, `Known` keeps for the
next one.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusec.errors import UnsupportedError, unsupported, user_error
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.dims import symbols_of
from fusec.ops.checks import CHECKS, has_effects
from fusec.ops.index_checks import Use

from ..choice.aliases import shown_elsewhere
from ..choice.appended import Appended, Collector
from ..choice.joined_kinds import JoinedKinds, is_of_other_kind, note_joined
from ..choice.loop_containers import Copies, holders_of, loop_leaves
from ..choice.merge import (
    Disagreement,
    common_strides,
    converted,
    cure_for_slices,
    is_number,
    is_traced,
    joined,
    leaf_value,
    lifted,
    same,
    shown,
    unflatten,
)
from ..choice.optional import UNBOUND, Optional, aligned, assuming, likeness
from ..choice.regions import Region, placeholder
from ..choice.unbound import UnboundReads, is_users
from ..guards.container_changes import may_be_held
from ..operands.overflow import OverflowChecks
from ..operands.python_numbers import SLOW, Intervals, hull, interval, is_slow
from ..operands.sizes import SizeTable
from ..ufuncs.calls import call_ufunc
from ..values.array import TracedArray, from_value, number
from ..values.selected import roots
from ..values.storage import Storage
from ..values.trace import Trace, assign
from .carried import Carried, Known, Leaf, LoopParts
from .ranges import I64, most_trips


class RebindingError(UnsupportedError):
    """A loop binds arrays anew that it also writes: in another order each time, perhaps."""


def calls_host(trace: Trace, start: int) -> bool:
    """Whether an effect from number ``start`` on is more than a check."""
    return any(map(_calls_host, trace.record.checks[start:]))


def _calls_host(node: Node) -> bool:
    if node.op not in ("Cond", "Loop"):
        return node.op not in CHECKS
    graphs = [value for value in node.attrs.values() if isinstance(value, Graph)]
    return any(_calls_host(inner) for graph in graphs for inner in graph.nodes
               if has_effects(inner))


@dataclass
class Attempt:
    """A traced body, ready to be emitted."""

    region: Region
    test: Value
    carried: list[Carried]
    finals: dict[str, Any]  # what each variable holds after an iteration
    checks: list[Node]
    index_uses: list[Use]
    appended: list[Appended]
    arrays: dict[Leaf, TracedArray]  # what stood for arrays carried by value
    copies: Copies
    joined: set[str]  # variables that it leaves with one list or dict
    holders: Container[int]  # see `loop_leaves`

    def older_than_loop(self, leaf: Any) -> list[Storage]:
        """The memory from before the loop that an array at its end may be."""
        return _older(leaf, self.region)


def _older(leaf: Any, region: Region) -> list[Storage]:
    if type(leaf) is not TracedArray or leaf.storage is None:
        return []
    return [root for root in roots(leaf.storage) if root.born < region.start]


class Attempting:
    def __init__(
        self, trace: Trace, parts: LoopParts, known: Known, entry: dict[str, Any]
    ) -> None:
        self.trace, self.parts, self.known = trace, parts, known
        self.found, self.entry = entry, known.entry(trace, entry)
        self.entered = set(known.optional)  # which may be None in this attempt
        self.region = Region(trace)
        self.carried: list[Carried] = []
        self.appended: list[Appended] = []
        self.exits = False
        self.going: Carried | None = None  # the truth of a test with effects
        self.by_leaf: dict[Leaf, Carried] = {}
        self.arrays: dict[Leaf, TracedArray] = {}  # what stands for arrays carried by value
        self.copies = Copies(trace)
        known.holders.update(holders_of(trace))
        self.holders = dict(known.holders)
        self.checked = trace.part(OverflowChecks).count

    def run(self) -> Attempt:
        self.trace.record.loops += 1
        try:
            with assuming(self.trace):
                return self._run()
        finally:
            self.trace.record.loops -= 1

    def _run(self) -> Attempt:
        variables = self.parts.variables
        self._at_loop()
        try:
            counter = self._counter()
            self._set_up()
            test = self._test(counter)
            self._body(counter)
            self._at_loop()
            self.trace.world.outer_names.forget(self.region.start)
            finals = variables.read()
            if not self._learns_holders():
                self._compare(finals)
            return Attempt(self.region, test, self.carried, finals, self.region.take_checks(),
                           self.region.take_index_uses(), self.appended, self.arrays,
                           self.copies, self.known.joined, self.holders)
        finally:
            variables.restore(self.found)
            self.region.take_checks()
            self.region.undo()

    def _learns_holders(self) -> bool:
        """Whether the body has made variables of the items of a container that one holds."""
        self.known.holders.update(holders_of(self.trace))
        news = self.known.holders.keys() - self.holders.keys()
        found = bool(news) and any(
            loop_leaves(news, x)[1] != loop_leaves((), x)[1]
            for x in self.entry.values() if x is not UNBOUND)
        self.known.changed |= found
        return found

    def _compare(self, finals: dict[str, Any]) -> None:
        """What the body leaves, with what it found."""
        for name, value in finals.items():
            finals[name] = self._aligned(name, value)
            if name not in self.known.optional or name in self.entered:
                self._variable(name, finals[name])
        self._storages()
        self._check_sharing(finals)
        self.known.learn(self.known.joined, *self.copies.joined_by(self.entry, finals))

    def _at_loop(self) -> None:
        """What follows belongs to the line of the loop."""
        assert self.trace.hooks is not None
        self.trace.hooks.where = self.parts.where

    # -- before the body

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
        for storage in self.known.storages:
            parameter = placeholder(self.trace, storage.value.type, "array")
            self.carried.append(Carried(parameter, storage.value, storage=storage,
                                         is_needed=True))
            assign(self.trace, storage, parameter)

    def _with_parameters(self, name: str, value: Any) -> Any:
        leaves, structure = loop_leaves(self.holders, value)
        made = unflatten(structure, [
            self._parameter((name, i), leaf) for i, leaf in enumerate(leaves)])
        return self.copies.of(value, made, name in self.known.joined)

    def _parameter(self, key: Leaf, leaf: Any) -> Any:
        if key in self.known.fixed:
            return leaf
        if is_number(leaf):
            initial = leaf_value(self.trace, leaf)
            type_ = self.known.types.get(key) or initial.type
            carried = self._carry(key, type_, converted(self.trace, initial, type_))
            note_joined(self.trace, carried.parameter, initial)
            if key in self.known.open:
                self.trace.part(JoinedKinds).add(carried.parameter)
            self._bound(key, carried)
            return number(self.trace, carried.parameter)
        if key in self.known.rebound:
            leaf = lifted(self.trace, leaf)
            type_ = self.known.types.get(key) or leaf.value.type
            carried = self._carry(key, type_, converted(self.trace, leaf.value, type_))
            made = self.arrays[key] = from_value(
                self.trace, carried.parameter, common_strides(type_, leaf, leaf))
            if made.storage is not None:
                made.storage.stands_for = leaf.storage
            return made
        return leaf

    def _bound(self, key: Leaf, carried: Carried) -> None:
        """What a Python int can be in an iteration: supposed at first, see `_check_bounds`."""
        parameter, initial = carried.parameter, carried.initial
        if not parameter.type.is_weak or parameter.dtype != I64 or initial is None:
            return
        start = interval(self.trace, initial)
        bounds = self.known.bounds.get(key, SLOW) if is_slow(start) else None
        if bounds is not None:
            self.trace.part(Intervals)[parameter] = bounds

    def _check_bounds(self, key: Leaf, carried: Carried) -> None:
        """That an iteration leaves a Python int within what was supposed; a range that does not
        depend on that is news, where something had to be checked."""
        supposed = self.trace.part(Intervals).get(carried.parameter)
        if supposed is None or carried.final is None:
            return
        found = interval(self.trace, carried.final)
        if supposed is SLOW:
            if not is_slow(found):
                self.known.bounds[key], self.known.changed = None, True
            elif found is not SLOW and self.region.trace.part(OverflowChecks).count > self.checked:
                assert carried.initial is not None
                self.known.bounds[key] = hull([interval(self.trace, carried.initial), found])
                self.known.changed = True
        elif found is None or not supposed[0] <= found[0] <= found[1] <= supposed[1]:
            self.known.bounds[key], self.known.changed = None, True

    def _carry(self, key: Leaf, type_: TensorType, initial: Value | None) -> Carried:
        carried = Carried(placeholder(self.trace, type_, key[0]), initial, leaf=key)
        carried.is_needed = self._is_needed(key[0])
        self.by_leaf[key] = carried
        self.carried.append(carried)
        return carried

    # -- the body

    def _test(self, counter: TracedArray | None) -> Value:
        """A test with effects is evaluated before the loop, and at the end of each iteration."""
        if self.parts.first is not None:
            parameter = placeholder(self.trace, self.parts.first.type, "going")
            self.going = Carried(parameter, self.parts.first, leaf=("while", 0), is_needed=True)
            self.carried.append(self.going)
            return parameter
        effects, writes = len(self.trace.record.checks), self.trace.writes
        held = self.parts.variables.read()
        more = self.parts.test()
        if counter is None and (
                self.trace.writes > writes or self.parts.variables.differ_from(held)):
            self.parts.first, self.known.changed = self.parts.tested, True
        if calls_host(self.trace, effects):
            raise unsupported(
                "drawing random numbers or printing in the test of this loop", loc=self.trace.loc,
                cure="do it in the loop's body: while True: ... if not condition: break")
        if counter is None:
            return more
        self.exits = not _is_true(more)
        inside = counter < self.parts.count
        value: Value = inside.value
        return value if _is_true(more) else self.trace.emit("LogicalAnd", value, more)

    def _body(self, counter: TracedArray | None) -> None:
        if counter is None or self.parts.item is None:
            self.parts.body()
            if self.going is not None:
                self._at_loop()
                self.going.final = converted(
                    self.trace, self.parts.test(), self.going.parameter.type)
            return
        self._collecting(counter)
        self._at_loop()
        following = call_ufunc(self.trace, np.add, "__call__", (counter, 1), {}, True)
        self.carried[0].final = following.value

    def _collecting(self, counter: TracedArray) -> None:
        """The body of a loop of known length: what it appends to lists goes into arrays."""
        assert self.parts.item is not None
        effects = self.trace.hooks.effects  # type: ignore[union-attr]
        known = type(self.parts.count) is int and not self.exits and self.parts.written is None
        collector = Collector(self.trace, self.parts.body, self.entry) if known else None
        effects.collectors.append(collector)
        try:
            self.parts.body(self.parts.item(counter))
        finally:
            effects.collectors.pop()
        if collector is not None:
            collector.check(self.region.written())
            for key, rows, leaf in collector.rows(self.parts.count):
                final = self.trace.emit("PickUpdate", rows, leaf, counter.value, axes=(0,),
                                        safe=(0,))
                self.carried.append(Carried(rows, None, final, key, is_needed=True))
            self.appended = collector.found

    # -- after the body

    def _aligned(self, name: str, value: Any) -> Any:
        """What a variable holds at the end, as an optional value where it may be None."""
        before = self.entry.get(name, UNBOUND)
        if name not in self.entry or value is UNBOUND:
            return value
        if before is UNBOUND:
            if is_users(name) and self._may_stay_unbound(name, value):
                like = value.held if type(value) is Optional else value
                self.known.learn_optional(name, Optional(True, likeness(like), name))
            return value
        wanted, value = aligned(self.trace, before, value)
        if loop_leaves(self.holders, wanted)[1] != loop_leaves(self.holders, before)[1]:
            self.known.learn_optional(name, likeness(wanted))
        return value

    def _may_stay_unbound(self, name: str, value: Any) -> bool:
        """Whether an iteration need not bind it, or may read what an earlier one bound."""
        return name in self.trace.part(UnboundReads) or (
            type(value) is Optional and value.name == name)

    def _variable(self, name: str, value: Any) -> None:
        if name not in self.entry:  # an attribute: from now on it is known that it is assigned
            self.known.changed = True
            return
        before = self.entry[name]
        if value is UNBOUND:
            return
        if before is UNBOUND:
            if name in self.parts.variables.attributes.current:
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
            raise self._disagreement(name, before, value)
        for i, (a, b) in enumerate(zip(old, leaves, strict=True)):
            self._leaf((name, i), a, b)

    def _is_needed(self, name: str) -> bool:
        return name in self.parts.needed or name in self.parts.variables.others

    def _made_in_body(self, name: str, value: Any) -> None:
        """A variable without a value before the loop: the last iteration's is its result."""
        for i, leaf in enumerate(loop_leaves(self.holders, value)[0]):
            if is_number(leaf) or is_traced(leaf):
                final = leaf_value(self.trace, leaf)
                self._check_size(name, final.type)
                if type(leaf) is TracedArray or not _is_constant(final):
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
        if is_number(before) and key not in self.known.moving and (
                same(before, after) or self._is_parameter(carried, after)):
            self.known.learn(self.known.fixed, key)
            return
        before, after = lifted(self.trace, before), lifted(self.trace, after)
        if not (is_number(after) or is_traced(after)):
            raise self._disagreement(key[0], before, after)
        final = leaf_value(self.trace, after)
        try:
            type_ = joined(carried.parameter.type, final.type)
        except Disagreement:
            raise self._disagreement(key[0], before, after) from None
        if type_ != carried.parameter.type:
            self.known.types[key] = type_
            self.known.changed = True
        carried.final = converted(self.trace, final, type_)
        if final.type.kind != "array" and is_of_other_kind(final.type, type_):
            self.known.learn(self.known.open, key)
        self._check_bounds(key, carried)
        if key in self.known.rebound:
            self._check_rebinding(key, before, after)

    def _is_parameter(self, carried: Carried, x: Any) -> bool:
        return is_traced(x) and x.storage is None and x.value == carried.parameter

    def _uncarried(self, key: Leaf, before: Any, after: Any) -> None:
        if same(before, after):
            return
        before, after = lifted(self.trace, before), lifted(self.trace, after)
        if is_traced(before) and before.is_array and is_traced(after) and after.is_array:
            self.known.learn(self.known.rebound, key)
        elif key in self.known.fixed and is_number(after):
            self.known.learn_moving(key)
        else:
            raise self._disagreement(key[0], before, after)

    def _disagreement(self, name: str, before: Any, after: Any) -> Exception:
        what = "slice" if type(before) is type(after) is slice else "type"
        return user_error(
            TypeError, f"the loop variable {name!r} changes its {what}", self.trace.loc,
            cure_for_slices(before, after) or "give it its final shape and kind before the loop",
            values=[("before the loop", shown(before)), ("after an iteration", shown(after))])

    def _check_rebinding(self, key: Leaf, before: TracedArray, after: TracedArray) -> None:
        """Carried by value, an array must not be seen through other names when it is written."""
        storage, name, own = after.storage, key[0], self.arrays[key].storage
        if storage is None or before.storage is None or own is None:
            return
        others = _older(after, self.region)
        if others and (own.version > 0 or any(o in self.known.storages for o in others)):
            raise self._aliased(name)
        if after.steps and storage.born < self.region.start and storage in self.known.storages:
            raise self._aliased(name)
        if any(self._is_changed(root) for root in roots(before.storage)):
            raise self._aliased(name)  # under another name, while this one may still be bound to it
        written = own.version > 0 or (storage.version > 0 and storage in [
            a.storage for a in self.arrays.values()])
        if written and (before.storage.origin is not None or _is_shared(before.storage)
                        or roots(before.storage) != [before.storage]
                        or shown_elsewhere(before.storage, {n for n, _ in self.arrays})):
            raise self._aliased(name)

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
            for key in of_one_memory(
                    {key: held[key[0]][key[1]] for key in self.arrays if key[0] in held}):
                own = self.arrays[key].storage
                if own is not None and own.version > 0:
                    raise self._aliased(key[0])

    def _storages(self) -> None:
        written = self.region.written()
        self.known.learn(self.known.storages, *written)
        for carried in self.carried:
            if carried.storage is not None:
                carried.final = carried.storage.value


def of_one_memory(leaves: dict[Leaf, Any]) -> set[Leaf]:
    """Those that show memory which another one shows too: a write to one would be seen in both."""
    shown = {key: set(roots(leaf.storage)) for key, leaf in leaves.items()
             if type(leaf) is TracedArray and leaf.storage is not None}
    times = Counter(root for found in shown.values() for root in found)
    return {key for key, found in shown.items() if any(times[root] > 1 for root in found)}


def _is_shared(storage: Storage) -> bool:
    """Whether more than one array shows the storage."""
    arrays = [x for x in gc.get_referrers(storage) if type(x) is TracedArray]
    return len(arrays) > 1


def _is_constant(value: Value) -> bool:
    return value.node.op == "Const"


def _is_true(value: Value) -> bool:
    return _is_constant(value) and bool(value.node.attrs["value"])
