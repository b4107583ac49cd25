"""Operands that data may have made None: most events need their values, and raise as Python where
they are None."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

from fusec.core.code_roles import ON_BEHALF
from fusec.errors import unsupported

from ..choice.choice import Choice, unbound
from ..choice.half_choices import UnboundReads
from ..choice.optional_values import DecidedTests, is_absent
from ..choice.optional_values import settled as settled_value
from ..facts.policy import stays_plain
from ..objects.tracing_hooks import UNHANDLED, Args, Handler, Named, Operands, TracingHooks
from ..operands.python_numbers import BOOL, weak
from ..rewrite.transformer import Where
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray, number
from .call_arguments import is_numpys

FUSEC_ROLE = ON_BEHALF

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "** or pow()", "matmul": "@", "lshift": "<<", "rshift": ">>", "and": "&", "or": "|",
    "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neg": "-", "pos": "+", "invert": "~",
}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_LOOKING = (isinstance, type, id, str, repr, print, hash, format, callable, hasattr, getattr)
_CONTAINERS = (list, dict, tuple, set)
_NUMBERS = (bool, int, float, complex)
_OF_DATA = "an index of data (None would insert an axis)"


def bound(hooks: TracingHooks, where: Where, x: Any) -> Any:
    """The value of a variable that some way through the program did not bind."""
    while type(x) is Choice and x.name:
        x = _checked(hooks, where, x, unbound(x.name))
    return x


def _checked(hooks: TracingHooks, where: Where, x: Choice, error: Exception) -> Any:
    """Its value; the exception is raised where it is absent."""
    hooks.where = where
    absent = is_absent(hooks.trace, x)
    if x.name:  # which an earlier iteration of a loop around may have bound
        hooks.trace.part(UnboundReads).add(x.name)
    if absent:
        raise error
    if absent is None:
        hooks.trace.check(hooks.trace.emit("LogicalNot", hooks.truth(x.test)), error)
        hooks.trace.part(DecidedTests)[x.test.value] = False
    return x.orelse


def settled(hooks: TracingHooks, where: Where, x: Any) -> Any:
    """The value, decided where it is known by now whether it is None."""
    if type(x) is Choice:
        hooks.where = where
        return settled_value(hooks.trace, bound(hooks, where, x))
    return x


def _present(hooks: TracingHooks, where: Where, x: Any, error: Exception) -> Any:
    """The value; ``error`` is raised where it is None."""
    x = settled(hooks, where, x)
    while type(x) is Choice:
        x = settled(hooks, where, _checked(hooks, where, x, error))
    return x


def _needed(hooks: TracingHooks, where: Where, x: Any, what: str) -> Any:
    """The value, also within a tuple or list, of a callee that takes no None."""
    if type(x) in (tuple, list) and _holds_optional(x):
        return type(x)(_needed(hooks, where, item, what) for item in x)
    if type(x) is slice and _holds_optional(x):
        return slice(*(decided(hooks, where, part, "in a slice") for part in _parts(x)))
    return _present(hooks, where, x, TypeError(f"{what} must not be None"))


def decided(hooks: TracingHooks, where: Where, x: Any, use: str) -> Any:
    """The value where it is known whether it is None; refuses others."""
    x = settled(hooks, where, x)
    if type(x) is Choice:
        raise unsupported(f"a value that data makes None or not {use}", loc=hooks.loc,
                          cure="test it before: if x is None: ...")
    return x


def _parts(x: Any) -> tuple[Any, ...]:
    """The items of a list, tuple or slice; another value alone."""
    if type(x) is slice:
        return x.start, x.stop, x.step
    return tuple(x) if type(x) in (list, tuple) else (x,)


def _holds_optional(x: Any) -> bool:
    return Choice in map(type, _parts(x))


def unop(hooks: TracingHooks, where: Where, op: str, a: Any) -> Any:
    if type(a) is not Choice:
        return UNHANDLED
    error = TypeError(f"bad operand type for unary {_SYMBOLS[op]}: 'NoneType'")
    return Operands((op, _present(hooks, where, a, error)))


def _binary(end: str) -> Handler:
    def present(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
        if Choice not in (type(a), type(b)):
            return UNHANDLED
        error = TypeError(f"unsupported operand type(s) for {_SYMBOLS[op]}{end}: "
                          f"{_kind(a)!r} and {_kind(b)!r}")
        return Operands((op, _present(hooks, where, a, error), _present(hooks, where, b, error)))

    return present


binop, iop = _binary(""), _binary("=")


def compare(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    if Choice not in (type(a), type(b)):
        return UNHANDLED
    a, b = settled(hooks, where, a), settled(hooks, where, b)
    if type(b) is Choice:
        a, b, op = b, a, _MIRRORED.get(op, op)
    if type(a) is not Choice:
        return Operands((op, a, b))
    if op in ("is", "eq", "is not", "ne"):
        return _equals(hooks, where, op, a, b)
    error = TypeError(f"{_SYMBOLS.get(op, op)!r} not supported between instances of "
                      f"{_kind(a)!r} and {_kind(b)!r}")
    return hooks.compare(where, op, _present(hooks, where, a, error), b)


def _equals(hooks: TracingHooks, where: Where, op: str, a: Choice, b: Any) -> Any:
    """None equals None alone."""
    trace, positive = hooks.trace, op in ("is", "eq")
    if type(b) is Choice:
        return _both_equal(hooks, where, op, a, b)
    if b is None:
        return a.test if positive else hooks.not_(where, a.test)
    if op not in ("eq", "ne") or not _is_number(a.orelse) or not _is_number(b):
        a = decided(hooks, where, a, f"in a comparison ({op})")
        return hooks.compare(where, op, a, b)
    equal = hooks.compare(where, "eq", a.orelse, b)
    there = trace.emit("LogicalNot", hooks.truth(a.test))
    same = trace.emit("LogicalAnd", there, hooks.truth(equal))
    result = same if positive else trace.emit("LogicalNot", same)
    is_weak = type(equal) is not TracedArray or equal.type.is_weak  # Python's own, not NumPy's
    return number(trace, weak(trace, result, BOOL) if is_weak else result)


def _both_equal(hooks: TracingHooks, where: Where, op: str, a: Choice, b: Choice) -> Any:
    """Where both are None, or are equal numbers."""
    trace = hooks.trace
    if op not in ("eq", "ne") or not _is_number(a.orelse) or not _is_number(b.orelse):
        b = decided(hooks, where, b, f"in a comparison ({op})")
    one, other = hooks.truth(a.test), hooks.truth(b.test)
    there = trace.emit("LogicalNot", trace.emit("LogicalOr", one, other))
    equal = hooks.truth(hooks.compare(where, "eq", a.orelse, b.orelse))
    same = trace.emit("LogicalOr", trace.emit("LogicalAnd", one, other),
                      trace.emit("LogicalAnd", there, equal))
    result = same if op == "eq" else trace.emit("LogicalNot", same)
    return number(trace, weak(trace, result, BOOL))


def contains(hooks: TracingHooks, where: Where, item: Any, container: Any) -> Any:
    if Choice not in (type(item), type(container)):
        return UNHANDLED
    container = _present(hooks, where, container, TypeError(
        "argument of type 'NoneType' is not iterable"))
    return Operands((decided(hooks, where, item, "as an operand of in"), container))


def _is_number(x: Any) -> bool:
    return isinstance(x, _NUMBERS) or (type(x) is TracedArray and not x.is_array)


def _kind(x: Any) -> str:
    """The name of a type as Python's messages have it."""
    kind = type(None) if type(x) is Choice else x.__class__
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__name__}"


def owner(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    if type(obj) is not Choice:
        return UNHANDLED
    error = AttributeError(f"'NoneType' object has no attribute {name!r}")
    return Operands((_present(hooks, where, obj, error), name))


def setattribute(hooks: TracingHooks, where: Where, value: Any, obj: Any, name: str) -> Any:
    if Choice not in (type(value), type(obj)):
        return UNHANDLED
    error = AttributeError(f"'NoneType' object has no attribute {name!r}")
    obj = _present(hooks, where, obj, error)
    return Operands((settled(hooks, where, value), obj, name))


def getitem(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    if type(obj) is not Choice and not _holds_optional(key):
        return UNHANDLED
    obj = _present(hooks, where, obj, TypeError("'NoneType' object is not subscriptable"))
    if not isinstance(obj, dict):
        key = _needed(hooks, where, key, _OF_DATA)
    return Operands((obj, decided(hooks, where, key, "as a key")))


def setitem(hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any) -> Any:
    if type(obj) is not Choice and not _holds_optional(key) and not _holds_optional(value):
        return UNHANDLED
    obj = _present(hooks, where, obj, TypeError(
        "'NoneType' object does not support item assignment"))
    if not isinstance(obj, _CONTAINERS) or isinstance(obj, TracedArray):
        key = _needed(hooks, where, key, _OF_DATA)
        value = _needed(hooks, where, value, "what is stored in an array (None would be NaN)")
    value = bound(hooks, where, value)
    return Operands((value, obj, decided(hooks, where, key, "as a key")))


def _taken_apart(complaint: str) -> Handler:
    def present(hooks: TracingHooks, where: Where, value: Any) -> Any:
        if type(value) is not Choice:
            return UNHANDLED
        return Operands((_present(hooks, where, value, TypeError(complaint)),))

    return present


iterate = _taken_apart("'NoneType' object is not iterable")
starred = _taken_apart("Value after * must be an iterable, not NoneType")


def unpack(hooks: TracingHooks, where: Where, value: Any, count: int | None) -> Any:
    if type(value) is not Choice:
        return UNHANDLED
    return Operands((_present(hooks, where, value, TypeError(
        "cannot unpack non-iterable NoneType object")), count))


def matched(hooks: TracingHooks, where: Where, value: Any) -> Any:
    value = decided(hooks, where, value, "as the subject of match")
    for part in _parts(value):
        decided(hooks, where, part, "as a part of the subject of match")
    return Operands((value,))


def call(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    if type(fn) is Choice:
        return hooks.called(where, _present(hooks, where, fn, TypeError(
            "'NoneType' object is not callable")), args, kwargs)
    if not any(map(_holds_optional, (*args, *kwargs.values()))):
        return UNHANDLED
    args = tuple(bound(hooks, where, x) for x in args)
    kwargs = {name: bound(hooks, where, x) for name, x in kwargs.items()}
    keeps = _keeps(fn)
    if _runs_as_it_is(fn) if keeps else fn in _LOOKING:  # it would see what stands for the value
        args = tuple(decided(hooks, where, x, f"as an argument of {fn.__name__}") for x in args)
    if keeps:
        return Operands((fn, args, kwargs))
    if fn is bool:
        return number(hooks.trace, weak(hooks.trace, hooks.truth(args[0]), BOOL))
    what = f"an argument of {getattr(fn, '__name__', fn)}"
    if fn is len:
        args = (_present(hooks, where, args[0], TypeError(
            "object of type 'NoneType' has no len()")),)
    return Operands((fn, tuple(_needed(hooks, where, x, what) for x in args), {
        name: decided(hooks, where, x, f"as {name}=") for name, x in kwargs.items()}))


def _runs_as_it_is(fn: Any) -> bool:
    """Whether it is a Python function that is not converted."""
    function = getattr(fn, "__func__", fn)
    return type(function) is FunctionType and stays_plain(function) and (
        HOOKS_NAME not in function.__code__.co_freevars)


def _keeps(fn: Any) -> bool:
    """Whether it takes arguments as they are: the user's functions and classes, containers."""
    if isinstance(fn, functools.partial):
        return True
    if isinstance(fn, (FunctionType, MethodType)):
        return not is_numpys(fn)
    if isinstance(fn, type):
        return fn in _CONTAINERS or (fn not in _NUMBERS and not fn.__module__.startswith(
            ("numpy", "builtins")))
    return isinstance(getattr(fn, "__self__", None), _CONTAINERS)
