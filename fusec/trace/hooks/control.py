"""The hooks of branches, loops and logic: Python's own meaning where the test is known.

A test that data decides puts both sides, or the loop, into the graph.  A loop of known length runs
in Python (its iterations become one piece of straight-line graph) where `unrolling` says so; else
it is a loop of the graph if its body can be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

from fusec.code_roles import ON_BEHALF
from fusec.errors import ConcreteValueError, FusecError, UnsupportedError
from fusec.ir import Value

from ..choice.regions import Region
from ..control import in_python
from ..control.attempts import calls_host
from ..control.branches import branch
from ..control.finals import RebindingError
from ..control.loops import LoopParts, LoopResult, nothing_done, trace_loop
from ..control.raising import check_not, is_programs
from ..control.ranges import Counted, counted, sequence, table_items, taken_apart
from ..control.sequences import PythonIterator, table
from ..control.unrolling import (
    UNROLL,
    Visit,
    most_unrolled,
    nodes_since,
    pays_to_unroll,
    stays_unrolled,
    visit,
)
from ..convert.hooks import Hooks, Where
from ..convert.logic import Tested, joined, untested
from ..facts.known import known
from ..operands.operands import as_traced, truth
from ..operands.python_numbers import BOOL, weak
from ..places.cells import Variables, bound_by, setters_of
from ..places.effects import Effects
from ..values.array import TracedArray, number
from ..values.trace import Trace

if TYPE_CHECKING:
    from ..places.attributes import Attributes

FUSEC_ROLE = ON_BEHALF


class ControlHooks(Hooks):
    """Branches and loops of one trace."""

    trace: Trace
    effects: Effects
    attributes: Attributes
    functions: dict[FunctionType, None]  # of the program, called so far
    refused: FusecError | None = None  # why the last loop could not be in the graph

    def __init__(self) -> None:
        super().__init__()
        # Why loops could not be in the graph.  One that another loop holds is met in each of that
        # one's iterations and attempts, which all would have to find it out again.
        self.unrolled_before: dict[Visit | None, FusecError] = {}

    def variables(self, names: Iterable[str], *functions: Callable[..., Any]) -> Variables:
        """The variables that converted parts share, and the attributes that are assigned."""
        setters: dict[str, Any] = {}
        for function in functions:
            setters.update(setters_of(function))
        return Variables(self.attributes, dict.fromkeys([*names, *setters]), *functions,
                         *setters.values())

    # -- truth ------------------------------------------------------------------------------------

    def decide(self, test: Any) -> bool | None:
        """What the test is in every call; None where data decides."""
        if type(test) is Tested:
            return test.truth
        if type(test) is not TracedArray or not self.trace.active:
            return bool(test)
        if test.size != 1:
            return bool(test)  # raises NumPy's error
        found = known(test.value)
        return None if found is None else bool(found)

    def truth(self, test: Any) -> Value:
        """A test as a boolean of the graph."""
        x = as_traced(self.trace, test.truth if type(test) is Tested else test)
        value = x.value
        if x.ndim:
            value = self.trace.emit("Squeeze", value, axes=tuple(range(x.ndim)), kind="scalar")
        return truth(self.trace, value)

    def not_(self, where: Where, value: Any) -> Any:
        value = self.asked_truth(value)
        found = self.decide(value)
        self.where = where
        if found is not None:
            return not found
        opposite = self.trace.emit("LogicalNot", self.truth(value))
        return number(self.trace, weak(self.trace, opposite, BOOL))

    def any_flag(self, where: Where, *flags: Any) -> Any:
        found = [self.decide(flag) for flag in flags]
        self.where = where
        if True in found:
            return True
        unknown = [self.truth(f) for f, d in zip(flags, found, strict=True) if d is None]
        if not unknown:
            return False
        value = unknown[0]
        for other in unknown[1:]:
            value = self.trace.emit("LogicalOr", value, other)
        return number(self.trace, value)

    def undecided(
        self, where: Where, role: str, going: bool, value: Any, asked: Any,
        thunks: tuple[Callable[[], Any], ...],
    ) -> Any:
        def rest() -> Any:
            return joined(self, where, role, going, thunks[0](), thunks[1:])

        test = self.truth(asked)
        if role != "test":
            sides: list[Callable[[], Any]] = [lambda: untested(rest()), lambda: value]
        else:
            sides = [lambda: self._truth_of(rest()), lambda: not going]
        if not going:
            sides.reverse()
        variables = self.variables((), *thunks)
        with self.effects.region(*thunks):
            result = branch(self.trace, test, variables, list(variables.cells), sides[0], sides[1])
        self.where = where
        return result

    def _truth_of(self, operand: Any) -> Any:
        """A bool; Python's where data does not decide it: ``x.any() and False`` is False."""
        operand = self.asked_truth(operand)
        found = self.decide(operand)
        return number(self.trace, self.truth(operand)) if found is None else found

    def assert_(
        self, where: Where, test: Any, message: Callable[[], Any], has_message: bool
    ) -> None:
        def fail() -> None:
            raise AssertionError(message()) if has_message else AssertionError

        self.if_(where, test, _nothing, fail, ())

    # -- branches ---------------------------------------------------------------------------------

    def if_(
        self, where: Where, test: Any, then: Callable[[], None], orelse: Callable[[], None],
        needed: tuple[str, ...], read: tuple[str, ...] = (),
    ) -> None:
        """``needed``: names that may be read after the branch, ``read``: those that are."""
        test = self.asked_truth(test)
        found = self.decide(test)
        if found is not None:
            (then if found else orelse)()
        else:
            names = dict.fromkeys([*bound_by(then), *bound_by(orelse)])
            self.where = where
            with self.effects.region(then, orelse):
                branch(self.trace, self.truth(test), self.variables(names, then, orelse), needed,
                       then, orelse, read)
        self.where = where

    def if_return(
        self, where: Where, test: Any, then: Callable[[], Any], orelse: Callable[[], Any]
    ) -> Any:
        test = self.asked_truth(test)
        found = self.decide(test)
        if found is not None:
            return (then if found else orelse)()
        self.where = where
        names = dict.fromkeys([*bound_by(then), *bound_by(orelse)])
        variables = self.variables(names, then, orelse)
        with self.effects.region(then, orelse):
            bound = [*setters_of(then), *setters_of(orelse)]
            return branch(self.trace, self.truth(test), variables, bound, then, orelse)

    if_expression = if_return

    # -- loops ------------------------------------------------------------------------------------

    def while_(
        self, where: Where, test: Callable[[], Any], body: Callable[[], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        parts = LoopParts(self.variables(names, body, test), needed, body,
                          lambda: self._goes_on(where, test, stop), where)
        binds = bool(setters_of(test))
        for done in itertools.count():
            effects = len(self.trace.checks)
            writes, held = self.trace.writes, parts.variables.read()
            tested = self.asked_truth(test())
            found = self.decide(tested)
            binds = binds or self.trace.writes > writes or parts.variables.differ_from(held)
            parts.tested = self.truth(tested)
            if binds or (found is None and calls_host(self.trace, effects)):
                parts.first = parts.tested
            if found is None or (found and done == UNROLL and self._emitted(where, parts)):
                break
            if not found:
                return
            body()
            left = False if stop is None else self.decide(stop())
            if left:
                return
            if left is None:  # whether Python tests again is up to data
                parts.tested = self._goes_on(where, test, stop)
                parts.first = parts.tested if parts.first is not None else None
                found = None
                break
        if found is None:
            self.where = where
            self._while_traced(parts)
        self.where = where

    def _while_traced(self, parts: LoopParts) -> None:
        """A loop whose test data decides: one of the graph, or a check where its body raises."""
        try:
            with nothing_done(self.trace, parts.variables):
                found = self._traced(parts)
        except BaseException as error:
            self.where = parts.where
            if not is_programs(error):
                raise
            assert parts.tested is not None
            with self.effects.region(parts.body):  # its first iteration is the last
                branch(self.trace, parts.tested, parts.variables, (), parts.body, _nothing)
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
        written = self.trace.own.written_now()
        found = self._try(where, parts)
        if found is None:
            self.trace.own.restore(written)
        else:
            self._emit(found)
        return found is not None

    def _goes_on(
        self, where: Where, test: Callable[[], Any] | None, stop: Callable[[], Any] | None
    ) -> Value:
        """Whether another iteration is due: no exit was taken, and the test holds."""
        thunks = [] if test is None else [test]
        going = True if stop is None else self.not_(where, stop())
        return self.truth(self.and_(where, "test", going, *thunks))

    def for_(
        self, where: Where, over: Any, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        over = self.iterate(where, over)
        active = self.trace.active
        numbers = table(self.trace, over) if active else None
        items = counted(self.trace, over) if active and numbers is None else None
        if numbers is not None and len(numbers) > most_unrolled(body) and self._try_counted(
                where, self._parts(where, table_items(numbers), body, stop, needed, names),
                len(numbers)):
            pass  # numbers that Python knows; where it needs them, it goes over them itself
        elif items is None:
            self._from_python(where, iter(over), body, stop, names)
        elif type(items.count) is int and items.count <= most_unrolled(body):
            self._unrolled(where, items, body, stop, needed, names)
        else:
            parts = self._parts(where, items, body, stop, needed, names)
            if type(items.count) is not int:
                self._open_ended(parts, items, body, stop, names)
            elif not self._try_counted(where, parts, items.count) and not (
                    stop is None and self._in_turns(parts, items, body, names)):
                self._peeled(where, items, body, stop, needed, names)
        self.where = where

    def list_of(
        self, where: Where, over: Any, element: Callable[..., Any], count: int | None,
        plain: Callable[[Any], list[Any]],
    ) -> list[Any]:
        over = self.iterate(where, over)
        items = sequence(self.trace, over) if self.trace.active else None
        if items is None or type(items.count) is not int or items.count <= UNROLL:
            return plain(over)
        made: list[Any] = []
        call = self.call

        def body(item: Any) -> None:
            call(where, made.append, element(item) if count is None else element(
                *taken_apart(item, count)))

        parts = self._parts(where, items, body, None, (), ())
        if not self._try_counted(where, parts, items.count, of_data=True):
            return plain(over)
        if isinstance(over, PythonIterator):
            over.take()
        return made

    def reduced_where(
        self, where: Where, fn: Any, over: Any, element: Callable[..., Any],
        condition: Callable[..., Any], count: int | None, plain: Callable[[Any], Any],
    ) -> Any:
        over = self.iterate(where, over)
        by_hand = in_python.WHERE.get(fn) if self.trace.active else None
        if by_hand is None or sequence(self.trace, over) is None:
            return plain(over)
        if count is not None:
            element, condition = _of_parts(element, count), _of_parts(condition, count)
        return self.call(where, by_hand, over, element, condition)

    def _open_ended(
        self, parts: LoopParts, items: Counted, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, names: tuple[str, ...],
    ) -> None:
        """A loop whose length only the run knows."""
        written = self.trace.own.written_now()
        try:
            with nothing_done(self.trace, parts.variables):
                found = self._traced(parts)
        except RebindingError as refusal:
            self.refused = refusal
            self.trace.own.restore(written)
            if stop is not None or not self._in_turns(parts, items, body, names):
                raise
        except BaseException as error:
            self.where = parts.where
            check_not(self.trace, self.truth(items.count > 0), error)
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
        self.where = parts.where
        if due is True:
            body(items.item(at))
        elif due is not False:
            with self.effects.region(body):
                branch(self.trace, self.truth(due), parts.variables, names,
                       lambda: body(items.item(at)), _nothing)

    def _parts(
        self, where: Where, items: Counted, body: Callable[..., Any],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> LoopParts:
        return LoopParts(self.variables(names, body), needed, body,
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
            left = False if stop is None else self.decide(stop())
            if left:
                break
            if left is None and stop is not None:
                self._after_exit(where, items.after(k + 1), body, stop, needed, names)
                break
            if weigh and k == 0 and self._is_heavy(first, items.count, body, names):
                rest = items.after(1)
                if self._emitted(where, self._parts(where, rest, body, stop, needed, names)):
                    break

    def _is_heavy(
        self, first: Region, count: int, body: Callable[[Any], None], names: tuple[str, ...]
    ) -> bool:
        """Whether the rest of a loop is better a loop of the graph, by its first iteration."""
        return count > 2 and not stays_unrolled(
            nodes_since(first, self.variables(names, body)), count)

    def _after_exit(
        self, where: Where, rest: Counted, body: Callable[[Any], None], stop: Callable[[], Any],
        needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        """The iterations after one that data may have made the last."""
        found = self._try(where, self._parts(where, rest, body, stop, needed, names))
        if found is not None:
            self._emit(found)
            return
        with self.effects.region(body):
            branch(self.trace, self.truth(stop()), self.variables(names, body), names, _nothing,
                   lambda: self._unrolled(where, rest, body, stop, needed, names))

    def _peeled(
        self, where: Where, items: Counted, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        """The first iteration by itself: it may give variables the types that they keep."""
        body(items.item(0))
        left = False if stop is None else self.decide(stop())
        rest = items.after(1)
        parts = self._parts(where, rest, body, stop, needed, names)
        if left is None:
            self._emit(self._traced(parts))
        elif not left and not self._try_counted(where, parts, rest.count):
            self._unrolled(where, rest, body, stop, needed, names, weigh=False)

    def _from_python(
        self, where: Where, over: Iterator[Any], body: Callable[[Any], None],
        stop: Callable[[], Any] | None, names: tuple[str, ...],
    ) -> None:
        """Python's own iteration; what follows an exit that data decides is a branch."""
        for item in over:
            body(item)
            left = False if stop is None else self.decide(stop())
            if left:
                break
            if left is None and stop is not None:
                with self.effects.region(body):
                    branch(self.trace, self.truth(stop()), self.variables(names, body), names,
                           lambda: None,
                           lambda: self._from_python(where, over, body, stop, names))
                break

    def _try(self, where: Where, parts: LoopParts) -> LoopResult | None:
        """The loop as a node of the graph; None where Python must run its body."""
        self.where = where
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
        if note not in self.trace.notes:
            self.trace.notes.append(note)

    def _try_counted(
        self, where: Where, parts: LoopParts, count: int, of_data: bool = False
    ) -> bool:
        """Whether the loop is one of the graph now; ``of_data``: what computes with known numbers
        alone is left to Python."""
        written = self.trace.own.written_now()
        found = self._try(where, parts)
        if found is None or pays_to_unroll(found.body, count) or (of_data and not found.outer):
            self.trace.own.restore(written)
            return False
        self._emit(found)
        return True


def _several(turn: int, items: Counted, body: Callable[[Any], None], k: Any) -> None:
    """The iterations of a turn."""
    for j in range(turn):
        body(items.item(k * turn + j))


def _of_parts(function: Callable[..., Any], count: int) -> Callable[[Any], Any]:
    return lambda item: function(*taken_apart(item, count))


def _nothing() -> None:
    """The side of a branch that does nothing."""
