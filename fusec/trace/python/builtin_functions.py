"""Python's builtins, and constructors of numbers, on traced values."""

from __future__ import annotations

import builtins
import json
import operator
from collections.abc import Callable, Iterator
from functools import partial, reduce
from types import UnionType
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied

from ..arrays.array_attributes import has_attribute
from ..arrays.creation import astype
from ..control.ranges import VIEWS
from ..control.sequences import TracedRange
from ..convert import in_python
from ..convert.properties import class_attribute
from ..facts.constant_values import constant_value
from ..facts.trees import leaves_in
from ..guards.places import UNBOUND
from ..guards.side_effects import check_unconsumed
from ..hooks import attributes
from ..objects.quantifiers import quantified
from ..objects.tracing_hooks import TracingHooks
from ..objects.user_methods import method_of
from ..operands import sizes
from ..operands.operands import as_traced, cast
from ..operands.perhaps_pythons import Pythons, check_attribute
from ..operands.python_errors import check_integer
from ..operands.python_numbers import check_number, index_of, scalar_of, weak
from ..ufuncs.complex_numbers import python_complex
from ..ufuncs.decimal_rounding import MOST_DIGITS, rounded
from ..values.array import TracedArray, from_value
from ..values.handlers import TABLE, everywhere, when_called
from ..values.trace import Trace
from .long_lists import many
from .math_functions import rounded_number

BOOL, F64, I64 = (
    np.dtype(np.bool_), np.dtype(np.float64), np.dtype(np.int64))

# ----------------------------------------------------------------------------------- constructors


def _constructor(kind: type) -> None:
    """``np.float32(x)`` and its like."""
    @when_called(kind)
    def convert(hooks: TracingHooks, value: Any) -> Any:
        x = as_traced(hooks.trace, value)
        if x.ndim:  # as np.asarray: no copy where none is needed
            same = x.dtype == np.dtype(kind)
            return x if same else astype(hooks.trace, x, kind)
        result = cast(hooks.trace, scalar_of(hooks.trace, x), np.dtype(kind))
        if result in hooks.trace.part(Pythons):  # which this is not, whatever data decides
            result = hooks.trace.emit("Copy", result)
        return from_value(hooks.trace, result)


def _number(kind: type, dtype: np.dtype) -> None:
    """``float(x)`` and ``int(x)`` of a traced scalar stay in the graph as Python numbers."""
    @when_called(kind)
    def convert(hooks: TracingHooks, value: Any, *base: Any, **named: Any) -> Any:
        if base or named:  # of a text
            return _of_text(hooks, kind, value, base, named)
        x = as_traced(hooks.trace, value)
        check_number(hooks.trace, x)
        if x.dtype.kind == "c" and (x.type.is_weak or x.is_array):
            raise hooks.trace.error(TypeError(
                f"{kind.__name__}() argument must be a string or a real number, not 'complex'"))
        value = x.value
        if x.ndim:
            value = hooks.trace.emit("Squeeze", value, axes=tuple(range(x.ndim)))
        if dtype == I64:
            check_integer(hooks.trace, value)
        return TracedArray(hooks.trace, None, (), weak(hooks.trace, value, dtype))


def _of_text(
    hooks: TracingHooks, kind: type, text: Any, base: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    refusal = unsupported(
        "int() of a text with a base that data decides", loc=hooks.loc,
        cure="pass the base as a static argument, fusec.jit(static=...)")
    known = [constant_value(x.value) if type(x) is TracedArray else x
             for x in (*base, *named.values())]
    if None in known:
        raise refusal
    return kind(text, *known[:len(base)], **dict(zip(named, known[len(base):], strict=True)))


@when_called(bool)
def _truth(hooks: TracingHooks, value: Any) -> Any:
    """``bool(x)`` of a traced scalar stays in the graph as a Python bool."""
    truth = hooks.decide(value)
    if truth is not None:
        return truth
    return TracedArray(hooks.trace, None, (), weak(
        hooks.trace, hooks.truth(value), np.dtype(np.bool_)))


@when_called(complex)
def _complex(hooks: TracingHooks, *parts: Any, **named: Any) -> Any:
    return python_complex(hooks.trace, *parts, **named)


for _kind in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
              np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128):
    _constructor(_kind)
_number(float, F64)
_number(int, I64)


# -------------------------------------------------------------------------------------- functions


def _quantifier(
    function: Callable[..., Any], op: str, deciding: bool, by_hand: Callable[..., Any]
) -> None:
    """``any`` and ``all``: of items that are there each is looked at, where Python stops at the
    first that settles it."""
    def call(hooks: TracingHooks, iterable: Any, /) -> Any:
        iterable = tuple(iterable) if type(iterable) in VIEWS else iterable
        items = many(hooks.trace, iterable)
        if items is not None:
            return hooks.call(hooks.where, by_hand, items)
        tests: list[Value] = []
        if type(iterable) not in (list, tuple):
            return quantified(hooks, hooks.where, function, iterable, _itself, _itself)
        if any(is_asked(item) for item in iterable):
            join = hooks.or_ if deciding else hooks.and_
            return hooks.not_(hooks.where, hooks.not_(hooks.where, join(
                hooks.where, "test", not deciding, *map(_thunk, iterable))))
        for item in iterable:
            item = hooks.asked_truth(item)
            truth = hooks.decide(item)
            if truth is deciding:
                return deciding
            if truth is None:
                tests.append(hooks.truth(item))
        if not tests:
            return not deciding
        value = reduce(partial(hooks.trace.emit, op), tests)
        return TracedArray(hooks.trace, None, (), weak(hooks.trace, value, BOOL))

    TABLE.register(function, call)


def is_asked(item: Any) -> bool:
    """Whether a method of the user's gives the truth of an object."""
    return method_of(item, "__bool__") is not None or method_of(item, "__len__") is not None


def _itself(x: Any) -> Any:
    return x


def _thunk(x: Any) -> Callable[[], Any]:
    return lambda: x


_quantifier(builtins.any, "LogicalOr", True, in_python.is_any)
_quantifier(builtins.all, "LogicalAnd", False, in_python.are_all)


@when_called(range)
def _range(hooks: TracingHooks, *args: Any) -> Any:
    """``range`` with ends that only the run knows: a loop over it is one of the graph."""
    numbers = [constant_value(a.value) if type(a) is TracedArray else a for a in args]
    if None not in numbers and not any(type(a) is Symbolic for a in numbers):
        return range(*numbers)
    ends = [index_of(hooks.trace, a) if end is None else applied(operator.index, end)
            for a, end in zip(args, numbers, strict=True)]
    return TracedRange.of(hooks.trace, *ends)


@when_called(builtins.len)
def _len(hooks: TracingHooks, x: Any) -> Any:
    if type(x) is TracedArray and x.ndim:
        return sizes.number(hooks.trace, x.shape[0])
    return len(x)


@everywhere(list.__getitem__)
def _item(hooks: TracingHooks, items: list[Any], k: Any) -> Any:
    return hooks.getitem(hooks.where, items, k)


everywhere(builtins.getattr)(attributes.attribute_or)


@everywhere(object.__getattribute__)
def _read(hooks: TracingHooks, obj: Any, name: str) -> Any:
    own = class_attribute(type(obj), "__getattribute__"), class_attribute(type(obj), "__getattr__")
    if own == (object.__getattribute__, None):
        return hooks.getattr(hooks.where, obj, name)
    return object.__getattribute__(obj, name)  # where the class's own reads past itself


@everywhere(builtins.hasattr)
def _hasattr(hooks: TracingHooks, obj: Any, name: str) -> bool:
    if type(obj) is TracedArray:
        check_attribute(obj, name, is_asked=True)
        return has_attribute(obj, name)
    return attributes.attribute_or(hooks, obj, name, UNBOUND) is not UNBOUND


@everywhere(builtins.setattr)
def _setattr(hooks: TracingHooks, obj: Any, name: str, value: Any) -> None:
    hooks.setattr(hooks.where, value, obj, name)


@everywhere(builtins.delattr)
def _delattr(hooks: TracingHooks, obj: Any, name: str) -> None:
    hooks.delattr(hooks.where, obj, name)


@everywhere(object.__setattr__)
def _store(hooks: TracingHooks, obj: Any, name: str, value: Any) -> None:
    attributes.store(hooks, hooks.where, value, obj, name, past_class=True)


@everywhere(builtins.next)
def _next(hooks: TracingHooks, iterator: Any, *default: Any) -> Any:
    method = method_of(iterator, "__next__")
    if method is None:
        check_unconsumed(hooks.trace, iterator, hooks.loc)
        return next(iterator, *default)
    try:
        return hooks.call(hooks.where, method, iterator)
    except StopIteration:
        if not default:
            raise
        return default[0]


@everywhere(type)
def _type(hooks: TracingHooks, x: Any, *rest: Any, **options: Any) -> Any:
    """``type(x)`` names the class that the value has in NumPy."""
    if rest or options or type(x) not in (TracedArray, Symbolic):
        return type(x, *rest, **options)
    return x.__class__


@when_called(isinstance)
def _isinstance(hooks: TracingHooks, x: Any, kinds: Any) -> Any:
    """Classes such as ``Iterable`` and ``SupportsIndex`` look for methods, of which what stands for
    a number has those of an array."""
    method = method_of(kinds, "__instancecheck__")
    if method is not None:
        return hooks.call(hooks.where, method, kinds, x)
    asked = {type(kind).__module__ for kind in _classes_in(kinds)}
    if type(x) in (TracedArray, Symbolic) and not asked.isdisjoint(_LOOK_FOR_METHODS):
        x = _of_its_class(x)
    return isinstance(x, kinds)


_LOOK_FOR_METHODS = ("abc", "typing", "typing_extensions", "collections.abc")


def _classes_in(kinds: Any) -> Iterator[Any]:
    for kind in leaves_in(kinds, (tuple,), with_derived=True):
        yield from kind.__args__ if isinstance(kind, UnionType) else (kind,)


def _of_its_class(x: Any) -> Any:
    if type(x) is not TracedArray:
        return 0
    return np.empty(0) if x.is_array else x.type.zero


def _text(function: Callable[..., Any]) -> None:
    """``repr(x)`` and ``ascii(x)`` need the value (``str`` and ``format`` ask it themselves)."""
    @when_called(function)
    def call(hooks: TracingHooks, x: Any) -> str:
        return function(x) if type(x) is not TracedArray else str(x)


for _function in (builtins.repr, builtins.ascii):
    _text(_function)


def _json(function: Callable[..., Any]) -> None:
    """``json.dumps`` needs the values of all that lies in its argument."""
    @everywhere(function)
    def call(hooks: TracingHooks, obj: Any, *args: Any, **kwargs: Any) -> Any:
        for x in leaves_in(obj, (list, tuple, dict)):
            if type(x) is TracedArray:
                x.concrete("JSON text", f"call json.{function.__name__} on the result")
        return function(obj, *args, **kwargs)


_json(json.dumps)
_json(json.dump)


@when_called(builtins.round)
def _round(hooks: TracingHooks, number: Any, ndigits: Any = None) -> Any:
    x = as_traced(hooks.trace, number)
    value = x.value
    if x.is_array or (x.dtype == np.bool_ and not value.type.is_weak):
        name = "ndarray" if x.is_array else "bool"
        raise hooks.trace.error(
            TypeError(f"type numpy.{name} doesn't define __round__ method"), [value])
    if value.type.is_weak:
        return _round_python(hooks.trace, value, ndigits)
    result = x.round(ndigits or 0)
    if ndigits is None and not result.is_array:
        if result.dtype.kind == "f":
            check_integer(hooks.trace, result.value)
        return TracedArray(hooks.trace, None, (), weak(hooks.trace, result.value, I64))
    return result


def _round_python(trace: Trace, value: Any, ndigits: Any) -> TracedArray:
    digits = None if ndigits is None else operator.index(ndigits)
    if value.dtype.kind == "f" and digits is None:
        return rounded_number(trace, value, np.rint)
    if value.dtype.kind == "f" and digits is not None and 0 <= digits <= MOST_DIGITS:
        return rounded(trace, value, digits)
    if value.dtype.kind == "f" or (digits is not None and digits < 0):
        raise unsupported(f"round of a Python number to {digits} digits", ["np.round"],
                          loc=trace.loc, notes=(
                              "Python rounds the decimal representation, NumPy the binary one",))
    return TracedArray(trace, None, (), weak(trace, value, I64))


@when_called(builtins.pow)
def _pow(hooks: TracingHooks, base: Any, exp: Any, mod: Any = None) -> Any:
    numbers = (base, exp, mod)
    if mod is None or not all(map(_is_python_int, numbers)):
        return pow(base, exp, mod)
    return hooks.call(hooks.where, in_python.power_modulo, *numbers)


def _is_python_int(x: Any) -> bool:
    if type(x) is TracedArray:
        return bool(x.type.is_weak and not x.is_array and x.dtype.kind in "ib")
    return isinstance(x, (int, Symbolic))


@when_called(builtins.divmod)
def _divmod(hooks: TracingHooks, a: Any, b: Any) -> Any:
    return a // b, a % b


@when_called(builtins.print)
def _print(hooks: TracingHooks, *args: Any, **kwargs: Any) -> None:
    """The trace's own names: a warning has said that this is not printed at each call."""
    print(*map(repr_of, args), **kwargs)


def repr_of(x: Any) -> Any:
    """The text for a traced value, in lists and tuples too, in output while tracing."""
    if type(x) in (list, tuple):
        return type(x)(map(repr_of, x))
    return repr(x) if type(x) is TracedArray else x
