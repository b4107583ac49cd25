"""``any`` and ``all`` of items that the program computes, as far as Python goes through them.

Items that data decides are joined by ``or`` or ``and``, whoever of them decides: that is one
kernel.  An effect of an item (a write, an assignment, a draw, a possible exception) happens only
where no item before has decided, so it and all after it are in a branch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from types import GeneratorType
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ir.sizes.symbolic_numbers import is_int

from ..choice.half_choices import never_raises
from ..choice.regions import TraceRegion
from ..control.branches import branch
from ..control.raised_exceptions import is_programs
from ..control.ranges import CountedItems, sequence
from ..control.sequences import PythonIterator, TracedRange
from ..convert.logic import Thunk
from ..facts.trees import leaves_in
from ..guards.container_changes import ContainerChanges
from ..guards.side_effects import SpentIterators
from ..operands.python_numbers import weak
from ..rewrite.transformer import Where
from ..values.array import TracedArray, number
from .tracing_hooks import TracingHooks

_BOOL = np.dtype(np.bool_)
_MOST_BRANCHES = 64  # one in the other
# Who gives items and does no more.
_KNOWN = (list, tuple, dict, set, frozenset, str, range, TracedArray, TracedRange)
_END: Any = object()
DECIDING: dict[Any, bool] = {any: True, all: False}  # the truth of the item that settles it


def quantified(
    hooks: TracingHooks, where: Where, fn: Any, over: Any, of: Callable[[Any], Any],
    element: Callable[..., Any],
) -> Any:
    """``fn(of(item) for item in over)``, for ``any`` or ``all``; ``element`` is the part of the
    program that ``of`` calls."""
    quantifier = Quantifier(hooks, where, DECIDING[fn], of, element)
    items = sequence(hooks.trace, over) if isinstance(over, PythonIterator) else None
    if items is None or not is_int(items.count):
        return quantifier.of(quantifier.pulled(over))
    quantifier.roots += _seen_by(over)
    result = quantifier.of(quantifier.counted(items))
    over.take()
    return result


class Quantifier:
    """One call of ``any`` or ``all``: ``deciding`` is the truth of the item that settles it,
    ``ask`` the question about an item, by ``element`` of the program."""

    def __init__(
        self, hooks: TracingHooks, where: Where, deciding: bool, ask: Callable[[Any], Any],
        element: Callable[..., Any],
    ) -> None:
        self.hooks, self.trace, self.where = hooks, hooks.trace, where
        self.deciding, self.ask, self.element = deciding, ask, element
        self.roots: list[Any] = [element]  # functions and values that may lead to older containers
        self.is_open = False  # whether an item before may have decided
        self.acting = 0  # items in branches

    def counted(self, items: CountedItems) -> Iterator[Thunk]:
        """The elements of a sequence."""
        return (partial(lambda k: self.ask(items.item(k)), k)
                for k in range(operator.index(items.count)))

    def pulled(self, over: Iterable[Any]) -> Iterator[Thunk]:
        """Those of an iterator, once."""
        is_known, iterator = type(over) in _KNOWN, iter(over)
        self.roots += _seen_by(over)
        while True:
            pull = partial(next, iterator, _END)
            try:
                item = self._given(pull, over) if self.is_open and not is_known else pull()
            except Exception as error:
                if not self.is_open or not is_programs(error):
                    raise
                yield partial(_raise, error)
                return
            if item is _END:
                return
            yield partial(self.ask, self.hooks.lifted_item(item))
            if self.is_open and not is_known:
                self.trace.part(SpentIterators)[id(over)] = over

    def of(self, items: Iterator[Thunk]) -> Any:
        """The answer, where the first of these items is asked."""
        tests: list[Value] = []
        for item in items:
            answer = self._alone(item) if tests and not self.acting else (
                self._truth(item) if not tests else None)
            if answer is None:
                return self._rest(tests, item, items)
            if answer is self.deciding:
                return answer
            if isinstance(answer, Value):
                tests.append(answer)
                self.is_open = True
        return self._number(self._joined(tests)) if tests else not self.deciding

    def _truth(self, item: Thunk) -> bool | Value:
        """The truth in every call, or a boolean of the graph."""
        value = self.hooks.asked_truth(item())
        truth = self.hooks.decide(value)
        return self.hooks.truth(value) if truth is None else truth

    def _joined(self, tests: list[Value]) -> Value:
        return reduce(partial(
            self.trace.emit, "LogicalOr" if self.deciding else "LogicalAnd"), tests)

    def _number(self, value: Value) -> TracedArray:
        self.hooks.where = self.where
        return number(self.trace, weak(self.trace, value, _BOOL))

    # -- items that are perhaps not reached -------------------------------------------------------

    def _rest(self, tests: list[Value], item: Thunk, items: Iterator[Thunk]) -> Any:
        """The answer of these tests, else that of the item and those after it."""
        self.acting += 1
        if self.acting > _MOST_BRANCHES:
            raise unsupported(
                f"{'any' if self.deciding else 'all'}() of more than {_MOST_BRANCHES} items of "
                "which each does more than to give a value", loc=self.trace.loc,
                cure="write the loop, which ends with break where an item decides")
        variables = self.hooks.variables((), self.element)
        def following() -> Any:
            return self.of(_chained(item, items))

        def settled() -> Any:
            return self.deciding

        then, orelse = (settled, following) if self.deciding else (following, settled)
        with self.hooks.effects.region(*self.roots):
            result = branch(self.trace, self._joined(tests), variables, (), then, orelse)
        self.hooks.where = self.where
        return result

    def _alone(self, item: Thunk) -> bool | Value | None:
        """Its truth; None where it does more than to give that, all of which is taken back."""
        memory = self.trace.local.memory
        written, attempt = memory.written_now(), _Attempt(self)
        try:
            with self.hooks.effects.region(*self.roots):
                truth = self._truth(item)
            if not attempt.acted(truth):
                return truth
        except (UndecidedSizeError, RecursionError):
            raise
        except Exception:  # which the branch raises, or may raise in the run
            pass
        attempt.undo()
        memory.restore(written)
        return None

    def _given(self, pull: Thunk, over: Any) -> Any:
        """The next item; to give it must change nothing, for it is perhaps not asked for."""
        attempt = _Attempt(self)
        before = _free_variables(over)
        with self.hooks.effects.region(*self.roots):
            item = pull()
        after, containers = _free_variables(over), attempt.containers()
        is_looked_into = type(over) is GeneratorType  # others may reach what nobody sees
        if attempt.acted(item) or (containers and not is_looked_into) or any(
                after[name] is not before[name] for name in after):
            raise unsupported(
                f"{'any' if self.deciding else 'all'}() of an iterator that does more than to "
                "give items, of which data decides how many are taken", loc=self.trace.loc,
                cure="write the loop, which ends with break where an item decides")
        return item


class _Attempt:
    """An item looked at before it is known that it is reached: whether it acts, and its undoing."""

    def __init__(self, quantifier: Quantifier) -> None:
        self.trace = quantifier.trace
        self.variables = quantifier.hooks.variables((), quantifier.element)
        self.held, self.region = self.variables.read(), TraceRegion(self.trace)
        self.changes, self.count = self.trace.local.changes, self._count()

    def _count(self) -> int:
        return self.trace.part(ContainerChanges).count

    def containers(self) -> bool:
        """Whether it changed containers, be they its own."""
        return self._count() > self.count

    def acted(self, result: Any) -> bool:
        """Whether it changed something, or its result may raise."""
        trace, region = self.trace, self.region
        self.variables.places.forget(region.start)
        leaves = [result] if isinstance(result, Value) else [
            x.value for x in leaves_in(result) if type(x) is TracedArray]
        return bool(
            len(trace.record.checks) > region.first_check
            or len(trace.record.index_uses) > region.first_use
            or trace.local.changes > self.changes or region.written()
            or self.variables.differ_from(self.held)
            or not all(map(never_raises, region.made_for(leaves))))

    def undo(self) -> None:
        self.variables.restore(self.held)
        self.region.take_checks()
        self.region.undo()


def _raise(error: Exception) -> Any:
    raise error


def _chained(first: Thunk, rest: Iterator[Thunk]) -> Iterator[Thunk]:
    yield first
    yield from rest


def _seen_by(iterator: Any) -> list[Any]:
    """The objects that an iterator can reach that gave no item yet."""
    if isinstance(iterator, PythonIterator):
        return [x for part in iterator.parts for x in (part, *_seen_by(part))]
    is_ready = type(iterator) is GeneratorType and iterator.gi_frame is not None
    return list(iterator.gi_frame.f_locals.values()) if is_ready else []


def _free_variables(iterator: Any) -> dict[str, Any]:
    """The variables of functions around it that a generator sees."""
    frame = iterator.gi_frame if type(iterator) is GeneratorType else None
    if frame is None:
        return {}
    held = frame.f_locals
    return {name: held.get(name) for name in frame.f_code.co_freevars}
