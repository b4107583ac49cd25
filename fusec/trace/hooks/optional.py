"""Hooks that meet an `Optional`: most need its value, and raise as Python where it is None."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

from fusec.code_roles import ON_BEHALF
from fusec.errors import unsupported
from fusec.ir import Value

from ..choice.choice import Choice as Optional
from ..choice.choice import unbound
from ..choice.half_choices import UnboundReads
from ..choice.optional import Assumed, bound, is_absent, settled
from ..convert.logic import Tested
from ..facts.policy import stays_plain
from ..facts.trees import flattened
from ..operands.python_numbers import BOOL, weak
from ..rewrite.transformer import Where
from ..source.source import HOOKS_NAME
from ..values.array import TracedArray, number
from .call_arguments import is_numpys
from .calls import GraphHooks

FUSEC_ROLE = ON_BEHALF

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "** or pow()", "matmul": "@", "lshift": "<<", "rshift": ">>", "and": "&", "or": "|",
    "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neg": "-", "pos": "+", "invert": "~",
}
_LOOKING = (isinstance, type, id, str, repr, print, hash, format, callable, hasattr, getattr)
_CONTAINERS = (list, dict, tuple, set)
_NUMBERS = (bool, int, float, complex)


class OptionalHooks(GraphHooks):
    """`GraphHooks` for values that data may have made None."""

    def bound(self, where: Where, x: Any) -> Any:
        """The value of a variable that some way through the program did not bind."""
        while type(x) is Optional and x.name:
            x = self._checked(where, x, unbound(x.name))
        return x

    def returned(self, where: Where, x: Any) -> Any:
        """What a loop is left with, of which all variables have a value."""
        self.where = where
        return bound(self.trace, x)

    def _checked(self, where: Where, x: Optional, error: Exception) -> Any:
        """Its value; the exception is raised where it is absent."""
        self.where = where
        absent = is_absent(self.trace, x)
        if x.name:  # which an earlier iteration of a loop around may have bound
            self.trace.part(UnboundReads).add(x.name)
        if absent:
            raise error
        if absent is None:
            self.trace.check(self.trace.emit("LogicalNot", self.truth(x.absent)), error)
            self.trace.part(Assumed)[x.absent.value] = False
        return x.held

    def _settled(self, where: Where, x: Any) -> Any:
        if type(x) is Optional:
            self.where = where
            return settled(self.trace, self.bound(where, x))
        return x

    def present(self, where: Where, x: Any, error: Exception) -> Any:
        """The value; ``error`` is raised where it is None."""
        x = self._settled(where, x)
        while type(x) is Optional:
            x = self._settled(where, self._checked(where, x, error))
        return x

    def _needed(self, where: Where, x: Any, what: str) -> Any:
        """The value, also within a tuple or list, of what takes no None."""
        if type(x) in (tuple, list) and any(type(item) is Optional for item in x):
            return type(x)(self._needed(where, item, what) for item in x)
        if type(x) is slice and Optional in map(type, (x.start, x.stop, x.step)):
            return slice(*(self._undecided(where, part, "in a slice")
                           for part in (x.start, x.stop, x.step)))
        return self.present(where, x, TypeError(f"{what} must not be None"))

    def _undecided(self, where: Where, x: Any, use: str) -> Any:
        """What is known to be None, or not; refuses anything else."""
        x = self._settled(where, x)
        if type(x) is Optional:
            raise unsupported(f"a value that data makes None or not {use}", loc=self.loc,
                              cure="test it before: if x is None: ...")
        return x

    # -- truth

    def decide(self, test: Any) -> bool | None:
        test = self._settled(self.where, test)
        if type(test) is Optional:
            return None if self.decide(test.held) is not False else False
        return super().decide(test)

    def truth(self, test: Any) -> Value:
        test = self.bound(self.where, test.truth if type(test) is Tested else test)
        if type(test) is not Optional:
            return super().truth(test)
        there = self.trace.emit("LogicalNot", self.truth(test.absent))
        held = self.decide(test.held)
        return there if held else self.trace.emit("LogicalAnd", there, self.truth(test.held))

    # -- operators

    def unop(self, where: Where, op: str, a: Any) -> Any:
        a = self.present(where, a, TypeError(
            f"bad operand type for unary {_SYMBOLS[op]}: 'NoneType'"))
        return super().unop(where, op, a)

    def binop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        a, b = self._operands(where, op, a, b)
        return super().binop(where, op, a, b)

    def iop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        a, b = self._operands(where, op, a, b, "=")
        return super().iop(where, op, a, b)

    def _operands(self, where: Where, op: str, a: Any, b: Any, end: str = "") -> tuple[Any, Any]:
        if Optional not in (type(a), type(b)):
            return a, b
        error = TypeError(f"unsupported operand type(s) for {_SYMBOLS[op]}{end}: "
                          f"{_kind(a)!r} and {_kind(b)!r}")
        return self.present(where, a, error), self.present(where, b, error)

    def compare(self, where: Where, op: str, a: Any, b: Any) -> Any:
        if Optional not in (type(a), type(b)):
            return super().compare(where, op, a, b)
        a, b = self._settled(where, a), self._settled(where, b)
        if type(b) is Optional:
            a, b, op = b, a, _MIRRORED.get(op, op)
        if type(a) is not Optional:
            return super().compare(where, op, a, b)
        if op in ("is", "eq", "is not", "ne"):
            return self._equals(where, op, a, b)
        error = TypeError(f"{_SYMBOLS.get(op, op)!r} not supported between instances of "
                          f"{_kind(a)!r} and {_kind(b)!r}")
        return self.compare(where, op, self.present(where, a, error), b)

    def _equals(self, where: Where, op: str, a: Optional, b: Any) -> Any:
        """None equals None alone."""
        positive = op in ("is", "eq")
        if type(b) is Optional:
            return self._both_equal(where, op, a, b)
        if b is None:
            return a.absent if positive else self.not_(where, a.absent)
        if op not in ("eq", "ne") or not _is_number(a.held) or not _is_number(b):
            a = self._undecided(where, a, f"in a comparison ({op})")
            return self.compare(where, op, a, b)
        equal = super().compare(where, "eq", a.held, b)
        there = self.trace.emit("LogicalNot", self.truth(a.absent))
        same = self.trace.emit("LogicalAnd", there, self.truth(equal))
        found = same if positive else self.trace.emit("LogicalNot", same)
        return number(self.trace, weak(self.trace, found, BOOL) if is_weak(equal) else found)

    def _both_equal(self, where: Where, op: str, a: Optional, b: Optional) -> Any:
        """Where both are None, or are equal numbers."""
        if op not in ("eq", "ne") or not _is_number(a.held) or not _is_number(b.held):
            b = self._undecided(where, b, f"in a comparison ({op})")
        one, other = self.truth(a.absent), self.truth(b.absent)
        there = self.trace.emit("LogicalNot", self.trace.emit("LogicalOr", one, other))
        equal = self.truth(super().compare(where, "eq", a.held, b.held))
        same = self.trace.emit("LogicalOr", self.trace.emit("LogicalAnd", one, other),
                               self.trace.emit("LogicalAnd", there, equal))
        found = same if op == "eq" else self.trace.emit("LogicalNot", same)
        return number(self.trace, weak(self.trace, found, BOOL))

    def matched(self, where: Where, value: Any) -> Any:
        value = self._undecided(where, value, "as the subject of match")
        if any(type(x) is Optional for x in flattened(value)[0]) or _holds_optional(value):
            self._undecided(where, next(x for x in value if type(x) is Optional),
                            "as a part of the subject of match")
        return super().matched(where, value)

    def contains(self, where: Where, item: Any, container: Any) -> Any:
        container = self.present(where, container, TypeError(
            "argument of type 'NoneType' is not iterable"))
        return super().contains(where, self._undecided(where, item, "as an operand of in"),
                                container)

    # -- attributes, items, iteration

    def getattr(self, where: Where, obj: Any, name: str) -> Any:
        obj = self.present(where, obj, AttributeError(
            f"'NoneType' object has no attribute {name!r}"))
        return super().getattr(where, obj, name)

    def setattr(self, where: Where, value: Any, obj: Any, name: str) -> None:
        obj = self.present(where, obj, AttributeError(
            f"'NoneType' object has no attribute {name!r}"))
        super().setattr(where, self._settled(where, value), obj, name)

    def getitem(self, where: Where, obj: Any, key: Any) -> Any:
        obj = self.present(where, obj, TypeError("'NoneType' object is not subscriptable"))
        if not isinstance(obj, dict):
            key = self._needed(where, key, "an index of data (None would insert an axis)")
        return super().getitem(where, obj, self._undecided(where, key, "as a key"))

    def setitem(self, where: Where, value: Any, obj: Any, key: Any) -> None:
        obj = self.present(where, obj, TypeError(
            "'NoneType' object does not support item assignment"))
        if not isinstance(obj, _CONTAINERS) or isinstance(obj, TracedArray):
            key = self._needed(where, key, "an index of data (None would insert an axis)")
            value = self._needed(where, value, "what is stored in an array (None would be NaN)")
        value = self.bound(where, value)
        super().setitem(where, value, obj, self._undecided(where, key, "as a key"))

    def iterate(self, where: Where, value: Any) -> Any:
        return super().iterate(where, self.present(where, value, TypeError(
            "'NoneType' object is not iterable")))

    def unpack(self, where: Where, value: Any, count: int | None) -> Any:
        return super().unpack(where, self.present(where, value, TypeError(
            "cannot unpack non-iterable NoneType object")), count)

    def starred(self, where: Where, value: Any) -> Any:
        return super().starred(where, self.present(where, value, TypeError(
            "Value after * must be an iterable, not NoneType")))

    def format_value(
        self, where: Where, value: Any, conversion: int, spec: str, source: str = ""
    ) -> str:
        value = self._settled(where, value)
        if type(value) is Optional and source and self.trace.in_region:
            return f"{{{source}}}"
        return super().format_value(
            where, self._undecided(where, value, "in a text"), conversion, spec, source)

    # -- calls

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        fn = self.present(where, fn, TypeError("'NoneType' object is not callable"))
        if not any(_holds_optional(x) for x in (*args, *kwargs.values())):
            return super().call(where, fn, *args, **kwargs)
        args = tuple(self.bound(where, x) for x in args)
        kwargs = {name: self.bound(where, x) for name, x in kwargs.items()}
        if _keeps(fn):
            if _runs_as_it_is(fn):  # it would see what stands for the value
                args = tuple(self._undecided(where, x, f"as an argument of {fn.__name__}")
                             for x in args)
            return super().call(where, fn, *args, **kwargs)
        self.where = where
        if fn in _LOOKING:
            args = tuple(self._undecided(where, x, f"as an argument of {fn.__name__}")
                         for x in args)
        if fn is bool:
            return number(self.trace, weak(self.trace, self.truth(args[0]), BOOL))
        what = f"an argument of {getattr(fn, '__name__', fn)}"
        if fn is len:
            args = (self.present(where, args[0], TypeError(
                "object of type 'NoneType' has no len()")),)
        args = tuple(self._needed(where, x, what) for x in args)
        kwargs = {name: self._undecided(where, x, f"as {name}=") for name, x in kwargs.items()}
        return super().call(where, fn, *args, **kwargs)


def _runs_as_it_is(fn: Any) -> bool:
    """Whether it is a Python function that is not converted."""
    function = getattr(fn, "__func__", fn)
    return type(function) is FunctionType and stays_plain(function) and (
        HOOKS_NAME not in function.__code__.co_freevars)


_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def _holds_optional(x: Any) -> bool:
    return type(x) is Optional or (
        type(x) in (list, tuple) and any(type(item) is Optional for item in x))


def _keeps(fn: Any) -> bool:
    """Whether it takes what it is given as it is: the user's functions and classes, containers."""
    if isinstance(fn, functools.partial):
        return True
    if isinstance(fn, (FunctionType, MethodType)):
        return not is_numpys(fn)
    if isinstance(fn, type):
        return fn in _CONTAINERS or (fn not in _NUMBERS and not fn.__module__.startswith(
            ("numpy", "builtins")))
    return isinstance(getattr(fn, "__self__", None), _CONTAINERS)


def is_weak(x: Any) -> bool:
    """Whether it is Python's own, not NumPy's."""
    return type(x) is not TracedArray or x.type.is_weak


def _is_number(x: Any) -> bool:
    return isinstance(x, _NUMBERS) or (type(x) is TracedArray and not x.is_array)


def _kind(x: Any) -> str:
    """The name of a type as Python's messages have it."""
    kind = type(None) if type(x) is Optional else x.__class__
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__name__}"
