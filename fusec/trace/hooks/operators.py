"""Operators: operands as NumPy and the graph take them, and comparisons part by part."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.code_roles import ON_BEHALF
from fusec.errors import unsupported
from fusec.ir.graph import Loc
from fusec.state.variable import Variable

from ..call.foreign_arrays import is_foreign, refusal
from ..choice.aliases import LoopBound
from ..choice.flat_results import identity
from ..choice.joined_kinds import check_beside_sequence, check_division
from ..convert.hooks import Hooks
from ..convert.python_operators import BINARY, IN_PLACE, REFLECTED, UNARY
from ..facts.code_names import HEAP_TYPE
from ..facts.constant_values import is_constant
from ..facts.trees import leaves_in
from ..guards.array_values import guard_identity, note_distinct
from ..guards.process_state import ENVIRONMENT
from ..objects.chosen_objects import check_which, is_of_choice
from ..objects.object_reads import note_compared, note_hashed
from ..objects.tracing_hooks import UNHANDLED, Handler, Operands, TracingHooks
from ..objects.user_methods import method_of
from ..operands import text_uses, texts
from ..operands.operands import as_traced
from ..operands.perhaps_pythons import note_computed
from ..operands.python_numbers import BOOL, weak
from ..rewrite.transformer import Where
from ..values.array import TracedArray, number
from ..values.exception_handlers import raised_at
from ..values.handlers import is_traced_inside
from . import special_methods

FUSEC_ROLE = ON_BEHALF

_WORDS = (str, bytes)
_PYTHONS = (Hooks.binop.__code__, Hooks.iop.__code__)  # where Python itself computes
_SMALL_SETS = (tuple, list, set, frozenset)
_MOST_ALTERNATIVES = 64


def repeated(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """``[0.0] * n``: an integer scalar of NumPy's repeats a list, as a Python int does; others do
    not, and make no array of it either."""
    if op == "mul" and type(a) in (list, tuple) and _is_integer_scalar(b):
        return Operands((op, a, operator.index(b)))
    if op == "mul" and type(b) in (list, tuple) and _is_integer_scalar(a):
        return Operands((op, operator.index(a), b))
    for x, other in ((a, b), (b, a)):
        if op == "mul" and type(x) in (list, tuple) and _is_no_integer(other):
            hooks.where = where
            raise hooks.trace.error(TypeError(
                f"can't multiply sequence by non-int of type '{other.kind_name}'"))
    return UNHANDLED


def _is_no_integer(x: Any) -> bool:
    return type(x) is TracedArray and not x.is_array and (
        x.dtype.kind in "fc" or (x.dtype.kind == "b" and not x.type.is_weak))


def _is_integer_scalar(x: Any) -> bool:
    return type(x) is TracedArray and not x.is_array and x.dtype.kind in "iu"


def refuse_foreign(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """Arrays of other libraries would take traced ones for objects."""
    for x, other in ((a, b), (b, a)):
        if type(x) is TracedArray and is_foreign(other):
            raise refusal(other, "the other operand", Loc._make(where))
    return UNHANDLED


def lift(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """Arrays from outside as traced ones."""
    if op not in ("is", "is not") and (hooks.is_from_outside(a) or hooks.is_from_outside(b)):
        return Operands((op, hooks.lifted(a), hooks.lifted(b)))
    return UNHANDLED


def divide(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """Numbers of which data decides whether they are Python's, which raise for 0."""
    if op in _DIVISIONS and hooks.trace.active:
        check_division(hooks.trace, op, a, b)
    return UNHANDLED


def beside_sequence(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """A number and a list, which only NumPy's number takes for an array."""
    if type(a) in (list, tuple) or type(b) in (list, tuple):
        check_beside_sequence(hooks.trace, op, a, b)
    return UNHANDLED


_DIVISIONS = frozenset({"truediv", "floordiv", "mod"})


def format_text(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """``text % values``"""
    if op != "mod" or type(a) is not str or not hooks.trace.active:
        return UNHANDLED
    hooks.watch.note_arguments(format, (b,), {})
    hooks.watch.asks((b,), {})
    b = hooks.lifted(b)
    if texts.has_open(hooks.trace, b):
        return text_uses.formatted(hooks.trace, lambda: texts.percent(hooks.trace, a, b))
    texts.check_concrete(b)
    if text_uses.has_marked(hooks.trace, a, b):
        return text_uses.formatted(hooks.trace, lambda: a % b)
    return Operands((op, a, b))


def refuse_words(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """An array and a text: NumPy's error for them, where it has nothing else to say."""
    if not (isinstance(a, _WORDS) or isinstance(b, _WORDS)) or TracedArray not in (
            type(a), type(b)) or (op == "mod" and type(b) is TracedArray):  # formatted
        return UNHANDLED
    operands = [_like(x) if type(x) is TracedArray else x for x in (a, b)]
    try:
        BINARY[op](*operands)
    except TypeError as error:
        raise hooks.trace.error(error, [
            x.value for x in (a, b) if type(x) is TracedArray]) from None
    return UNHANDLED


def _like(x: TracedArray) -> Any:
    """An array or number of this type."""
    one = np.ones((1,) * x.ndim, x.dtype)
    if x.is_array:
        return one
    return one.item() if x.type.is_weak else one[()]


def write_traced(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """The operand changed in place, if Python may: an array from outside, or one that becomes
    traced, as a traced one."""
    hooks.effects.check_change(a, "changing a container in place", hooks.loc)
    if isinstance(a, Variable):
        return UNHANDLED
    if hooks.is_from_outside(a) or (type(a) is np.ndarray and (
            is_traced_inside(b) or hooks.trace.local.memory.must_trace(a))):
        a = as_traced(hooks.trace, a)
    return Operands((op, a, hooks.lifted(b) if hooks.is_from_outside(b) else b))


def unop(hooks: TracingHooks, where: Where, op: str, a: Any) -> Any:
    result = _computed(hooks, special_methods.unop(hooks, where, op, hooks.lifted(a)))
    note_computed(hooks.trace, UNARY[op], result, a)
    return result


def computed(by: Handler) -> Handler:
    """The result of two operands; where Python knows none, it names their types in NumPy."""
    def compute(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
        try:
            result = _computed(hooks, by(hooks, where, op, a, b))
            note_computed(hooks.trace, BINARY[op], result, a, b)
            return result
        except TypeError as error:
            where_raised = raised_at(error)
            if TracedArray not in (type(a), type(b)) or where_raised is None or (
                    where_raised.tb_frame.f_code not in _PYTHONS):
                raise
            raise _complaint(hooks, error, by, op, a, b) from None

    return compute


def _complaint(
    hooks: TracingHooks, error: TypeError, by: Handler, op: str, *operands: Any
) -> Exception:
    """Python's error for the operation, of objects that can do nothing and have the names of the
    operands' types in NumPy: its messages have no other name."""
    table: Any = IN_PLACE if by is special_methods.iop else BINARY
    try:
        table[op](*map(_of_its_name, operands))
    except TypeError as complaint:
        error = complaint
    return hooks.trace.error(error, [x.value for x in operands if type(x) is TracedArray])


def _of_its_name(x: Any) -> Any:
    is_users = bool(type(x).__flags__ & HEAP_TYPE)
    name = x.kind_name if type(x) is TracedArray else type(x).__name__
    return type(name, (), {})() if is_users else x


def _computed(hooks: TracingHooks, result: Any) -> Any:
    """Remembers a new array or object; a list or tuple holds those that were there: ``L + L``."""
    if hooks.trace.active:
        references = sys.getrefcount(result)
        hooks.note_new(result, references)
    return hooks.note_local(result) if issubclass(type(result), np.ndarray) else result


def identity_of(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """``a is b`` and ``a is not b`` of objects that the trace knows more of."""
    texts.check_text(hooks.trace, a, b)
    if op not in ("is", "is not"):
        text_uses.check_inside(hooks.trace, a, b)
    if op in ("eq", "ne") and a is not b:
        check_which(hooks.trace, "==" if op == "eq" else "!=", a, b)
    if op not in ("is", "is not"):
        return UNHANDLED
    if type(a) is TracedArray and isinstance(b, bool) and a.type.is_weak and a.dtype == BOOL:
        return Operands(("eq" if op == "is" else "ne", a, b))  # there is one True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        for x in (a, b):
            if type(x) is not TracedArray:
                guard_identity(hooks.trace, x)
    if TracedArray in (type(a), type(b)):
        a, b = (hooks.traced_if_outside(x) for x in (a, b))
        same = identity(hooks.trace, a, b)
        if same is not None:
            return same if op == "is" else hooks.not_(where, same)
    if a is not b and a is not None and b is not None and is_of_choice(hooks.trace, a, b):
        raise unsupported(f"{op!r} of a {type(a).__name__} that data chooses", loc=hooks.loc,
                          cure="compare what the branches depend on")
    if a is not b:
        for x in (a, b):
            hooks.trace.part(LoopBound).check_apart(hooks.trace, x, hooks.loc)
    note_distinct(hooks.trace, a, b)
    return Operands((op, a, b))


def compare_items(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """Whether two tuples or lists are equal, item by item as far as Python would go."""
    if op not in ("eq", "ne") or type(a) is not type(b) or type(a) not in (tuple, list) or not (
            holds_open(a, b)):
        return UNHANDLED
    equal: Any = len(a) == len(b)
    if equal:
        for one, other in zip(a, b, strict=True):
            if one is not other:
                equal = hooks.and_(where, "test", equal, _equality(hooks, where, one, other))
        equal = _decided(hooks, equal)
    return equal if op == "eq" else hooks.not_(where, equal)


_ORDERS = ("lt", "le", "gt", "ge")


def order_items(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """The order of two tuples or lists: of the first items that differ, else of the lengths."""
    if op not in _ORDERS or type(a) is not type(b) or type(a) not in (tuple, list) or not (
            holds_open(a, b)):
        return UNHANDLED
    result: Any = getattr(operator, op)(len(a), len(b))
    for one, other in reversed(list(zip(a, b, strict=False))):
        same = True if one is other else hooks.compare(where, "eq", one, other)
        answer = hooks.decide(same)
        if answer is None:
            result = _either(hooks, same, result, hooks.compare(where, op, one, other))
        elif not answer:
            result = hooks.compare(where, op, one, other)
    return result


def _either(hooks: TracingHooks, test: Any, a: Any, b: Any) -> Any:
    """``a if test else b`` of truth values; NumPy's, where one is."""
    is_pythons = all(type(x) is not TracedArray or x.type.is_weak for x in (a, b))
    value = hooks.trace.emit("Where", *map(hooks.truth, (test, a, b)), kind="scalar")
    return number(hooks.trace, weak(hooks.trace, value, BOOL) if is_pythons else value)


def holds_open(*values: Any) -> bool:
    """Whether numbers that only the run knows lie in tuples or lists."""
    return any(
        type(x) is TracedArray and not x.ndim and not is_constant(x.value)
        for value in values if type(value) in (tuple, list) for x in leaves_in(value))


def _equality(hooks: TracingHooks, where: Where, item: Any, other: Any) -> Callable[[], Any]:
    return lambda: hooks.compare(where, "eq", item, other)


def _decided(hooks: TracingHooks, test: Any) -> Any:
    """A bool, Python's where data does not decide it."""
    answer = hooks.decide(test)
    return answer if answer is not None else number(
        hooks.trace, weak(hooks.trace, hooks.truth(test), BOOL))


def note_methods(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """The methods of objects that Python's own comparison calls."""
    reflected = REFLECTED.get(op, op)
    if method_of(a, f"__{op}__") is None and method_of(b, f"__{reflected}__") is None:
        note_compared(hooks, op, a, b)
    return UNHANDLED


def find_in_array(hooks: TracingHooks, where: Where, item: Any, container: Any) -> Any:
    texts.check_text(hooks.trace, item, container)
    text_uses.check_inside(hooks.trace, item, container)
    check_which(hooks.trace, "in", item)
    note_hashed(hooks, item)
    container = hooks.traced_if_outside(container)
    if type(container) is not TracedArray or not container.is_array:
        return Operands((item, text_uses.checked_items(hooks.trace, container)))
    is_in: Any = np.any(np.equal(container, item))
    return number(hooks.trace, weak(hooks.trace, is_in.value, BOOL))


def find_among_few(hooks: TracingHooks, where: Where, item: Any, container: Any) -> Any:
    """``item in (a, b)``: each is compared, as far as Python would go."""
    is_number = type(item) is TracedArray and not item.ndim
    if not (is_number or holds_open(item)) or type(container) not in _SMALL_SETS or (
            len(container) > _MOST_ALTERNATIVES):
        return UNHANDLED
    is_in: Any = False
    for other in container:
        is_in = hooks.or_(where, "test", is_in, _equality(hooks, where, item, other))
    return _decided(hooks, is_in)


def find_in_world(hooks: TracingHooks, where: Where, item: Any, container: Any) -> Any:
    """A name of an environment variable; Python takes its value."""
    hooks.took(item)
    if type(container) is ENVIRONMENT:
        return hooks.call(where, container.__contains__, item)
    if method_of(container, "__contains__") is None:
        note_compared(hooks, "eq", item, container)
    return UNHANDLED
