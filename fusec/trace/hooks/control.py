"""The hooks of branches, loops and logic: Python's own meaning where the test is known.

A test that data decides puts both sides, or the loop, into the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fusec.core.code_roles import ON_BEHALF
from fusec.errors import UnsupportedError
from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import is_int

from ..choice.choice import Choice
from ..control.attempts import nothing_done
from ..control.branches import branch
from ..control.ranges import sequence, taken_apart
from ..control.sequences import PythonIterator
from ..control.unrolling import UNROLL
from ..convert import in_python
from ..convert.logic import Tested, Thunk, untested
from ..facts.constant_values import constant_value
from ..lists.appended_items import ReadWhole
from ..lists.whole_lists import settle
from ..objects.quantifiers import DECIDING, quantified
from ..objects.tracing_hooks import UNHANDLED, TracingHooks
from ..operands.operands import as_traced
from ..operands.operands import truth as truth_of
from ..operands.python_numbers import BOOL, weak
from ..places.cells import bound_by, setters_of
from ..rewrite.transformer import Where
from ..values.array import TracedArray, number
from .absence import bound, settled
from .loop_tracer import Loop, nothing

FUSEC_ROLE = ON_BEHALF


# -- truth ----------------------------------------------------------------------------------------

def take(hooks: TracingHooks, where: Where, value: Any) -> Any:
    hooks.took(value)
    return UNHANDLED


def decide(hooks: TracingHooks, test: Any) -> bool | None:
    """The truth of the test in every call; None where data decides."""
    test = settled(hooks, hooks.where, test)
    if type(test) is Choice:
        return None if hooks.decide(test.orelse) is not False else False
    hooks.took(test)
    asked = hooks.asked_truth(test)
    if asked is not test:
        return hooks.decide(asked)
    if type(test) is Tested:
        return test.truth
    if type(test) is not TracedArray or not hooks.trace.active or test.size != 1:
        return bool(test)  # of several elements it raises NumPy's error
    constant = constant_value(test.value)
    return None if constant is None else bool(constant)


_COUNTED = (dict, set, frozenset)  # whether there is something in them; others may be arrays


def truth(hooks: TracingHooks, test: Any) -> Value:
    """A test as a boolean of the graph."""
    test = bound(hooks, hooks.where, test.truth if type(test) is Tested else test)
    if type(test) is Choice:
        there = hooks.trace.emit("LogicalNot", hooks.truth(test.test))
        held = hooks.decide(test.orelse)
        return there if held else hooks.trace.emit("LogicalAnd", there, hooks.truth(test.orelse))
    asked = hooks.asked_truth(test)
    if asked is not test:
        return hooks.truth(asked)
    if isinstance(test, _COUNTED):
        test = bool(test)
    x = as_traced(hooks.trace, test)
    value = x.value
    if x.ndim:
        value = hooks.trace.emit("Squeeze", value, axes=tuple(range(x.ndim)), kind="scalar")
    return truth_of(hooks.trace, value)


def not_(hooks: TracingHooks, where: Where, value: Any) -> Any:
    value = hooks.asked_truth(value)
    answer = hooks.decide(value)
    hooks.where = where
    if answer is not None:
        return not answer
    opposite = hooks.trace.emit("LogicalNot", hooks.truth(value))
    return number(hooks.trace, weak(hooks.trace, opposite, BOOL))


def any_flag(hooks: TracingHooks, where: Where, *flags: Any) -> Any:
    answers = [hooks.decide(flag) for flag in flags]
    hooks.where = where
    if True in answers:
        return True
    unknown = [hooks.truth(f) for f, d in zip(flags, answers, strict=True) if d is None]
    if not unknown:
        return False
    value = unknown[0]
    for other in unknown[1:]:
        value = hooks.trace.emit("LogicalOr", value, other)
    return number(hooks.trace, value)


def undecided(
    hooks: TracingHooks, where: Where, role: str, going: bool, value: Any, asked: Any,
    thunks: tuple[Thunk, ...],
) -> Any:
    def rest() -> Any:
        return hooks.short_circuit(where, role, going, thunks[0](), thunks[1:])

    test = hooks.truth(asked)
    if role != "test":
        sides: list[Thunk] = [lambda: untested(rest()), lambda: value]
    else:
        sides = [lambda: _truth_of(hooks, rest()), lambda: not going]
    if not going:
        sides.reverse()
    variables = hooks.variables((), *thunks)
    with hooks.effects.region(*thunks):
        result = branch(hooks.trace, test, variables, list(variables.cells), sides[0], sides[1])
    hooks.where = where
    return result


def _truth_of(hooks: TracingHooks, operand: Any) -> Any:
    """A bool; Python's where data does not decide it: ``x.any() and False`` is False."""
    operand = hooks.asked_truth(operand)
    answer = hooks.decide(operand)
    return number(hooks.trace, hooks.truth(operand)) if answer is None else answer


def assert_(
    hooks: TracingHooks, where: Where, test: Any, message: Thunk, has_message: bool
) -> None:
    def fail() -> None:
        raise AssertionError(message()) if has_message else AssertionError

    hooks.if_(where, test, nothing, fail, ())


# -- branches -------------------------------------------------------------------------------------

def if_(
    hooks: TracingHooks, where: Where, test: Any, then: Thunk, orelse: Thunk,
    needed: tuple[str, ...], read: tuple[str, ...] = (),
) -> None:
    """``needed``: names that may be read after the branch, ``read``: those that are."""
    if_return(hooks, where, test, then, orelse, needed, read)
    hooks.where = where


def if_return(
    hooks: TracingHooks, where: Where, test: Any, then: Thunk, orelse: Thunk,
    needed: tuple[str, ...] | None = None, read: tuple[str, ...] = (),
) -> Any:
    test = hooks.asked_truth(test)
    answer = hooks.decide(test)
    if answer is not None:
        return (then if answer else orelse)()
    hooks.where = where
    names = dict.fromkeys([*bound_by(then), *bound_by(orelse)])
    variables = hooks.variables(names, then, orelse)
    left = [*setters_of(then), *setters_of(orelse)] if needed is None else needed
    with hooks.effects.region(then, orelse):
        return branch(hooks.trace, hooks.truth(test), variables, left, then, orelse, read)


# -- loops ----------------------------------------------------------------------------------------

def while_(hooks: TracingHooks, where: Where, test: Thunk, *parts: Any) -> None:
    Loop(hooks, where, *parts).while_(test)


def for_(hooks: TracingHooks, where: Where, over: Any, *parts: Any) -> None:
    Loop(hooks, where, *parts).over(over)


def list_of(
    hooks: TracingHooks, where: Where, over: Any, element: Callable[..., Any], count: int | None,
    plain: Callable[[Any], list[Any]], is_read_whole: bool = False,
) -> list[Any]:
    over = hooks.iterate(where, over)
    items = sequence(hooks.trace, over) if hooks.trace.active else None
    if items is None or not is_int(items.count) or items.count <= UNROLL:
        settle(hooks.trace, over)
        return plain(over)
    elements: list[Any] = []
    if is_read_whole:
        hooks.trace.part(ReadWhole).append(elements)
    call = hooks.call

    def body(item: Any) -> None:
        call(where, elements.append, element(item) if count is None else element(
            *taken_apart(item, count)))

    loop = Loop(hooks, where, body)
    if not loop.counted(loop.parts(items), items.count, of_data=True):
        settle(hooks.trace, over)
        return plain(over)
    if isinstance(over, PythonIterator):
        over.take()
    return elements


def list_to_fill(hooks: TracingHooks, where: Where) -> list[Any]:
    hooks.where = where
    items: list[Any] = []
    hooks.trace.part(ReadWhole).append(items)
    return items


def reduced_where(
    hooks: TracingHooks, where: Where, fn: Any, over: Any, element: Callable[..., Any],
    condition: Callable[..., Any] | None, count: int | None, plain: Callable[[Any], Any],
) -> Any:
    over = hooks.iterate(where, over)
    if condition is None:  # which that of any and all is part of
        return _reduced(hooks, where, fn, over, element, count, plain)
    by_hand = in_python.WHERE.get(fn) if hooks.trace.active else None
    if by_hand is None or sequence(hooks.trace, over) is None:
        return plain(over)
    if count is not None:
        element, condition = _of_parts(element, count), _of_parts(condition, count)
    return hooks.call(where, by_hand, over, element, condition)


def _reduced(
    hooks: TracingHooks, where: Where, fn: Any, over: Any, element: Callable[..., Any],
    count: int | None, plain: Callable[[Any], Any],
) -> Any:
    """The same of all items: a loop without a list, where there are many."""
    by_hand = in_python.OF.get(fn) if hooks.trace.active else None
    if by_hand is None:
        return plain(over)
    of = element if count is None else _of_parts(element, count)
    if fn in DECIDING:
        hooks.trace.world.outer_names.enter_parts(setters_of(element).values())
        plain = partial(quantified, hooks, where, fn, of=of, element=element)
    items = sequence(hooks.trace, over)
    if items is None or not is_int(items.count) or items.count <= UNROLL:
        return plain(over)
    written = hooks.trace.local.memory.written_now()
    try:
        with nothing_done(hooks.trace, hooks.variables((), element)):
            result = hooks.call(where, by_hand, lambda k: of(items.item(k)), items.count)
    except UnsupportedError:  # of each item by itself, perhaps not
        hooks.trace.local.memory.restore(written)
        return plain(over)
    if isinstance(over, PythonIterator):
        over.take()
    return result


def _of_parts(function: Callable[..., Any], count: int) -> Callable[[Any], Any]:
    return lambda item: function(*taken_apart(item, count))
