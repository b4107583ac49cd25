"""Loops in the graph: the body is traced once, on values that stand for those of any iteration.

Which variables and storages a loop carries, and in which types, is found by trying: an attempt that
finds a write to one more storage, a variable bound to another array, or a wider type starts again
with that known.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fusec.errors import unsupported
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.symbolic_numbers import is_int
from fusec.ops.calls.checks import has_effects, is_check

from ..choice.aliases import memory_of, note_rebound, shown_elsewhere
from ..choice.choice import Choice
from ..choice.half_choices import is_users
from ..choice.joined_containers import loop_leaves
from ..choice.joined_kinds import note_joined
from ..choice.merge import common_strides, lifted, unflatten
from ..choice.regions import captures, subgraph
from ..facts.constant_values import constant_value
from ..guards.container_changes import may_be_held
from ..guards.places import UNBOUND, Absent
from ..guards.side_effects import warn_of_dtype
from ..lists.appended_items import Shown
from ..lists.shared_items import SharedItems
from ..lists.tables_of_loops import MOST_KNOWN, WrittenLists
from ..operands.index_uses import lost_checks, note_inside
from ..operands.perhaps_pythons import Pythons, note_pythons
from ..operands.python_numbers import Intervals
from ..values.array import TracedArray, from_value, number
from ..values.rows import Rows, place_of
from ..values.selected_arrays import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace, assign
from .attempts import Attempt
from .finals import is_constant, of_one_memory
from .loop_facts import Carried, EarlierFacts, Leaf, LoopFacts, LoopParts, MetBefore
from .parameters import Instances

MAX_ATTEMPTS = 12


def trace_loop(trace: Trace, parts: LoopParts, lists: WrittenLists) -> LoopResult:
    """The loop traced, nothing of it done yet: `LoopResult.emit` puts it into the graph."""
    met = trace.part(MetBefore)
    supposed = met.supposed(trace, parts)
    if supposed is not None:
        with contextlib.suppress(Exception):  # what is wrong is found again without
            attempt = _settled(trace, parts, supposed.facts())
            if _holds(supposed, attempt):
                return _result(attempt, lists)
        del met[parts.where]
    attempt = _settled(trace, parts, LoopFacts())
    met.note(parts.where, attempt.facts)
    return _result(attempt, lists)


def _result(attempt: Attempt, lists: WrittenLists) -> LoopResult:
    needed = attempt.parts.variables.needed(attempt.parts.needed)
    lists.check([attempt.finals.get(name) for name in needed])
    return LoopResult(attempt, lists)


def _holds(supposed: EarlierFacts, attempt: Attempt) -> bool:
    """Whether the body did all of it again.  That numbers stay is found by any attempt."""
    bound = (attempt.by_leaf.get(key) for key in supposed.rebound)
    return all(c is not None and c.final is not c.parameter for c in bound) and all(
        c.final is not c.parameter for c in attempt.carried if c.storage in supposed.written)


def _settled(trace: Trace, parts: LoopParts, facts: LoopFacts) -> Attempt:
    """The first attempt that learns nothing more."""
    for _ in range(MAX_ATTEMPTS):
        facts.changed = False
        attempt = Attempt(trace, parts, facts, parts.variables.read())
        try:
            attempt.run()
        except Exception as error:  # not with other sizes either: what was wrong without
            if facts.refusal is None:
                raise
            raise facts.refusal from error
        if not facts.changed:
            return attempt
    raise unsupported("a loop whose carried values do not settle", loc=trace.loc,
                      cure="give the variables their final types and shapes before the loop")


class LoopResult:
    """A loop that can be put into the graph, or be dropped."""

    def __init__(self, attempt: Attempt, lists: WrittenLists) -> None:
        self.attempt, self.trace, self.lists = attempt, attempt.trace, lists
        self.parts, self.entry = attempt.parts, attempt.entry
        self.ran: Value | None = None  # whether there was an iteration
        self.shown: Shown = {}
        self.carried = _live(self.attempt)
        lost = lost_checks(self.trace, self.attempt.index_uses, self._needed())
        if lost:
            self.attempt.checks += lost
            self.carried = _live(self.attempt)
        self.outer: list[Value] = []
        self.test, self.body = self._graphs()

    def _needed(self) -> list[Node]:
        """The nodes of the loop's results and effects."""
        finals = [c.final.node for c in self.carried if c.final is not None]
        return [self.attempt.test.node, *finals, *self.attempt.checks]

    def _graphs(self) -> tuple[Graph, Graph]:
        attempt = self.attempt
        parameters = [c.parameter for c in self.carried]
        finals = [c.final if c.final is not None else c.parameter for c in self.carried]
        checks = [n.out() for n in attempt.checks]
        self.outer = captures(attempt.region, [attempt.test, *finals, *checks])
        scalars = [v for v in finals if v.type.kind != "array"]
        arrays = [(i, v) for i, v in enumerate(finals) if v.type.kind == "array"]
        return (subgraph("test", [attempt.test], parameters, self.outer),
                subgraph("body", scalars, parameters, self.outer, arrays, attempt.checks))

    def emit(self) -> None:
        """Put the loop into the graph; variables and storages then hold its results."""
        trace = self.trace
        for carried in self.carried:
            self._warn_of_dtype(carried)
        initial = [c.initial if c.initial is not None else _zeros(trace, c.parameter.type)
                   for c in self.carried]
        names = tuple(_title(c) for c in self.carried)
        value = trace.emit("Loop", *initial, *self.outer, test=self.test, body=self.body,
                           carried=len(self.carried), names=names)
        if self.attempt.checks:
            trace.record.checks.append(value.node)
        note_inside(trace, value.node)
        self.at_entry = [*initial, *self.outer]
        outputs = dict(zip((c.leaf for c in self.carried), value.node.outputs, strict=True))
        results = self.attempt.sizes.results(outputs)
        for carried, output in zip(self.carried, value.node.outputs, strict=True):
            self._note_kind(carried, output)
            bounds = trace.part(Intervals).get(carried.parameter)
            if bounds is not None and carried.leaf is not None:
                trace.part(Intervals)[output] = bounds
            if carried.storage is not None:
                assign(trace, carried.storage, output)
        self._bind(results)
        self.lists.store()

    def _note_kind(self, carried: Carried, output: Value) -> None:
        """Whether data decides the kind of a number after the loop."""
        count, facts = self.parts.count, self.attempt.facts
        note_joined(self.trace, output, carried.parameter)
        if carried.leaf is not None and carried.parameter in self.trace.part(Pythons) and (
                carried.leaf in facts.pythons or not (is_int(count) and count > 0)):
            note_pythons(self.trace, output)

    def pays(self) -> bool:
        """Whether it does more than to write numbers that Python knows into lists."""
        return not (self.lists.tables and self.is_of_known_numbers())

    def is_of_known_numbers(self) -> bool:
        """Whether it fills lists with numbers that the trace knows, ints of any size."""
        lists, tables = self.attempt.lists, self.lists
        if self.outer or not all(map(is_check, self.attempt.checks)) or not (
                (lists is not None and lists.are_known())
                or (tables.tables and tables.are_known and not self._is_long())):
            return False
        filled = (set() if lists is None else lists.storages) | tables.storages
        return all(c.initial is None or c.storage in filled or is_constant(c.initial)
                   for c in self.carried)

    def _is_long(self) -> bool:
        """Whether it has too many iterations for Python; asked of a size, the answer is a guard."""
        return is_int(self.parts.count) and bool(self.parts.count > MOST_KNOWN)

    def _warn_of_dtype(self, carried: Carried) -> None:
        """An array that the loop, if it runs, leaves with another dtype has that one before too."""
        key, dtype = carried.leaf, carried.parameter.dtype
        before = self._before(key) if key in self.attempt.arrays else None
        is_sure = is_int(self.parts.count) and self.parts.count > 0
        if key is None or before is None or before.dtype == dtype or is_sure:
            return
        origin = lifted(self.trace, before).value.node.loc
        after = carried.final.node.loc if carried.final is not None else None
        warn_of_dtype(self.trace, key[0], (before.dtype, origin), (dtype, after))

    def _bind(self, results: dict[Leaf | None, Value]) -> None:
        needed = self.parts.variables.needed(self.parts.needed)
        news = self._appended(results)
        held = {name: loop_leaves(self.attempt.holders, value) for name in needed if (
                    value := self.attempt.finals.get(name, UNBOUND)) is not UNBOUND}
        self.aliased = of_one_memory(self.trace, {
            (name, i): leaf for name, (leaves, _) in held.items() for i, leaf in enumerate(leaves)})
        self.shown_before = Counter(root for key in self.attempt.arrays if key[0] in held
                                    for root in memory_of(self.trace, self._before(key)))
        instances = Instances(self.attempt, held)
        left = {name: self._restored(name, unflatten(structure, [
            self._leaf((name, i), leaf, results) for i, leaf in enumerate(leaves)]))
            for name, (leaves, structure) in held.items()}
        self.parts.variables.write({
            name: self._with_missing(name, instances.of(name, x)) for name, x in left.items()})
        self._note_rebound()
        self._append(news)

    def _note_rebound(self) -> None:
        """Lists and dicts of which the loop, or another name, may have the one from before."""
        rebound = self.attempt.copies.rebound
        may_not_run = not (is_int(self.parts.count) and self.parts.count > 0)
        entered = self._entered() if rebound and may_not_run else None
        chosen = self.attempt.copies.chosen() if rebound else []
        note_rebound(self.trace, rebound, may_not_run, entered, chosen)

    def _restored(self, name: str, value: Any) -> Any:
        result = self.attempt.copies.restored(
            self.entry.get(name, UNBOUND), self.attempt.finals[name], value)
        if may_be_held(result) and name in self.attempt.facts.joined:
            self.trace.note_chosen(result)
        return result

    def _with_missing(self, name: str, value: Any) -> Any:
        """A variable that every iteration binds, and nothing if there is none."""
        if self.entry.get(name) is not UNBOUND or not is_users(name):
            return value
        if is_int(self.parts.count) and self.parts.count > 0:
            return value
        if self.ran is None:
            self.ran = self.parts.first if self.parts.first is not None else self._entered()
        if self.ran is None or constant_value(self.ran):
            return value
        never = number(self.trace, self.trace.emit("LogicalNot", self.ran))
        return Choice(never, Absent(name), value)

    def _appended(self, results: dict[Leaf | None, Value]) -> list[Iterator[Any]]:
        """The elements that the iterations appended, for each append of the body."""
        count, start, attempt = self.parts.count, self.attempt.region.start, self.attempt
        shared = SharedItems(attempt.appended, () if attempt.lists is None else (
            attempt.lists.lists.values()), start, self._left)
        if attempt.lists is not None:
            attempt.lists.extend(count, shared)
        news = [one.extend(self.trace, [results[key] for key in one.keys], count, start,
                           shared.others)
                for one in attempt.appended]
        self.shown = {} if attempt.lists is None else attempt.lists.shown()
        for one in attempt.appended:
            self.shown.update(one.shown)
        return news

    def _left(self, storage: Storage) -> list[Storage]:
        """The memory that the variable of a carried array is left with."""
        return [root for key, array in self.attempt.arrays.items() if array.storage is storage
                for root in memory_of(self.trace, loop_leaves(
                    self.attempt.holders, self.attempt.finals[key[0]])[0][key[1]])]

    def _append(self, news: list[Iterator[Any]]) -> None:
        """Lists get them."""
        if len(news) == 1:
            self.attempt.appended[0].owner.extend(news[0])
            return
        for items in zip(*news, strict=True):
            for one, item in zip(self.attempt.appended, items, strict=True):
                one.owner.append(item)

    def _leaf(self, key: Leaf, leaf: Any, results: dict[Leaf | None, Value]) -> Any:
        if key in results:
            others = self.attempt.older_than_loop(leaf)
            if others or key in self.aliased:
                others += [root for s in self._may_be(key, leaf)[0] for root in roots(s)]
                return TracedArray(self.trace, Copied(self.trace, results[key], others))
            shown = self._shown_item(leaf) if self.shown else None
            return self._array_or_number(key, leaf, results[key]) if shown is None else (
                self._also_item(results[key], *shown))
        before = self.entry[key[0]]
        return leaf if before is UNBOUND else loop_leaves(self.attempt.holders, before)[0][key[1]]

    def _shown_item(self, leaf: Any) -> tuple[TracedArray, bool] | None:
        """The item of a list that shows an array which a variable is left with, and whether only a
        part of it: one that the last iteration appended, or one before."""
        own = {a.storage: key for key, a in self.attempt.arrays.items()}
        lag, is_part, seen = 0, False, set[Leaf]()
        while type(leaf) is TracedArray and leaf.storage is not None:
            is_part = is_part or bool(leaf.steps)
            for root in roots(leaf.storage):
                if root in self.shown:
                    items, is_view = self.shown[root]
                    is_whole = lag == 0 and not is_part and not is_view and root is leaf.storage
                    return (items[-1 - lag], is_whole) if lag < len(items) else None
            key = next((own[r] for r in roots(leaf.storage) if r in own), None)
            if key is None or key in seen:
                return None
            seen.add(key)
            leaf = loop_leaves(self.attempt.holders, self.attempt.finals[key[0]])[0][key[1]]
            lag += 1
        return None

    def _also_item(self, value: Value, item: TracedArray, is_whole: bool) -> TracedArray:
        """A variable whose array is an item of a list too: a write to the one is seen in the other,
        or refused."""
        storage = item.storage
        assert storage is not None
        if not is_whole or isinstance(storage, Copied) or item.type != value.type:
            return TracedArray(self.trace, Copied(self.trace, value, [storage]))
        self.trace.part(Rows)[value] = place_of(item)
        storage.value = value
        return TracedArray(self.trace, storage)

    def _array_or_number(self, key: Leaf, leaf: Any, value: Value) -> Any:
        before = self._before(key)
        like = leaf if before is None else before
        strides = common_strides(value.type, like, leaf)
        result = from_value(self.trace, value, strides)
        may_be, moved = self._may_be(key, leaf)
        if result.storage is None or not may_be:
            return result
        bound = self.parts.variables.ids(name for name, _ in self.attempt.arrays)
        shared = [s for s in may_be if self.shown_before[s] > 1 or shown_elsewhere(s, bound)]
        if not shared:
            return result
        entered = None if moved else self._entered()
        return TracedArray(self.trace, Copied(
            self.trace, value, [root for s in shared for root in roots(s)],
            strides, entered))

    def _may_be(self, key: Leaf, leaf: Any) -> tuple[list[Storage], bool]:
        """The memory from before the loop that a variable may show after it, and whether it may do
        so after an iteration: of the variable itself, and of the array behind its own."""
        before, leaf = self._before(key), lifted(self.trace, leaf)
        if any(type(x) is not TracedArray or x.storage is None for x in (before, leaf)):
            return [], False
        stood_for = {a.storage: k for k, a in self.attempt.arrays.items()}
        others = [k for root in roots(leaf.storage) if (k := stood_for.get(root)) is not None]
        return [before.storage, *(self._before(k).storage for k in others)], bool(others)

    def _before(self, key: Leaf) -> Any:
        before = self.entry[key[0]]
        return None if before is UNBOUND else lifted(
            self.trace, loop_leaves(self.attempt.holders, before)[0][key[1]])

    def _entered(self) -> Value | None:
        """Whether there is an iteration: the test on the values before the loop; None where it
        does more than to answer."""
        if any(has_effects(node) or len(node.types) > 1 for node in self.test.nodes):
            return None
        values = dict(zip(self.test.inputs, self.at_entry, strict=True))
        for node in self.test.nodes:
            if node.op != "Input":
                operands = [values[v] for v in node.inputs]
                values[node.out()] = self.trace.emit(node.op, *operands, **node.attrs)
        return values[self.test.outputs[0]]


def _title(carried: Carried) -> str:
    if carried.leaf is not None:
        return carried.leaf[0]
    return "array" if carried.storage is not None else "counter"


def _zeros(trace: Trace, type_: TensorType) -> Value:
    value = trace.builder.const(type_.zero)
    return trace.emit("BroadcastTo", value, shape=type_.shape) if type_.kind == "array" else value


def _live(attempt: Attempt) -> list[Carried]:
    """The carried values that matter: needed after the loop, or by the test or another one."""
    before = {c.parameter: () if c.final is None else (c.final,) for c in attempt.carried}
    todo = [attempt.test, *(n.out() for n in attempt.checks),
            *(c.final for c in attempt.carried if c.is_needed and c.final is not None)]
    reached = set(todo)
    while todo:
        value = todo.pop()
        news = [v for v in before.get(value, value.node.inputs) if v not in reached]
        reached.update(news)
        todo += news
    return [c for c in attempt.carried
            if c.parameter in reached or (c.is_needed and c.final is not None)]
