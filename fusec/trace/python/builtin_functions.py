"""Python's builtins, and constructors of numbers, on traced values."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from functools import partial, reduce
from types import GeneratorType
from typing import Any

import numpy as np

from fusec.errors import unsupported, user_error
from fusec.ir import Value
from fusec.ir.symbolic_numbers import Symbolic, applied

from ..arrays.array_attributes import has_attribute
from ..arrays.creation import astype
from ..choice.merge import check_holds, of_other_dtypes
from ..control.iterators import Enumerate, Map, NdEnumerate, Product, Reversed, Zip
from ..control.sequences import TracedRange
from ..control.unrolling import UNROLL
from ..convert import in_python
from ..convert.properties import class_attribute
from ..facts.constant_values import constant_value
from ..guards.places import UNBOUND
from ..guards.side_effects import check_unconsumed
from ..hooks import attributes
from ..objects.quantifiers import quantified
from ..objects.tracing_hooks import TracingHooks
from ..objects.user_methods import method_of
from ..operands import sizes
from ..operands.decimal_rounding import MOST_DIGITS, rounded
from ..operands.operands import as_traced, cast
from ..operands.python_errors import check_integer
from ..operands.python_numbers import check_number, index_of, scalar_of, weak
from ..ufuncs.complex_numbers import python_complex
from ..ufuncs.ufunc_calls import call_ufunc
from ..values.array import TracedArray, from_value
from ..values.handlers import TABLE, any_traced, everywhere, when_called
from ..values.trace import Trace
from .long_lists import are_pythons, many, python_number
from .math_functions import rounded_number

BOOL, F64, I64 = (
    np.dtype(np.bool_), np.dtype(np.float64), np.dtype(np.int64))

_ITERATORS = (GeneratorType, map, filter, zip, enumerate, Zip, Enumerate, Reversed, Product,
              Map, NdEnumerate)

# ----------------------------------------------------------------------------------- constructors


def _constructor(kind: type) -> None:
    """``np.float32(x)`` and its like."""
    @when_called(kind)
    def convert(hooks: TracingHooks, value: Any) -> Any:
        x = as_traced(hooks.trace, value)
        if x.ndim:  # as np.asarray: no copy where none is needed
            same = x.dtype == np.dtype(kind)
            return TracedArray(x.trace, x.storage, x.steps) if same else astype(
                hooks.trace, x, kind)
        result = cast(hooks.trace, scalar_of(hooks.trace, x), np.dtype(kind))
        return from_value(hooks.trace, result)


def _number(kind: type, dtype: np.dtype) -> None:
    """``float(x)`` and ``int(x)`` of a traced scalar stay in the graph as Python numbers."""
    @when_called(kind)
    def convert(hooks: TracingHooks, value: Any) -> Any:
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


def _of_items(function: Callable[..., Any], by_hand: Callable[..., Any]) -> Callable[..., Any]:
    """Registers for calls on a single iterable, the items of which may be traced; ``by_hand`` is a
    loop over an array of them."""
    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        def call(hooks: TracingHooks, *args: Any, **kwargs: Any) -> Any:
            if args and type(args[0]) in _ITERATORS:
                args = (hooks.call(hooks.where, list, args[0]), *args[1:])
            if not any_traced(args, kwargs) and not _may_be_traced(hooks, function, args, kwargs):
                return function(*args, **kwargs)
            items = many(hooks.trace, args[0]) if not kwargs else None
            if items is not None and are_pythons(args[0]):
                if len(args) == 1:
                    return hooks.call(hooks.where, in_python.OF[function],
                                      partial(python_number, items), items.shape[0])
            elif items is not None:
                return hooks.call(hooks.where, by_hand, items, *args[1:])
            return handler(hooks, *args, **kwargs)

        TABLE.register(function, call)
        return handler

    return decorate


def _may_be_traced(
    hooks: TracingHooks, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether a method or a key that is a function of the program gives what the run knows."""
    if function is builtins.sum:
        return _are_users(args)
    is_short = len(args) == 1 and type(args[0]) in (list, tuple, range) and (
        len(args[0]) <= UNROLL)
    return is_short and list(kwargs) == ["key"] and kwargs["key"] is not None


def _are_users(args: tuple[Any, ...]) -> bool:
    """Whether the first of the items is an object of the program's that adds by itself."""
    first = args[0][0] if isinstance(args[0], (list, tuple)) and args[0] else None
    return any(method_of(first, name) for name in ("__add__", "__radd__"))


def _extremum(function: Callable[..., Any], better: np.ufunc, by_hand: Callable[..., Any]) -> None:
    @_of_items(function, by_hand)
    def call(hooks: TracingHooks, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        items = list(args[0]) if len(args) == 1 else list(args)
        if not items and not kwargs:
            return function(items)  # which raises
        if key is not None and items:
            return _best_by(hooks, function, items, key)
        if kwargs or not items:
            raise unsupported(f"{function.__name__} with these arguments on traced values",
                              loc=hooks.loc, cure="use np.minimum or np.maximum")
        if any(type(item) in (tuple, list) for item in items):
            return hooks.call(hooks.where, by_hand, items)
        best = items[0]
        for item in items[1:]:
            x, y = as_traced(hooks.trace, best), as_traced(hooks.trace, item)
            if x.ndim or y.ndim:
                raise hooks.trace.error(ValueError(
                    "The truth value of an array with more than one element is ambiguous. "
                    "Use np.minimum or np.maximum"), [x.value, y.value])
            is_better = call_ufunc(hooks.trace, better, "__call__", (y, x), {}, True)
            best = chosen(hooks.trace, is_better, y, x)
        return best


def _best_by(
    hooks: TracingHooks, function: Callable[..., Any], items: list[Any], key: Callable[..., Any],
) -> Any:
    """``max(items, key=key)``: each key is asked for once, in order."""
    keys = [hooks.call(hooks.where, key, item) for item in items]
    if not any_traced(tuple(keys), {}):
        return items[function(range(len(items)), key=keys.__getitem__)]
    return hooks.call(hooks.where, in_python.BY_KEY[function], keys, items)


def _quantifier(
    function: Callable[..., Any], op: str, deciding: bool, by_hand: Callable[..., Any]
) -> None:
    """``any`` and ``all``: of items that are there each is looked at, where Python stops at the
    first that settles it."""
    def call(hooks: TracingHooks, iterable: Any, /) -> Any:
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
    """Whether a method of the user's says what the truth of an object is."""
    return method_of(item, "__bool__") is not None or method_of(item, "__len__") is not None


def _itself(x: Any) -> Any:
    return x


def _thunk(x: Any) -> Callable[[], Any]:
    return lambda: x


def chosen(trace: Trace, condition: Any, a: TracedArray, b: TracedArray) -> Any:
    """``a if condition else b`` for scalars, in the dtype NumPy promotes them to."""
    is_weak = a.type.is_weak and b.type.is_weak
    dtype = np.result_type(*[
        v.dtype.type(0).item() if v.type.is_weak else v.dtype for v in (a, b)])
    kind = "weak" if is_weak else None
    if of_other_dtypes(a.type, b.type, True):
        raise user_error(
            TypeError, f"one of two numbers whose dtype data decides: {a.dtype} or {b.dtype}",
            trace.loc, "convert both to one dtype")
    for number in (a, b):
        if number.type.is_weak and not is_weak:
            check_holds(trace, number.value, dtype)
    values = [cast(trace, v.value, dtype, kind) for v in (a, b)]
    result = trace.emit("Where", condition.value, *values, kind="weak" if is_weak else "scalar")
    return from_value(trace, result)


_extremum(builtins.min, np.less, in_python.smallest)
_extremum(builtins.max, np.greater, in_python.largest)
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


def _text(function: Callable[..., Any]) -> None:
    """``repr(x)`` and ``ascii(x)`` need the value (``str`` and ``format`` ask it themselves)."""
    @when_called(function)
    def call(hooks: TracingHooks, x: Any) -> str:
        return function(x) if type(x) is not TracedArray else str(x)


for _function in (builtins.repr, builtins.ascii):
    _text(_function)


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


@_of_items(builtins.sum, in_python.total)
def _sum(hooks: TracingHooks, iterable: Any, /, start: Any = 0) -> Any:
    total = start
    for item in iterable:
        total = hooks.binop(hooks.where, "add", total, item)
    return total


@when_called(builtins.divmod)
def _divmod(hooks: TracingHooks, a: Any, b: Any) -> Any:
    return a // b, a % b


@when_called(builtins.print)
def _print(hooks: TracingHooks, *args: Any, **kwargs: Any) -> None:
    """The trace's own names: a warning has said that this is not printed at each call."""
    print(*map(repr_of, args), **kwargs)


def repr_of(x: Any) -> Any:
    """What stands for a traced value, in lists and tuples too, in text written while tracing."""
    if type(x) in (list, tuple):
        return type(x)(map(repr_of, x))
    return repr(x) if type(x) is TracedArray else x
