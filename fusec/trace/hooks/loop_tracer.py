"""Loops of the program: run in Python, put into the graph, or the one and then the other.

A loop of known length runs in Python (its iterations become one piece of straight-line graph) where
`unrolling` says so; else it is a loop of the graph if its body can be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from fusec.code_roles import ON_BEHALF
from fusec.errors import ConcreteValueError, FusecError, UnsupportedError
from fusec.ir import Value

from ..choice.regions import Region
from ..control.attempts import calls_host
from ..control.branches import branch
from ..control.carried import LoopParts
from ..control.finals import RebindingError
from ..control.loops import LoopResult, nothing_done, trace_loop
from ..control.raising import check_not, is_programs
from ..control.ranges import Counted, counted, table_items
from ..control.sequences import table
from ..control.unrolling import (
    UNROLL,
    Visit,
    most_unrolled,
    nodes_since,
    pays_to_unroll,
    stays_unrolled,
    visit,
)
from ..convert.logic import Deciding
from ..places.cells import Variables, setters_of
from ..places.effects import Effects
from ..rewrite.transformer import Where
from ..values.trace import Trace

FUSEC_ROLE = ON_BEHALF


class LoopHooks(Deciding, Protocol):
    """Hooks, as far as loops need them."""

    trace: Trace
    effects: Effects
    where: Where

    def truth(self, test: Any) -> Value: ...

    def not_(self, where: Where, value: Any) -> Any: ...

    def variables(self, names: Iterable[str], *functions: Callable[..., Any]) -> Variables: ...

    def iterate(self, where: Where, value: Any) -> Any: ...


class LoopTracer:
    """The loops of one trace."""

    refused: FusecError | None = None  # why the last loop could not be in the graph

    def __init__(self, hooks: LoopHooks) -> None:
        self.hooks = hooks
        # Why loops could not be in the graph.  One that another loop holds is met in each of that
        # one's iterations and attempts, which all would have to find it out again.
        self.unrolled_before: dict[Visit | None, FusecError] = {}

    @property
    def trace(self) -> Trace:
        return self.hooks.trace

    @property
    def effects(self) -> Effects:
        return self.hooks.effects

    def while_(
        self, where: Where, test: Callable[[], Any], body: Callable[[], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        parts = LoopParts(self.hooks.variables(names, body, test), needed, body,
                          lambda: self._goes_on(where, test, stop), where)
        binds = bool(setters_of(test))
        for done in itertools.count():
            effects = len(self.trace.record.checks)
            writes, held = self.trace.writes, parts.variables.read()
            tested = self.hooks.asked_truth(test())
            found = self.hooks.decide(tested)
            binds = binds or self.trace.writes > writes or parts.variables.differ_from(held)
            parts.tested = self.hooks.truth(tested)
            if binds or (found is None and calls_host(self.trace, effects)):
                parts.first = parts.tested
            if found is None or (found and done == UNROLL and self._emitted(where, parts)):
                break
            if not found:
                return
            body()
            left = False if stop is None else self.hooks.decide(stop())
            if left:
                return
            if left is None:  # whether Python tests again is up to data
                parts.tested = self._goes_on(where, test, stop)
                parts.first = parts.tested if parts.first is not None else None
                found = None
                break
        if found is None:
            self.hooks.where = where
            self._test_traced(parts)
        self.hooks.where = where

    def _test_traced(self, parts: LoopParts) -> None:
        """A loop whose test data decides: one of the graph, or a check where its body raises."""
        try:
            with nothing_done(self.trace, parts.variables):
                found = self._traced(parts)
        except BaseException as error:
            self.hooks.where = parts.where
            if not is_programs(error):
                raise
            assert parts.tested is not None
            with self.effects.region(parts.body):  # its first iteration is the last
                branch(self.trace, parts.tested, parts.variables, (), parts.body, nothing)
        else:
            self._emit(found)

    def _emit(self, found: LoopResult) -> None:
        """Put the loop into the graph, if what it appends to is not older than a region around."""
        for appended in found.attempt.appended:
            self.effects.check_change(appended.owner, "list.append", self.trace.loc)
        found.emit()

    def _traced(self, parts: LoopParts) -> LoopResult:
        with self.effects.region(parts.written or parts.body):
            return trace_loop(self.trace, parts)

    def _emitted(self, where: Where, parts: LoopParts) -> bool:
        """Whether the loop could be put into the graph."""
        written = self.trace.local.memory.written_now()
        found = self._try(where, parts)
        if found is None:
            self.trace.local.memory.restore(written)
        else:
            self._emit(found)
        return found is not None

    def _goes_on(
        self, where: Where, test: Callable[[], Any] | None, stop: Callable[[], Any] | None
    ) -> Value:
        """Whether another iteration is due: no exit was taken, and the test holds."""
        thunks = [] if test is None else [test]
        going = True if stop is None else self.hooks.not_(where, stop())
        return self.hooks.truth(self.hooks.and_(where, "test", going, *thunks))

    def for_(
        self, where: Where, over: Any, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        over = self.hooks.iterate(where, over)
        active = self.trace.active
        numbers = table(self.trace, over) if active else None
        items = counted(self.trace, over) if active and numbers is None else None
        if numbers is not None and len(numbers) > most_unrolled(body) and self.try_counted(
                where, self.parts(where, table_items(numbers), body, stop, needed, names),
                len(numbers)):
            pass  # numbers that Python knows; where it needs them, it goes over them itself
        elif items is None:
            self._from_python(where, iter(over), body, stop, names)
        elif type(items.count) is int and items.count <= most_unrolled(body):
            self._unrolled(where, items, body, stop, needed, names)
        else:
            parts = self.parts(where, items, body, stop, needed, names)
            if type(items.count) is not int:
                self._open_ended(parts, items, body, stop, names)
            elif not self.try_counted(where, parts, items.count) and not (
                    stop is None and self._in_turns(parts, items, body, names)):
                self._peeled(where, items, body, stop, needed, names)
        self.hooks.where = where

    def _open_ended(
        self, parts: LoopParts, items: Counted, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, names: tuple[str, ...],
    ) -> None:
        """A loop whose length only the run knows."""
        written = self.trace.local.memory.written_now()
        try:
            with nothing_done(self.trace, parts.variables):
                found = self._traced(parts)
        except RebindingError as refusal:
            self.refused = refusal
            self.trace.local.memory.restore(written)
            if stop is not None or not self._in_turns(parts, items, body, names):
                raise
        except BaseException as error:
            self.hooks.where = parts.where
            check_not(self.trace, self.hooks.truth(items.count > 0), error)
        else:
            self._emit(found)

    def _in_turns(
        self, parts: LoopParts, items: Counted, body: Callable[[Any], None],
        names: tuple[str, ...],
    ) -> bool:
        """Two or three iterations as one of a loop, where names then show what they showed before:
        ``u, new = new, u``.  Those that are left over follow it."""
        for turn in (2, 3) if type(self.refused) is RebindingError else ():
            trips = items.count // turn
            several = replace(
                parts, count=trips, item=lambda k: k, written=body,
                body=lambda k, turn=turn: _several(turn, items, body, k))
            if self._emitted(parts.where, several):
                self._left_over(parts, items, trips * turn, turn, body, names)
                return True
        return False

    def _left_over(
        self, parts: LoopParts, items: Counted, first: Any, turn: int,
        body: Callable[[Any], None], names: tuple[str, ...],
    ) -> None:
        for at in range(turn - 1):
            due = items.count - first > at
            self._one_left_over(parts, due, items.after(at), first, body, names)

    def _one_left_over(
        self, parts: LoopParts, due: Any, items: Counted, at: Any, body: Callable[[Any], None],
        names: tuple[str, ...],
    ) -> None:
        self.hooks.where = parts.where
        if due is True:
            body(items.item(at))
        elif due is not False:
            with self.effects.region(body):
                branch(self.trace, self.hooks.truth(due), parts.variables, names,
                       lambda: body(items.item(at)), nothing)

    def parts(
        self, where: Where, items: Counted, body: Callable[..., Any],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> LoopParts:
        return LoopParts(self.hooks.variables(names, body), needed, body,
                         lambda: self._goes_on(where, None, stop), where, items.count, items.item)

    def _unrolled(
        self, where: Where, items: Counted, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
        weigh: bool = True,
    ) -> None:
        """One iteration after the other; from the first exit that data decides on, a loop, or
        branches where no loop can carry what the rest does; a loop, too, after a first iteration
        that is too heavy to be repeated."""
        first = Region(self.trace)
        for k in range(items.count):
            body(items.item(k))
            left = False if stop is None else self.hooks.decide(stop())
            if left:
                break
            if left is None and stop is not None:
                self._after_exit(where, items.after(k + 1), body, stop, needed, names)
                break
            if weigh and k == 0 and self._is_heavy(first, items.count, body, names):
                rest = items.after(1)
                if self._emitted(where, self.parts(where, rest, body, stop, needed, names)):
                    break

    def _is_heavy(
        self, first: Region, count: int, body: Callable[[Any], None], names: tuple[str, ...]
    ) -> bool:
        """Whether the rest of a loop is better a loop of the graph, by its first iteration."""
        return count > 2 and not stays_unrolled(
            nodes_since(first, self.hooks.variables(names, body)), count)

    def _after_exit(
        self, where: Where, rest: Counted, body: Callable[[Any], None], stop: Callable[[], Any],
        needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        """The iterations after one that data may have made the last."""
        found = self._try(where, self.parts(where, rest, body, stop, needed, names))
        if found is not None:
            self._emit(found)
            return
        with self.effects.region(body):
            branch(self.trace, self.hooks.truth(stop()), self.hooks.variables(names, body), names,
                   nothing, lambda: self._unrolled(where, rest, body, stop, needed, names))

    def _peeled(
        self, where: Where, items: Counted, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        """The first iteration by itself: it may give variables the types that they keep."""
        body(items.item(0))
        left = False if stop is None else self.hooks.decide(stop())
        rest = items.after(1)
        parts = self.parts(where, rest, body, stop, needed, names)
        if left is None:
            self._emit(self._traced(parts))
        elif not left and not self.try_counted(where, parts, rest.count):
            self._unrolled(where, rest, body, stop, needed, names, weigh=False)

    def _from_python(
        self, where: Where, over: Iterator[Any], body: Callable[[Any], None],
        stop: Callable[[], Any] | None, names: tuple[str, ...],
    ) -> None:
        """Python's own iteration; what follows an exit that data decides is a branch."""
        for item in over:
            body(item)
            left = False if stop is None else self.hooks.decide(stop())
            if left:
                break
            if left is None and stop is not None:
                with self.effects.region(body):
                    branch(self.trace, self.hooks.truth(stop()),
                           self.hooks.variables(names, body), names, lambda: None,
                           lambda: self._from_python(where, over, body, stop, names))
                break

    def _try(self, where: Where, parts: LoopParts) -> LoopResult | None:
        """The loop as a node of the graph; None where Python must run its body."""
        self.hooks.where = where
        begun = visit(where, parts)
        if begun in self.unrolled_before:
            self.refused = self.unrolled_before[begun]
            return None
        try:
            with nothing_done(self.trace, parts.variables):
                return self._traced(parts)
        except (ConcreteValueError, UnsupportedError, TypeError) as error:
            if not isinstance(error, FusecError):
                raise
            self.refused = error
            if begun is not None:
                self.unrolled_before[begun] = error
            self._note_unrolled(where, parts, error)
            return None

    def _note_unrolled(self, where: Where, parts: LoopParts, error: FusecError) -> None:
        """What `fusec.explain` says of a loop that the graph refused."""
        loc, count = self.trace.loc, parts.count
        length = f"{count} iterations" if type(count) is int else "known length"
        why = str(error).splitlines()[0]
        note = f"{loc}: a loop of {length} is unrolled, for it cannot be in the graph: {why}"
        if note not in self.trace.record.notes:
            self.trace.record.notes.append(note)

    def try_counted(
        self, where: Where, parts: LoopParts, count: int, of_data: bool = False
    ) -> bool:
        """Whether the loop is one of the graph now; ``of_data``: what computes with known numbers
        alone is left to Python."""
        written = self.trace.local.memory.written_now()
        found = self._try(where, parts)
        if found is None or pays_to_unroll(found.body, count) or (of_data and not found.outer):
            self.trace.local.memory.restore(written)
            return False
        self._emit(found)
        return True


def _several(turn: int, items: Counted, body: Callable[[Any], None], k: Any) -> None:
    """The iterations of a turn."""
    for j in range(turn):
        body(items.item(k * turn + j))


def nothing() -> None:
    """The side of a branch that does nothing."""
