"""The hooks of branches, loops and logic: Python's own meaning where the test is known.

A test that data decides puts both sides, or the loop, into the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from fusec.code_roles import ON_BEHALF
from fusec.ir import Value

from ..control import in_python
from ..control.branches import branch
from ..control.ranges import sequence, taken_apart
from ..control.sequences import PythonIterator
from ..control.unrolling import UNROLL
from ..convert.hooks import Hooks
from ..convert.logic import Tested, short_circuit, untested
from ..facts.constant_values import constant_value
from ..operands.operands import as_traced, truth
from ..operands.python_numbers import BOOL, weak
from ..places.attributes import Attributes
from ..places.cells import Variables, bound_by, setters_of
from ..places.effects import Effects
from ..rewrite.transformer import Where
from ..values.array import TracedArray, number
from ..values.trace import Trace
from .loop_tracer import LoopTracer, nothing

FUSEC_ROLE = ON_BEHALF


class ControlHooks(Hooks):
    """Branches and loops of one trace."""

    trace: Trace
    effects: Effects
    attributes: Attributes
    functions: dict[FunctionType, None]  # of the program, called so far

    def __init__(self) -> None:
        super().__init__()
        self.loops = LoopTracer(self)

    def variables(self, names: Iterable[str], *functions: Callable[..., Any]) -> Variables:
        """The variables that converted parts share, and the attributes that are assigned."""
        setters: dict[str, Any] = {}
        for function in functions:
            setters.update(setters_of(function))
        return Variables(self.trace, dict.fromkeys([*names, *setters]), *functions,
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
        found = constant_value(test.value)
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
            return short_circuit(self, where, role, going, thunks[0](), thunks[1:])

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

        self.if_(where, test, nothing, fail, ())

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
        self.loops.while_(where, test, body, stop, needed, names)

    def for_(
        self, where: Where, over: Any, body: Callable[[Any], None],
        stop: Callable[[], Any] | None, needed: tuple[str, ...], names: tuple[str, ...],
    ) -> None:
        self.loops.for_(where, over, body, stop, needed, names)

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

        parts = self.loops.parts(where, items, body, None, (), ())
        if not self.loops.try_counted(where, parts, items.count, of_data=True):
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


def _of_parts(function: Callable[..., Any], count: int) -> Callable[[Any], Any]:
    return lambda item: function(*taken_apart(item, count))
