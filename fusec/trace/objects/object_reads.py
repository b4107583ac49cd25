"""Objects of the user's in code that is not converted: copies of them, and other readers.

Copies are made of attributes as the program reads them.  Other code (C's, the standard library's,
methods that `dataclasses` generates) sees the attributes that an object has while it is traced:
they must be the same at each call, and are no arrays.
"""

from __future__ import annotations

import copy
import operator
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from fusec.errors import unsupported

from ..convert.properties import class_attribute
from ..convert.python_operators import REFLECTED
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import stays_plain
from ..facts.static_values import attributes_in, slots_of
from ..guards.array_values import guard_content
from ..guards.contents import everything_in, values_inside
from ..guards.guard import Guard, is_guarded
from ..guards.places import Places, reference
from ..guards.plain_calls import takes_values
from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.handlers import everywhere
from .attribute_guards import note_constant
from .tracing_hooks import TracingHooks
from .user_methods import method_of

_ARRAYS = (np.ndarray, TracedArray)
_SHOWING = (repr, str, ascii, format)
_TELLING = (id, hash, *_SHOWING)  # which object it is
_COPYING = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__")


def is_instance(x: Any) -> bool:
    """Whether it is an object of a class of the user's."""
    kind = type(x)
    if kind is TracedArray or kind is SimpleNamespace:
        return kind is SimpleNamespace
    root = str(kind.__module__).partition(".")[0]
    return bool(kind.__flags__ & HEAP_TYPE) and is_guarded(x) and not isinstance(
        x, (type, FunctionType, BaseException)) and root not in ("fusec", "numpy") and (
        hasattr(x, "__dict__") or (
            root not in sys.stdlib_module_names and next(slots_of(kind), None) is not None))


def instances(x: Any) -> Iterator[Any]:
    """Such objects in containers and in their own attributes."""
    return filter(is_instance, everything_in(x, _parts))


def _parts(x: Any) -> Iterable[Any]:
    if type(x) is TracedArray:
        return ()
    return [held for _, held in attributes_in(x)] if is_instance(x) else values_inside(x)


# ------------------------------------------------------------------------------------ other code


def note_read(hooks: TracingHooks, fn: Any, args: tuple[Any, ...]) -> None:
    """Before ``fn``, which is called as it is: attributes of objects that it may read are
    guarded, or refused.
    """
    if hooks.trace.active and any(fn is one for one in _TELLING):
        for obj in instances(args):
            _note_which(hooks, obj)
    is_ours = hooks.table.find(fn) is not None and not any(fn is one for one in _SHOWING)
    if hooks.trace.active and not is_ours and next(instances(args), None) is not None and (
            _runs_as_it_is(fn)):
        note_instances(hooks, getattr(fn, "__qualname__", str(fn)), args)


def _note_which(hooks: TracingHooks, obj: Any) -> None:
    """The trace is of this very object: no other instance of its class may have it."""
    if id(obj) not in hooks.trace.local.objects:
        title = f"which {type(obj).__name__} it is"
        hooks.trace.world.guards[id(obj), title] = Guard(title, title, reference(obj))


def _runs_as_it_is(fn: Any) -> bool:
    function = getattr(fn, "__func__", fn)
    is_converted = type(function) is FunctionType and not stays_plain(function)
    return not is_converted and takes_values(fn)


def note_instances(hooks: TracingHooks, name: str, args: tuple[Any, ...]) -> None:
    """Attributes of its arguments that ``name`` may read must be the same at each call."""
    for obj in instances(args):
        if id(obj) not in hooks.trace.local.objects:
            _note_attributes(hooks, name, obj)


def note_compared(hooks: TracingHooks, op: str, *values: Any) -> None:
    """The same of a comparison of objects, or of containers of them, by methods without source."""
    if not hooks.trace.active:
        return
    kinds = {type(x) for x in instances(values)}
    if any(type(class_attribute(kind, f"__{name}__")) is FunctionType
           for kind in kinds for name in (op, REFLECTED.get(op, op))):
        note_instances(hooks, f"__{op}__", values)


def note_hashed(hooks: TracingHooks, key: Any) -> None:
    """Reads of a dict or set of an object that is looked up there, by methods of its class."""
    if hooks.trace.active and is_instance(key) and type(key).__hash__ is not object.__hash__:
        note_instances(hooks, "__hash__", (key,))


_BEST = (min, max)
_ORDERING = {min: "lt", max: "gt", sorted: "lt", list.sort: "lt", sum: "add", filter: "bool"}


def note_ordered(
    hooks: TracingHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Reads of ``min``, ``sorted``, ``sum`` and their like by the objects' methods."""
    method = _ORDERING.get(fn)
    if method is None or kwargs.get("key") is not None or (
            fn is filter and args and args[0] is not None) or (
            fn in _BEST and are_compared_by_users(args)):
        return
    for name in (method, f"r{method}"):
        note_compared(hooks, name, *args)


def are_compared_by_users(args: tuple[Any, ...]) -> bool:
    """Whether ``max`` of these asks methods of the user's, which `hooks` call as Python would."""
    items = args[0] if len(args) == 1 and type(args[0]) in (list, tuple) else args
    return any(method_of(x, name) is not None for x in items for name in ("__lt__", "__gt__"))


def _note_attributes(hooks: TracingHooks, name: str, obj: Any) -> None:
    trace = hooks.trace
    for attribute, value in attributes_in(obj):
        assigned = trace.part(Places).attribute(obj, attribute) is not None or (
            attribute in trace.world.assigned_names.attributes)
        if type(obj) is SimpleNamespace and type(value) is np.ndarray:
            guard_content(trace, value)
        elif assigned or isinstance(value, _ARRAYS):
            raise unsupported(
                f"passing an object whose attribute {attribute!r} "
                f"{'the program assigns' if assigned else 'is an array'} to {name}", loc=hooks.loc,
                cure="read the attributes in the program itself",
                notes=(f"{name} is not compiled, and would see what the object holds now",))
        note_constant(trace, obj, attribute)


# ---------------------------------------------------------------------------------------- copies


@everywhere(copy.copy)
def _copy(hooks: TracingHooks, x: Any) -> Any:
    if hooks.trace.active and is_instance(x):
        return _copied(hooks, x, lambda value: value)
    return copy.copy(x)


@everywhere(copy.deepcopy)
def _deepcopy(hooks: TracingHooks, x: Any, memo: Any = None) -> Any:
    if hooks.trace.active and memo is None and next(instances(x), None) is not None:
        return _deep(hooks, x, {})
    return copy.deepcopy(x, memo)


def _copied(hooks: TracingHooks, x: Any, value_of: Any, into: Any = None) -> Any:
    """A new object with the attributes that ``x`` has in the program now."""
    clone = _new(hooks, type(x)) if into is None else into
    hooks.note_made(clone)
    slots = dict(slots_of(type(x)))
    assigned = [place.name for place in hooks.trace.part(Places).attributes_of(x)]
    for name in dict.fromkeys([*dict(attributes_in(x)), *assigned]):
        value = value_of(hooks.getattr(hooks.where, x, name))
        if name in slots:
            slots[name].__set__(clone, value)
        else:
            vars(clone)[name] = value
    return clone


def _new(hooks: TracingHooks, kind: type) -> Any:
    """An object without attributes, as copies of such begin."""
    bases = [c for c in kind.__mro__[:-1] if c is not SimpleNamespace]
    own = [name for name in _COPYING for c in bases if name in vars(c) and (
        getattr(vars(c)[name], "__module__", "") != "dataclasses")]
    if own or kind.__new__ not in (object.__new__, SimpleNamespace.__new__):
        raise unsupported(
            f"copying a {kind.__name__}" + (f", which has {own[0]}" if own else ""),
            loc=hooks.loc, cure="copy it before the call, or copy its attributes")
    create: Any = kind.__new__
    return create(kind)


def _deep(hooks: TracingHooks, x: Any, memo: dict[int, Any]) -> Any:
    if id(x) in memo:
        return memo[id(x)]
    if isinstance(x, _ARRAYS):
        clone: Any = as_traced(hooks.trace, x)
        clone = clone.copy("K") if clone.is_array else clone
    elif type(x) in (list, tuple, set, deque):
        clone = type(x)(_deep(hooks, item, memo) for item in x)
    elif type(x) is dict:
        clone = {key: _deep(hooks, value, memo) for key, value in x.items()}
    elif is_instance(x):
        clone = memo[id(x)] = _new(hooks, type(x))
        _copied(hooks, x, lambda value: _deep(hooks, value, memo), clone)
    elif isinstance(x, (np.random.Generator, np.random.BitGenerator, np.random.RandomState)):
        raise unsupported("copying a random generator", loc=hooks.loc,
                          cure="copy it before the call")
    else:
        clone = copy.deepcopy(x)
    memo[id(x)] = clone
    return clone


# --------------------------------------------------------------------------------------- getters


def getter(hooks: TracingHooks, fn: Any, x: Any) -> Any:
    """Reads of ``operator.attrgetter("a.b")(x)`` and ``operator.itemgetter(0)(x)``."""
    parts = fn.__reduce__()[1]
    if isinstance(fn, operator.itemgetter):
        values = [hooks.getitem(hooks.where, x, key) for key in parts]
    else:
        values = []
        for path in parts:
            value = x
            for name in path.split("."):
                value = hooks.getattr(hooks.where, value, name)
            values.append(value)
    return values[0] if len(values) == 1 else tuple(values)


GETTERS = (operator.attrgetter, operator.itemgetter)
