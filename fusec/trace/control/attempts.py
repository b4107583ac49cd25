"""One attempt at tracing a loop body: the carried values, their types, and the facts it needs.

Values that stand for those of any iteration take the place of variables and storages; afterwards
they are compared with those at the end of the body.  Facts that an attempt learns, `LoopFacts`
keeps for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fusec.errors import ConcreteValueError, unsupported
from fusec.ir import Node, Value
from fusec.ir.sizes.symbolic_numbers import is_int
from fusec.ops import get
from fusec.ops.calls.checks import has_effects, is_check
from fusec.ops.calls.index_checks import Use

from ..choice.aliases import LoopBound, held_by
from ..choice.merge import converted
from ..choice.optional_values import assuming
from ..choice.regions import TraceRegion, placeholder
from ..guards.places import Places
from ..lists.appended_items import Collector
from ..lists.item_containers import ItemContainers
from ..places.cells import CellVariables
from ..ufuncs.ufunc_calls import call_ufunc
from ..values.array import TracedArray
from ..values.rows import RowStorage
from ..values.storage import Storage
from ..values.trace import Trace
from .finals import Finals, is_constant, older
from .loop_facts import Carried
from .raised_exceptions import is_programs
from .ranges import GoneOver


def calls_host(trace: Trace, start: int) -> bool:
    """Whether an effect from number ``start`` on is more than a check."""
    return any(map(_calls_host, trace.record.checks[start:]))


def _calls_host(node: Node) -> bool:
    if not get(node.op).is_control:
        return not is_check(node)
    return any(_calls_host(inner) for graph in node.graphs for inner in graph.nodes
               if has_effects(inner))


class Attempt(Finals):
    """The parameters, the test, the body, and the comparison; then a traced body, to be emitted."""

    test: Value
    checks: list[Node]
    collector: Collector | None = None
    containers: ItemContainers | None = None
    index_uses: list[Use]

    def run(self) -> None:
        self.trace.record.loops += 1
        try:
            with assuming(self.trace):
                self._run()
        finally:
            self.trace.record.loops -= 1

    def older_than_loop(self, leaf: Any) -> list[Storage]:
        """The memory from before the loop that an array at its end may be."""
        return older(leaf, self.region)

    def _run(self) -> None:
        variables = self.parts.variables
        self._at_loop()
        try:
            counter = self._counter()
            self._set_up()
            self.test = self._test(counter)
            self._body(counter)
            self._at_loop()
            self.trace.part(Places).forget(self.region.start)
            self.finals = variables.read()
            if not self._learns_holders():
                self._compare(self.finals)
                self.sizes.settle(self.exits)
                self._settle_lists()
            self.checks = self.region.take_checks()
            self.index_uses = self.region.take_index_uses()
        finally:
            variables.restore(self.bindings)
            self.region.take_checks()
            self.region.undo()

    def _check_gone_over(self) -> None:
        """Raise where the body changes a list that it goes over, or an array there."""
        written = [s for s in self.region.written() if isinstance(s, RowStorage)]
        changed = self.appended_to
        for over, items in self.trace.part(GoneOver) if written or changed else ():
            if any(over is x for x in changed) or not {
                    x.storage for x in items}.isdisjoint(written):
                raise ConcreteValueError(
                    "a list is changed in a loop that goes over it", loc=self.trace.loc,
                    cure="go over a copy of it, with copies of its arrays")

    @property
    def appended_to(self) -> list[Any]:
        """The lists that the iterations append to."""
        grown = () if self.lists is None else self.lists.lists.values()
        return [*(one.owner for one in self.appended),
                *(one.owner for one in grown if type(one.owner) is list and one.filled.per)]

    def _settle_lists(self) -> None:
        """Settle the lists that the body appends to."""
        if self.facts.changed:
            return
        if self.collector is not None and self.collector.appends:
            self.collector.check(self.region.written(), self._written_later())
        self._check_gone_over()
        names = self.parts.variables.needed(self.parts.needed)
        if self.containers is not None:
            self.containers.check(self.finals, names)
        if self.lists is None:
            return
        needed = [self.finals[name] for name in names]
        self.lists.settle(self.finals, needed, self.region.written(), self._written_later())

    def _at_loop(self) -> None:
        """Nodes made inside belong to the line of the loop."""
        assert self.trace.hooks is not None
        self.trace.hooks.where = self.parts.where

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
            self.parts.first, self.facts.changed = self.parts.tested, True
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
        """The body of a loop of known length: its items of lists go into arrays."""
        assert self.parts.item is not None
        effects = self.trace.hooks.effects  # type: ignore[union-attr]
        is_counted = is_int(self.parts.count) and not self.exits and self.parts.written is None
        containers = ItemContainers(self.trace, held_by(self.parts.body), self.entry)
        collector = Collector(
            self.trace, self.parts.body, self.entry, containers) if is_counted else None
        effects.collectors.append(collector)
        lists = self.lists if is_counted else None
        try:
            if lists is not None:
                lists.begin(counter, containers)
            self.parts.body(self.parts.item(counter))
        except BaseException as error:
            if collector is not None and is_programs(error):
                collector.check_reads()
            raise
        finally:
            effects.collectors.pop()
            if lists is not None:
                lists.end()
        if collector is not None:
            collector.check_reads()
            self.collector, self.containers = collector, containers
            for key, rows, leaf in collector.rows(self.parts.count):
                final = self.trace.emit("PickUpdate", rows, leaf, counter.value, axes=(0,),
                                        safe=(0,))
                self.carried.append(Carried(rows, None, final, key, is_needed=True))
            self.appended = collector.appends


def _is_true(value: Value) -> bool:
    return is_constant(value) and bool(value.node.attrs["value"])


@contextmanager
def nothing_done(trace: Trace, variables: CellVariables) -> Iterator[None]:
    """Takes back the changes of an abandoned attempt to variables and storages."""
    entry, region, chosen = variables.read(), TraceRegion(trace), dict(trace.local.chosen)
    bound = LoopBound(trace.part(LoopBound))
    try:
        yield
    except BaseException:
        trace.local.chosen = chosen
        trace.put(bound)
        variables.restore(entry)
        region.undo()
        raise
