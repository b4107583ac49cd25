"""Operations on users' objects: special methods of the user's classes are called as Python calls
them and converted like any other; ``a + b`` of user objects reads and assigns attributes, and may
branch on data.

The functions named as events are the last handlers of these: Python's own meaning for all else.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from fusec.core.code_roles import is_ours
from fusec.ir import Loc

from ..convert.hooks import Hooks
from ..convert.properties import class_attribute
from ..convert.python_operators import REFLECTED
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import is_of_stdlib, stays_plain
from ..objects.attribute_guards import note_of_class
from ..objects.tracing_hooks import UNHANDLED, TracingHooks
from ..objects.user_methods import method_of, users_function
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.exception_handlers import REFUSALS, Suppressing, catching, classes_of, may_suppress

_CALLABLE = (type, type(len))
# Builtins that ask an object, with the method that answers.
_ASKING: dict[Any, str] = {
    builtins.len: "__len__", builtins.abs: "__abs__", builtins.iter: "__iter__",
    builtins.round: "__round__", math.floor: "__floor__", math.ceil: "__ceil__",
    math.trunc: "__trunc__",
}


def special(hooks: TracingHooks, obj: Any, name: str) -> FunctionType | None:
    """`method_of`; the class must have the same function at each call."""
    method = method_of(obj, name)
    if method is not None:
        note_of_class(hooks.trace, type(obj), name)
    elif type(obj).__flags__ & HEAP_TYPE and is_of_stdlib(class_attribute(type(obj), name)):
        hooks.trace.world.watch.note_library_object(obj)
    return method


def _of_class(hooks: TracingHooks, kind: type, name: str) -> FunctionType | None:
    held = class_attribute(kind, name)
    function = users_function(getattr(held, "__func__", held))
    if function is not None:
        note_of_class(hooks.trace, kind, name)
    return function


def as_index(hooks: TracingHooks, x: Any) -> Any:
    """An object, or those in a tuple or slice, by the index that it says it is."""
    if type(x) is tuple:
        return tuple(as_index(hooks, part) for part in x)
    if type(x) is slice:
        return slice(*(as_index(hooks, part) for part in (x.start, x.stop, x.step)))
    method = special(hooks, x, "__index__")
    if method is None:
        return x
    index = hooks.call(hooks.where, method, x)
    return index if type(index) is TracedArray else operator.index(index)


def asked(hooks: TracingHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The method of the user's that ``fn`` asks of its argument; else ``fn`` itself."""
    if not args or (kwargs and fn is not round) or type(args[0]) is TracedArray or (
            len(args) > 1 and fn is not round) or not asked_of(fn, args[0]):
        return fn
    return special(hooks, args[0], _ASKING[fn]) or fn


def asked_of(fn: Any, x: Any) -> bool:
    """Whether an object itself gives the result of ``fn``."""
    return type(fn) in _CALLABLE and fn in _ASKING and (
        type(x).__flags__ & HEAP_TYPE) != 0 and class_attribute(type(x), _ASKING[fn]) is not None


def resolve(hooks: TracingHooks, fn: Any) -> Callable[..., Any]:
    kind = type(fn)
    called = class_attribute(kind, "__call__")
    if kind.__flags__ & HEAP_TYPE and not isinstance(fn, type) and (
            type(called) is FunctionType and not is_ours(called.__globals__)):
        note_of_class(hooks.trace, kind, "__call__")
    return Hooks.resolve(hooks, fn)


def constructed(hooks: TracingHooks, where: Where, kind: Any, args: Any, kwargs: Any) -> Any:
    """A new object of a class, with its ``__init__`` converted."""
    if not isinstance(kind, type):
        return UNHANDLED
    if hooks.trace.active and kind.__flags__ & HEAP_TYPE:
        hooks.watch.check_class(kind)
    init = _of_class(hooks, kind, "__init__")
    if init is None and dataclasses.is_dataclass(kind):
        return _dataclass(hooks, where, kind, args, kwargs)
    new = _of_class(hooks, kind, "__new__")
    if new is not None and type(kind).__call__ is type.__call__:
        instance = hooks.call(where, new, kind, *args, **kwargs)
        if isinstance(instance, kind) and init is not None:
            hooks.call(where, MethodType(init, instance), *args, **kwargs)
        return instance
    if init is None or kind.__new__ is not object.__new__ or (
            type(kind).__call__ is not type.__call__):
        return UNHANDLED
    instance = object.__new__(kind)
    hooks.note_made(instance)
    hooks.call(where, MethodType(init, instance), *args, **kwargs)
    return instance


def _dataclass(hooks: TracingHooks, where: Where, kind: type, args: Any, kwargs: Any) -> Any:
    """The same of a dataclass: its generated ``__init__`` as it is, its ``__post_init__``
    converted."""
    kwargs = _with_factories(hooks, where, kind, args, kwargs)
    if kind.__new__ is not object.__new__ or type(kind).__call__ is not type.__call__:
        instance: Any = kind(*args, **kwargs)
        hooks.note_made(instance)
        return instance
    instance = object.__new__(kind)
    begin = getattr(kind, "__init__")  # noqa: B009  # as mypy will have it
    hooks.note_made(instance)  # before its __init__, which Watch hears of, reads anything of it
    post = _of_class(hooks, kind, "__post_init__")
    if post is None or not hasattr(instance, "__dict__"):
        begin(instance, *args, **kwargs)
        return instance
    given: list[Any] = []
    vars(instance)["__post_init__"] = lambda *values: given.extend(values)
    begin(instance, *args, **kwargs)
    del vars(instance)["__post_init__"]
    hooks.call(where, MethodType(post, instance), *given)
    return instance


def _with_factories(hooks: TracingHooks, where: Where, kind: Any, args: Any, kwargs: Any) -> Any:
    """The keyword arguments of a dataclass, with the results of its fields' default factories."""
    fields = [f for f in dataclasses.fields(kind) if f.init]
    if len(fields) < len(dataclasses.fields(kind)):
        hooks.watch.constructing(kind)
    by_position = [f.name for f in fields if not f.kw_only][:len(args)]
    return {**kwargs, **{
        f.name: hooks.call(where, f.default_factory) for f in fields
        if f.default_factory is not dataclasses.MISSING and f.name not in kwargs
        and f.name not in by_position}}


def unop(hooks: TracingHooks, where: Where, op: str, a: Any) -> Any:
    method = special(hooks, a, f"__{op}__")
    return Hooks.unop(hooks, where, op, a) if method is None else hooks.call(where, method, a)


def binop(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    result = binary(hooks, where, a, b, f"__{op}__", f"__r{op}__")
    return Hooks.binop(hooks, where, op, a, b) if result is NotImplemented else result


def compare(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    result = NotImplemented
    if op in REFLECTED:
        result = binary(hooks, where, a, b, f"__{op}__", f"__{REFLECTED[op]}__")
    if result is NotImplemented and op == "ne" and not _has_own(a, "__ne__"):
        result = binary(hooks, where, a, b, "__eq__", "__eq__")
        if result is not NotImplemented:
            return hooks.not_(where, result)
    return Hooks.compare(hooks, where, op, a, b) if result is NotImplemented else result


def binary(hooks: TracingHooks, where: Where, a: Any, b: Any, name: str, reflected: str) -> Any:
    """The result of the user's methods; `NotImplemented` where there are none."""
    left, right = special(hooks, a, name), special(hooks, b, reflected)
    if type(a) is type(b) and reflected.startswith("__r"):
        right = None  # of comparisons alone Python asks the other one of the same class
    if type(a) is TracedArray and hasattr(type(b), "__len__"):
        right = None  # NumPy takes it for a sequence
    tried = [(left, a, b), (right, b, a)]
    if right is not None and type(b) is not type(a) and isinstance(b, type(a)):
        tried.reverse()
    elif left is None and right is not None:
        plain = class_attribute(type(a), name)
        result = NotImplemented if plain is None else plain(a, b)
        if result is not NotImplemented:
            return result
    for method, x, y in tried:
        result = NotImplemented if method is None else hooks.call(where, method, x, y)
        if result is not NotImplemented:
            return result
    return NotImplemented


def _has_own(a: Any, name: str) -> bool:
    return class_attribute(type(a), name) is not class_attribute(object, name)


def iop(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    method = special(hooks, a, f"__i{op}__")
    if method is not None:
        result = hooks.call(where, method, a, b)
        if result is not NotImplemented:
            return result
    if method is not None or special(hooks, a, f"__{op}__") is not None:
        return hooks.binop(where, op, a, b)
    return Hooks.iop(hooks, where, op, a, b)


def contains(hooks: TracingHooks, where: Where, item: Any, container: Any) -> Any:
    method = special(hooks, container, "__contains__")
    if method is None:
        return Hooks.contains(hooks, where, item, container)
    # Python makes a bool of what the method gives.
    return hooks.not_(where, hooks.not_(where, hooks.call(where, method, container, item)))


def asked_truth(hooks: TracingHooks, test: Any) -> Any:
    """The truth of an object by its own method, asked once."""
    method = special(hooks, test, "__bool__")
    if method is not None:
        return hooks.call(hooks.where, method, test)
    method = special(hooks, test, "__len__")
    return test if method is None else hooks.compare(
        hooks.where, "ne", hooks.call(hooks.where, method, test), 0)


def getitem(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    method = special(hooks, obj, "__getitem__")
    of_class = class_attribute(obj, "__class_getitem__") if isinstance(obj, type) else None
    if of_class is not None and users_function(getattr(of_class, "__func__", None)) is not None:
        note_of_class(hooks.trace, obj, "__class_getitem__")
        return hooks.call(where, MethodType(of_class.__func__, obj), key)
    return Hooks.getitem(hooks, where, obj, key) if method is None else (
        hooks.call(where, method, obj, key))


def setitem(hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any) -> Any:
    method = special(hooks, obj, "__setitem__")
    return Hooks.setitem(hooks, where, value, obj, key) if method is None else (
        hooks.call(where, method, obj, key, value))


def delitem(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    method = special(hooks, obj, "__delitem__")
    return Hooks.delitem(hooks, where, obj, key) if method is None else (
        hooks.call(where, method, obj, key))


def getattribute(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    attribute = None if type(obj) is TracedArray else class_attribute(type(obj), name)
    method = None if attribute is None else special(hooks, attribute, "__get__")
    if method is not None:
        return hooks.call(where, method, attribute, obj, type(obj))
    if isinstance(obj, type) and is_computed(obj, name):
        attribute = class_attribute(obj, name)
        return hooks.call(where, method_of(attribute, "__get__"), attribute, None, obj)
    if type(attribute) is functools.cached_property and name not in vars(obj) and (
            id(obj) in hooks.trace.local.objects):
        value = hooks.call(where, attribute.func, obj)
        hooks.setattr(where, value, obj, name)
        return value
    return Hooks.getattr(hooks, where, obj, name)


def is_computed(obj: Any, name: str) -> bool:
    """Whether a descriptor of the user's, in the class or its class, gives the attribute."""
    kinds = (obj, type(obj)) if isinstance(obj, type) else (type(obj),)
    return any(method_of(class_attribute(k, name), "__get__") is not None for k in kinds)


def setattribute(hooks: TracingHooks, where: Where, value: Any, obj: Any, name: str) -> Any:
    """Where the class says how an attribute is bound: by ``__setattr__``, a property or another
    descriptor."""
    attribute = class_attribute(type(obj), name)
    method = special(hooks, obj, "__setattr__")
    if method is not None:
        hooks.call(where, method, obj, name, value)
    elif type(attribute) is property and users_function(attribute.fset) is not None:
        hooks.call(where, attribute.fset, obj, value)
    elif attribute is not None and (method := special(hooks, attribute, "__set__")) is not None:
        hooks.call(where, method, attribute, obj, value)
    else:
        return UNHANDLED
    return None


def manager(hooks: TracingHooks, where: Where, context: Any) -> Any:
    """The manager that a ``with`` statement enters instead of ``context``."""
    if type(context) is contextlib.suppress:
        return Suppressing(hooks.trace, context, Loc._make(where))
    if type(context) is contextlib._GeneratorContextManager:
        _convert_generator(hooks, where, context)
    methods = [special(hooks, context, name) for name in ("__enter__", "__exit__")]
    return context if None in methods else _Manager(hooks, where, context)


def _convert_generator(hooks: TracingHooks, where: Where, context: Any) -> None:
    """Give a manager that is not entered a converted generator: its own has not begun."""
    function = vars(context).get("func")
    if type(function) is FunctionType and not stays_plain(function):
        context.gen = hooks.call(where, context.func, *context.args, **context.kwds)


def trying(hooks: TracingHooks, where: Where, caught: Callable[[], Any] | None) -> Any:
    """Around the body of a ``try`` that catches these exceptions (None: all)."""
    return catching(hooks.trace, classes_of(caught), Loc._make(where))


class _Manager:
    """A context manager of the user's, its methods converted."""

    def __init__(self, hooks: TracingHooks, where: Where, context: Any) -> None:
        self.hooks, self.where, self.context = hooks, where, context
        self.handler: Any = None  # where its `__exit__` may keep exceptions to itself

    def __enter__(self) -> Any:
        entered = self.hooks.call(self.where, method_of(self.context, "__enter__"), self.context)
        if may_suppress(method_of(self.context, "__exit__")):
            self.handler = catching(self.hooks.trace, (BaseException,), Loc._make(self.where))
            self.handler.__enter__()
        return entered

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        if self.handler is not None:
            self.handler.__exit__(kind, error, traceback)
        if isinstance(error, REFUSALS):
            return False
        return self.hooks.call(
            self.where, method_of(self.context, "__exit__"), self.context, kind, error, traceback)
