"""Loops of the program: run in Python, put into the graph, or the one and then the other.

A loop of known length runs in Python (its iterations become one piece of straight-line graph) where
`unrolling` says so; else it is a loop of the graph if its body can be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fusec.core.code_roles import ON_BEHALF
from fusec.errors import ConcreteValueError, FusecError, UnsupportedError
from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import is_int, text_of_number

from ..choice.regions import TraceRegion
from ..control import unrolling
from ..control.attempts import calls_host, nothing_done
from ..control.branches import branch
from ..control.finals import RebindingError
from ..control.loop_facts import LoopParts
from ..control.loops import LoopResult, trace_loop
from ..control.raised_exceptions import check_not, is_programs
from ..control.ranges import CountedItems, counted, listed
from ..convert.logic import Thunk
from ..guards.growing_structures import Growth
from ..lists.growing_lists import MOST_PEELED, ShortListError
from ..lists.tables_of_loops import WrittenLists
from ..lists.whole_lists import settle
from ..objects.tracing_hooks import TracingHooks
from ..places.cells import CellVariables, setters_of
from ..rewrite.transformer import Where
from .loop_forms import forms_now

FUSEC_ROLE = ON_BEHALF


class RefusedLoops(dict[unrolling.Visit | None, FusecError]):
    """Why loops could not be in the graph.  One that another loop holds is met in each of that
    one's iterations and attempts, which all would have to find it out again."""


class Loop:
    """A loop of the program.  ``names`` are the variables that its body binds, ``needed`` those of
    them read after it; ``stop`` says after an iteration whether an exit was taken."""

    refused: FusecError | None = None  # why it could not be in the graph
    test: Thunk | None = None  # of a ``while``

    def __init__(
        self, hooks: TracingHooks, where: Where, body: Callable[..., None],
        stop: Thunk | None = None, needed: tuple[str, ...] = (), names: tuple[str, ...] = (),
    ) -> None:
        self.hooks, self.trace, self.where, self.body = hooks, hooks.trace, where, body
        self.stop, self.needed, self.names, self.growth = stop, needed, names, Growth()
        self.nests, self.iterations = self.trace.part(unrolling.Nests), unrolling.Iterations()

    # -- while ------------------------------------------------------------------------------------

    def while_(self, test: Thunk) -> None:
        with self.nests.inside(self.where):
            self._while(test)

    def _while(self, test: Thunk) -> None:
        hooks, trace, self.test = self.hooks, self.trace, test
        parts = LoopParts(hooks.variables(self.names, self.body, test), self.needed, self.body,
                          self._goes_on, self.where)
        binds, last = bool(setters_of(test)), TraceRegion(trace)
        for done in itertools.count():
            effects = len(trace.record.checks)
            writes, held = trace.writes, parts.variables.read()
            tested = hooks.asked_truth(test())
            answer = hooks.decide(tested)
            binds = binds or trace.writes > writes or bool(
                parts.variables.differ_from(held))
            parts.tested = hooks.truth(tested)
            if binds or (answer is None and calls_host(trace, effects)):
                parts.first = parts.tested
            if answer is None or (answer and self._is_due(
                    done, last, parts.variables) and self._emitted(parts)):
                break
            if not answer:
                return
            last = TraceRegion(trace)
            self.body()
            answer = self._is_left()
            if answer:
                return
            if answer is None:  # whether Python tests again is up to data
                parts.tested = self._goes_on()
                parts.first = parts.tested if parts.first is not None else None
                break
        if answer is None:
            self.nests.heavy.add(self.where)
            hooks.where = self.where
            self._test_traced(parts)
        hooks.where = self.where

    def _is_due(self, done: int, last: TraceRegion, variables: CellVariables) -> bool:
        return unrolling.is_due(done, last, variables) or (
            done == 0 and self._is_nest())

    def _is_nest(self) -> bool:
        """Whether to write out an iteration would multiply the cost of many loops inside it."""
        return self.nests.are_known(self.where) or (
            self.stop is not None and unrolling.is_deep(self.body))

    def _test_traced(self, parts: LoopParts) -> None:
        """A loop whose test data decides: one of the graph, or a check where its body raises."""
        try:
            with nothing_done(self.trace, parts.variables):
                result = self._traced(parts)
        except BaseException as error:
            self.hooks.where = self.where
            if not is_programs(error):
                raise
            assert parts.tested is not None
            with self.hooks.effects.region(self.body):  # its first iteration is the last
                branch(self.trace, parts.tested, parts.variables, (), self.body, nothing)
        else:
            self._emit(result)

    def _goes_on(self) -> Value:
        """Whether another iteration is due: no exit was taken, and the test holds."""
        thunks = [] if self.test is None else [self.test]
        going = True if self.stop is None else self.hooks.not_(self.where, self.stop())
        return self.hooks.truth(self.hooks.and_(self.where, "test", going, *thunks))

    def _is_left(self) -> bool | None:
        """An iteration is done: whether an exit was taken; None where data decides."""
        self.growth.after_iteration(self._held, self.trace)
        self._tell_if_slow()
        return False if self.stop is None else self.hooks.decide(self.stop())

    def _tell_if_slow(self) -> None:
        before, self.hooks.where = self.hooks.where, self.where
        self.iterations.one_more(self.trace, self.refused)
        self.hooks.where = before

    # -- for --------------------------------------------------------------------------------------

    def over(self, over: Any) -> None:
        with self.nests.inside(self.where):
            self._over(over)

    def _over(self, over: Any) -> None:
        over = self.hooks.iterate(self.where, over)
        active = self.trace.active
        most = 0 if active and self._is_refused_otherwise() else unrolling.most_unrolled(self.body)
        known = listed(self.trace, over) if active else None
        items = counted(self.trace, over) if active and known is None else None
        if known is not None and known.count > most and self.counted(
                self.parts(known), known.count):
            pass  # a list; where Python needs its items, it goes over them itself
        elif items is None:
            settle(self.trace, over)
            self._from_python(iter(over))
        elif is_int(items.count) and items.count <= most:
            if not (self._is_nest() and self._emitted(self.parts(items))):
                self._unrolled(items)
        else:
            parts = self.parts(items)
            if not is_int(items.count):
                self._open_ended(parts, items)
            elif not self.counted(parts, items.count) and not (
                    self.stop is None and self._in_turns(parts, items)):
                self._peeled(items)
        self.hooks.where = self.where

    def _is_refused_otherwise(self) -> bool:
        return self.where in forms_now().in_graph

    def parts(self, items: CountedItems) -> LoopParts:
        return LoopParts(self._variables(), self.needed, self.body, self._goes_on, self.where,
                         items.count, items.item)

    def _held(self) -> dict[str, Any]:
        self.hooks.where = self.where
        return self._variables().read()

    def _variables(self) -> CellVariables:
        return self.hooks.variables(self.names, self.body)

    def _open_ended(self, parts: LoopParts, items: CountedItems) -> None:
        """A loop whose length only the run knows."""
        written = self.trace.local.memory.written_now()
        try:
            with nothing_done(self.trace, parts.variables):
                result = self._traced(parts)
        except RebindingError as refusal:
            self.refused = refusal
            self.trace.local.memory.restore(written)
            if self.stop is not None or not self._in_turns(parts, items):
                raise
        except BaseException as error:
            self.hooks.where = self.where
            check_not(self.trace, self.hooks.truth(items.count > 0), error)
        else:
            self._emit(result)

    def _in_turns(self, parts: LoopParts, items: CountedItems) -> bool:
        """Two or three iterations as one of a loop, where names then show their arrays from before:
        ``u, new = new, u``.  Those that are left over follow it."""
        for turn in (2, 3) if type(self.refused) is RebindingError else ():
            trips = items.count // turn
            several = replace(
                parts, count=trips, item=lambda k: k, written=self.body,
                body=lambda k, turn=turn: self._several(turn, items, k))
            if self._emitted(several):
                self._left_over(parts, items, trips * turn, turn)
                return True
        return False

    def _several(self, turn: int, items: CountedItems, k: Any) -> None:
        """The iterations of a turn."""
        for j in range(turn):
            self.body(items.item(k * turn + j))

    def _left_over(self, parts: LoopParts, items: CountedItems, first: Any, turn: int) -> None:
        for at in range(turn - 1):
            self._one_left_over(parts, items.count - first > at, items.after(at), first)

    def _one_left_over(self, parts: LoopParts, due: Any, rest: CountedItems, at: Any) -> None:
        self.hooks.where = self.where
        if due is True:
            self.body(rest.item(at))
        elif due is not False:
            self._branch(parts.variables, lambda: due, lambda: self.body(rest.item(at)), nothing)

    def _branch(self, variables: CellVariables, test: Thunk, then: Thunk, orelse: Thunk) -> None:
        """How much of the loop's rest is done is up to data."""
        with self.hooks.effects.region(self.body):
            branch(self.trace, self.hooks.truth(test()), variables, self.names, then, orelse)

    def _unrolled(self, items: CountedItems, weigh: bool = True) -> None:
        """One iteration after the other; from the first exit that data decides on, a loop, or
        branches where no loop can carry the rest's changes; a loop, too, after a first iteration
        that is too heavy to be repeated."""
        with forms_now().writing_out(self.where):
            self._one_after_the_other(items, weigh)

    def _one_after_the_other(self, items: CountedItems, weigh: bool) -> None:
        first = TraceRegion(self.trace)
        for k in range(items.count):
            self.body(items.item(k))
            left = self._is_left()
            if left:
                break
            if left is None:
                self._after_exit(items.after(k + 1))
                break
            is_light = not weigh or k > 0 or items.count <= 2 or unrolling.stays_unrolled(
                unrolling.nodes_since(first, self._variables()), items.count)
            if not is_light and self._rest_emitted(items.after(1)):
                break

    def _rest_emitted(self, rest: CountedItems) -> bool:
        self.nests.heavy.add(self.where)
        return self._emitted(self.parts(rest))

    def _after_exit(self, rest: CountedItems) -> None:
        """The iterations after one that data may have made the last."""
        if rest.count == 0:
            return
        self.nests.heavy.add(self.where)
        result = self._try(self.parts(rest))
        if result is not None:
            self._emit(result)
        else:
            self._unless_left(lambda: self._unrolled(rest))

    def _unless_left(self, rest: Thunk) -> None:
        assert self.stop is not None
        self._branch(self._variables(), self.stop, nothing, rest)

    def _peeled(self, items: CountedItems) -> None:
        """The first iterations by themselves: they may give variables the types that they keep,
        and lists the items that the others read."""
        for done in range(1, self._peels(items) + 1):
            self.body(items.item(done - 1))
            left, rest = self._is_left(), items.after(done)
            parts = self.parts(rest)
            if left is None:
                self._emit(self._traced(parts))
            if left is not False:
                return
        if not self.counted(parts, rest.count):
            self._unrolled(rest, weigh=False)

    def _peels(self, items: CountedItems) -> int:
        missing = self.refused.missing if isinstance(self.refused, ShortListError) else 1
        is_possible = 1 < missing <= MOST_PEELED and missing < items.count  # asked only if needed
        return missing if is_possible else 1

    def _from_python(self, over: Iterator[Any]) -> None:
        """Python's own iteration; code after an exit that data decides is a branch."""
        for item in over:
            self.body(item)
            left = self._is_left()
            if left is None:
                self._unless_left(lambda: self._from_python(over))
            if left is not False:
                break

    # -- in the graph -----------------------------------------------------------------------------

    def _traced(self, parts: LoopParts) -> LoopResult:
        functions = [parts.written or parts.body, *([] if self.test is None else [self.test])]
        lists = WrittenLists(self.trace, parts.variables.read(), self._must_be_carried, *functions)
        memory, refused = self.trace.local.memory, self.trace.part(RefusedLoops)
        written, known, notes = memory.written_now(), dict(refused), len(self.trace.record.notes)
        while True:
            try:
                with self.hooks.effects.region(functions[0], parts.item), lists.shown(), \
                        nothing_done(self.trace, parts.variables):
                    result = trace_loop(self.trace, parts, lists)
                if not lists.widen():
                    return result
            except ConcreteValueError:
                if not lists.learn():
                    raise
            memory.restore(written)
            refused.clear()  # loops in it may have been so because of the lists
            refused.update(known)
            del self.trace.record.notes[notes:]

    def _must_be_carried(self, x: Any) -> bool:
        """Whether a region around the loop has to carry a list of which the loop writes items."""
        return self.trace.in_region and self.hooks.effects.was_there(x)

    def _emit(self, result: LoopResult) -> None:
        """Put the loop into the graph, if its lists are not older than a region around."""
        if result.attempt.lists is not None:
            result.attempt.lists.check_are_reached()
        for owner in result.attempt.appended_to:
            self.hooks.effects.check_change(owner, "list.append", self.trace.loc)
        for owner in result.lists.written({c.storage for c in result.carried}):
            self.hooks.effects.check_change(
                owner, "assigning to an item of a container", self.trace.loc)
        result.emit()

    def _try(self, parts: LoopParts) -> LoopResult | None:
        """The loop as a node of the graph; None where Python must run its body."""
        self.hooks.where = self.where
        begun, refused = unrolling.visit(self.where, parts), self.trace.part(RefusedLoops)
        if begun in refused:
            self.refused = refused[begun]
            return None
        try:
            with nothing_done(self.trace, parts.variables):
                return self._traced(parts)
        except (ConcreteValueError, UnsupportedError, TypeError) as error:
            if not isinstance(error, FusecError):
                raise
            self.refused = error
            if begun is not None:
                refused[begun] = error
            self._note_unrolled(parts, error)
            return None

    def _note_unrolled(self, parts: LoopParts, error: FusecError) -> None:
        """The note of `fusec.explain` about a loop that the graph refused."""
        loc, count = self.trace.loc, parts.count
        length = f"{text_of_number(count)} iterations" if is_int(count) else "known length"
        why = str(error).splitlines()[0]
        note = f"{loc}: a loop of {length} is unrolled, for it cannot be in the graph: {why}"
        if note not in self.trace.record.notes:
            self.trace.record.notes.append(note)

    def _emitted(
        self, parts: LoopParts, is_wanted: Callable[[LoopResult], bool] = LoopResult.pays
    ) -> bool:
        """Whether the loop is one of the graph now."""
        written = self.trace.local.memory.written_now()
        result = self._try(parts)
        if result is None or not is_wanted(result):
            self.trace.local.memory.restore(written)
            return False
        self._emit(result)
        return True

    def counted(self, parts: LoopParts, count: int, of_data: bool = False) -> bool:
        """The same where that is better than to unroll it; ``of_data``: one that computes with
        known numbers alone is left to Python."""
        return self._emitted(parts, lambda result: self._is_refused_otherwise() or not (
            result.is_of_known_numbers() or unrolling.pays_to_unroll(result.body, count)
            or (of_data and not result.outer)))


def nothing() -> None:
    """The side of a branch that does nothing."""
