"""Protocols by which C asks the user's objects: ``math.sqrt(obj)`` their ``__float__``,
``np.sum(obj)`` their length and items, ``int(obj, …)`` their ``__index__``.

The methods are called here, as the program's own code is: attributes that they read are inputs
or guarded, as where the program reads them.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable
from types import FunctionType, MethodDescriptorType, MethodType, WrapperDescriptorType
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.symbolic_numbers import is_int
from fusec.ir.sizes.symbolic_sizes import is_symbolic, length_of_range

from ..control.sequences import TracedRange
from ..convert.properties import class_attribute
from ..convert.python_operators import BINARY, COMPARISONS
from ..facts.code_names import HEAP_TYPE
from ..library.randomness import TracedGenerator
from ..objects.iteration import items_of
from ..objects.tracing_hooks import UNHANDLED, Args, Named, Operands, TracingHooks
from ..operands.operands import is_operand
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from .call_arguments import is_numpys
from .special_methods import asked_of, binary, special

Methods = tuple[str, ...]
_UNBOUND = (MethodDescriptorType, WrapperDescriptorType)
_FLOAT: Methods = ("__float__", "__index__")
_INDEX: Methods = ("__index__",)
_INT: Methods = ("__int__", "__index__", "__trunc__")
_COMPLEX: Methods = ("__complex__", *_FLOAT)
# Whose arguments are ints.
_OF_INTS = frozenset({math.comb, math.factorial, math.gcd, math.isqrt, math.lcm, math.perm})
_BUILTINS: dict[Any, tuple[Methods, ...]] = {  # of each argument; the last one's of those after it
    builtins.float: (_FLOAT,), builtins.int: (_INT, _INDEX), builtins.complex: (_COMPLEX,),
    builtins.round: ((), _INDEX), builtins.bin: (_INDEX,), builtins.hex: (_INDEX,),
    builtins.oct: (_INDEX,), builtins.chr: (_INDEX,), operator.index: (_INDEX,),
    math.ldexp: (_FLOAT, ())}  # whose exponent must be an int
_BY_KIND = {"i": _INT, "u": _INT, "f": _FLOAT, "c": _COMPLEX}
_GIVES = {  # the classes that Python wants, of what a method gives, and the kinds of traced numbers
    "__float__": (float, "f"), "__index__": (int, "ib"), "__int__": (int, "ib"),
    "__complex__": (complex, "c")}
_PLAIN = frozenset({  # classes of no object: most operands are of one
    TracedArray, bool, int, float, complex, str, type(None), np.ndarray, slice, range, dict})
_ATOMS = (list, tuple, dict, str, bytes, int, float, complex, np.ndarray, np.generic)
_COMPARISONS = {fn: name for name, fn in COMPARISONS.items()}
_OPERATORS = {fn: name for name, fn in BINARY.items() if name not in COMPARISONS}
# Objects among the arguments are functions.
_CALLING = frozenset({
    np.apply_along_axis, np.apply_over_axes, np.frompyfunc, np.fromfunction, np.piecewise,
    np.vectorize})
_LOOKING = frozenset({np.iterable, np.isscalar, np.ndim})  # at what an object is


def asks(fn: Any) -> bool:
    """Whether ``fn`` may ask its arguments by protocol, by code that no hook sees."""
    return _methods(fn) is not None or is_of_arrays(fn)


def is_of_arrays(fn: Any) -> bool:
    owner = type(getattr(fn, "__self__", None))
    return owner in (TracedArray, TracedGenerator) or (
        is_numpys(fn) and not str(getattr(fn, "__module__", "")).startswith("numpy.testing"))


def _methods(fn: Any) -> tuple[Methods, ...] | None:
    """The methods that a function of numbers asks of each argument; None: it is none."""
    if type(fn) not in (type, type(len)):
        return None
    if fn in _OF_INTS:
        return (_INDEX,)
    home = getattr(fn, "__module__", None)
    if home == math.__name__ and fn not in _BUILTINS:
        return (() if fn in (math.fsum, math.prod, math.dist) else _FLOAT,)
    return (_COMPLEX,) if home == cmath.__name__ else _BUILTINS.get(fn)


def is_object(x: Any) -> bool:
    """Whether a method of its class may answer."""
    kind = type(x)
    return bool(kind.__flags__ & HEAP_TYPE) and kind is not TracedArray and not isinstance(x, type)


def plain_arguments(hooks: TracingHooks, fn: Any, args: Args, kwargs: Named) -> tuple[Args, Named]:
    """The arguments, with objects among them replaced by their answers."""
    if not hold_objects(args, kwargs):
        return args, kwargs
    asked = _methods(fn)
    if asked is not None:
        last = len(asked) - 1
        return tuple(x if asked_of(fn, x) else number(hooks, x, asked[min(i, last)])
                     for i, x in enumerate(args)), {
            name: number(hooks, x, asked[last]) for name, x in kwargs.items()}
    if not is_of_arrays(fn) or fn in _LOOKING:
        return args, kwargs
    if fn is np.fromiter and args:
        args = (items_of(hooks, hooks.where, args[0]), *args[1:])
    keeps = fn in _CALLING
    is_number = isinstance(fn, type) and issubclass(fn, np.number)
    methods = _BY_KIND[np.dtype(fn).kind] if is_number else ()
    if isinstance(fn, type) and issubclass(fn, (float, complex)):  # Python's own is asked first
        args = tuple(number(hooks, x, methods) for x in args)
    args = tuple(number(hooks, array(hooks, x, keeps), methods) for x in args)
    return args, {name: array(hooks, x, keeps) for name, x in kwargs.items()}


def hold_objects(args: Args, kwargs: Named) -> bool:
    """Whether there are objects among arguments, or in lists there."""
    return any(type(x) not in _PLAIN and _holds_objects(x) for x in (*args, *kwargs.values()))


def _holds_objects(x: Any) -> bool:
    return is_object(x) or (type(x) in (list, tuple) and hold_objects(x, {}))


# ---------------------------------------------------------------------------------------- numbers


def number(hooks: TracingHooks, x: Any, methods: Methods) -> Any:
    """The result of the first of the methods that the class has; the object itself for none."""
    if not is_object(x):
        return x
    for name in methods:
        if class_attribute(type(x), name) is not None:
            method = special(hooks, x, name)
            return x if method is None else _checked(
                hooks, x, name, hooks.call(hooks.where, method, x))
    return x


def _checked(hooks: TracingHooks, x: Any, name: str, result: Any) -> Any:
    """Python takes numbers of one class only."""
    wanted, kinds = _GIVES.get(name, (object, ""))
    if type(result) is not TracedArray:
        is_right = isinstance(result, wanted)
    else:
        is_right = not kinds or (not result.is_array and result.dtype.kind in kinds and (
            result.type.is_weak or result.dtype in (np.float64, np.complex128)))
    if is_right:
        return result
    given = result.kind_name if type(result) is TracedArray else type(result).__name__
    raise hooks.trace.error(TypeError(
        f"{type(x).__name__}.{name}() returned non-{wanted.__name__} (type {given})"))


# ----------------------------------------------------------------------------------------- arrays


def array(hooks: TracingHooks, x: Any, keeps: bool = False) -> Any:
    """The object's ``__array__()``, or the items of a sequence, for NumPy to make an array of; also
    of objects in lists.  Others stay as they are."""
    if type(x) in (list, tuple):
        return type(x)([array(hooks, item, keeps) for item in x]) if _holds_objects(x) else x
    if not is_object(x) or isinstance(x, _ATOMS) or (keeps and callable(x)):
        return x
    if (method := special(hooks, x, "__array__")) is not None:
        return hooks.traced_if_outside(hooks.call(hooks.where, method, x))
    if type(x) is TracedRange and _counts(x):
        return hooks.call(hooks.where, np.arange, x.start, x.stop, x.step)
    if not is_sequence(type(x)):
        return x
    return [array(hooks, item) for item in items_of(hooks, hooks.where, x)]


def _counts(x: TracedRange) -> bool:
    """Whether sizes decide its numbers, of which there are some: of none NumPy makes floats."""
    ends = x.start, x.stop, x.step
    return is_symbolic(ends) and all(map(is_int, ends)) and length_of_range(*ends) != 0


def element(hooks: TracingHooks, value: Any, dtype: np.dtype) -> Any:
    """The value for elements of an array of this type."""
    value = array(hooks, value)
    return number(hooks, value, _BY_KIND.get(dtype.kind, ()))


def is_sequence(kind: type) -> bool:
    """Whether the user's methods make it one that NumPy reads as such."""
    if any(class_attribute(kind, name) is not None for name in (
            "__array_interface__", "__array_struct__", "__array_function__", "__array_ufunc__")):
        return False
    return all(type(class_attribute(kind, name)) is FunctionType for name in (
        "__len__", "__getitem__"))


def beside_array(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """An operator with an array and an object that does not answer first, of which NumPy makes an
    array."""
    if (type(a) in _PLAIN and type(b) in _PLAIN) or op in ("is", "is not") or (
            not hooks.trace.active):
        return UNHANDLED
    if is_array(a) and is_object(b) and not is_operand(b) and not defers(type(b)):
        values = array(hooks, b)
        return _by_elements(hooks, where, op, a, b) if values is b else Operands((op, a, values))
    if is_array(b) and is_object(a) and not is_operand(a) and special(
            hooks, a, f"__{op}__") is None:
        return Operands((op, array(hooks, a), b))
    return UNHANDLED


def into_array(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """``x += obj``"""
    if type(b) not in _PLAIN and is_array(a) and is_object(b) and hooks.trace.active and (
            not is_operand(b)):
        return Operands((op, a, array(hooks, b)))
    return UNHANDLED


def is_array(x: Any) -> bool:
    """Whether it is an array of NumPy's or a scalar."""
    if type(x) is TracedArray:
        return x.is_array or not x.type.is_weak
    return isinstance(x, (np.ndarray, np.generic))


def _by_elements(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """The method of ``b`` is asked with each element of ``a``: an array of objects comes out."""
    method = special(hooks, b, f"__r{op}__")
    if method is None:
        return UNHANDLED
    if isinstance(a, np.generic):
        return hooks.call(where, method, b, a.item())
    if type(a) is TracedArray and not a.is_array:
        return UNHANDLED
    kind = type(b).__name__
    raise unsupported(
        f"{kind} beside an array, which NumPy makes an array of objects of", loc=hooks.loc,
        cure=f"let {kind} have __array_ufunc__ = None, and NumPy calls its __r{op}__ with the "
        "array, or write the operation of its attributes")


def defers(kind: type) -> bool:
    """Whether an array leaves an operator to an object of the class."""
    missing: Callable[..., Any] | object = object()
    by_ufunc = getattr(kind, "__array_ufunc__", missing)
    return by_ufunc is not missing or getattr(kind, "__array_priority__", -1.0) > 0.0


def times(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """``[0.0] * obj`` and ``"ab" * obj``, as often as its ``__index__`` says."""
    if op != "mul" or not hooks.trace.active:
        return UNHANDLED
    for x, other in ((a, b), (b, a)):
        if isinstance(x, (list, tuple, str, bytes)) and is_object(other) and not any(
                class_attribute(type(other), name) for name in ("__mul__", "__rmul__")):
            count = number(hooks, other, _INDEX)
            return Operands((op, x, count) if x is a else (op, count, x))
    return UNHANDLED


# --------------------------------------------------------------------------------------- builtins


def of_array_class(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """``np.ndarray.sum(x)``: the method of a traced array."""
    is_method = type(fn) in _UNBOUND and fn.__objclass__ is np.ndarray and len(args) > 0 and (
        type(args[0]) is TracedArray and args[0].is_array)
    if not is_method:
        return UNHANDLED
    return hooks.call(where, hooks.getattr(where, args[0], fn.__name__), *args[1:], **kwargs)


def of_builtin(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """``bool``, ``divmod``, ``reversed``, ``operator.add`` and their like of the user's objects."""
    if type(fn) not in (type, type(len)) or kwargs or not hooks.trace.active or not any(
            type(x) not in _PLAIN and is_object(x) for x in args):
        return UNHANDLED
    if fn in _OPERATORS and len(args) == 2:
        return hooks.binop(where, _OPERATORS[fn], *args)
    if fn in _COMPARISONS and len(args) == 2:
        return hooks.compare(where, _COMPARISONS[fn], *args)
    if fn is bool and len(args) == 1:
        return hooks.not_(where, hooks.not_(where, args[0]))
    if fn is divmod and len(args) == 2:
        result = binary(hooks, where, *args, "__divmod__", "__rdivmod__")
        return UNHANDLED if result is NotImplemented else result
    if fn is pow and len(args) == 2:
        return hooks.binop(where, "pow", *args)
    if fn is reversed and len(args) == 1:
        return _reversed(hooks, where, args[0])
    return UNHANDLED


def _reversed(hooks: TracingHooks, where: Where, x: Any) -> Any:
    method = special(hooks, x, "__reversed__")
    if method is not None:
        return hooks.call(where, method, x)
    length, item = special(hooks, x, "__len__"), special(hooks, x, "__getitem__")
    if length is None or item is None:
        return UNHANDLED
    count = operator.index(hooks.call(where, length, x))
    read = MethodType(item, x)
    return iter([hooks.call(where, read, i) for i in range(count - 1, -1, -1)])
