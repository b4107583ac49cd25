"""Attributes: inputs, effects, guards, or Python's own, of objects that the trace made."""

from __future__ import annotations

import sys
import warnings
from types import FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from fusec.core.code_roles import is_ours
from fusec.errors import unsupported
from fusec.ir.graph import Loc
from fusec.state.variable import Variable

from ..arrays.array_attributes import Flags, assign
from ..call.foreign_arrays import is_foreign, refusal
from ..choice.records import Namespaces
from ..convert.hooks import Hooks
from ..convert.properties import getter_of
from ..facts.policy import stays_plain
from ..guards.guard import is_guarded, is_kept, is_object, is_own
from ..guards.places import UNBOUND
from ..guards.process_state import note_library
from ..guards.static_arguments import ShownObjects
from ..objects.attribute_guards import (
    note_method,
    note_missing,
    note_names,
    note_of_class,
    note_value,
)
from ..objects.chosen_objects import check_write
from ..objects.tracing_hooks import UNHANDLED, Operands, TracingHooks
from ..objects.user_methods import method_of
from ..operands import sizes
from ..operands.operands import as_traced, holds_traced
from ..operands.perhaps_pythons import check_attribute
from ..places.kept_values import note_bound
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from .special_methods import getattribute, is_computed

_CHANGING = frozenset({"update", "pop", "popitem", "clear", "setdefault", "__setitem__",
                       "__delitem__"})
_SIZES = frozenset({"shape", "size", "nbytes", "strides"})


def note_found(hooks: TracingHooks, where: Where, value: Any) -> None:
    """A value that was found in an attribute or container."""
    if hooks.trace.active and is_foreign(value):
        raise refusal(value, "what is read here", Loc._make(where))
    hooks.watch.see(value)
    hooks.effects.note_read(value)
    hooks.trace.world.containers.uses.note_found(value, where)


def check_namespace(hooks: TracingHooks, where: Where, obj: Any) -> None:
    """Raise before a change of ``vars(obj)`` of an object that outlives the call."""
    if type(obj) is MappingProxyType and id(obj) in hooks.trace.world.reachable.reached:
        raise unsupported(
            "changing vars() of an object that outlives the call", loc=Loc._make(where),
            cure="assign the attribute, obj.name = value, or return the value and assign it after "
            "the call")


def namespace_of(hooks: TracingHooks, where: Where, obj: Any, content: Any) -> Any:
    """``vars(obj)``: its attributes as the program reads them, of an object from outside or one
    whose attributes branches or loops assigned."""
    assigned = [place.name for place in hooks.places.attributes_of(obj)]
    is_own = id(obj) in hooks.trace.local.objects and not assigned and (
        id(obj) not in hooks.trace.local.chosen)
    if is_own and type(content) is dict:
        hooks.trace.part(Namespaces).add(id(obj))
    if not hooks.trace.active or is_own or not is_guarded(obj):
        return content
    if isinstance(obj, (type, ModuleType)):
        note_value(hooks.trace, obj, "__dict__", content)
        return content
    note_names(hooks.trace, obj)
    names = dict.fromkeys([*content, *assigned])
    namespace = MappingProxyType({name: hooks.getattr(where, obj, name) for name in names})
    hooks.trace.part(ShownObjects)[id(namespace)] = namespace
    hooks.trace.world.reachable.reach(namespace)
    return namespace


def of_super(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    """``super().name``: a user's property is converted like any function."""
    kind: Any = type(obj)
    if kind is not super:
        return UNHANDLED
    kinds = obj.__self_class__.__mro__
    kinds = kinds[kinds.index(obj.__thisclass__) + 1:]
    holder = next((k for k in kinds if name in vars(k)), None)
    attribute = vars(holder)[name] if holder is not None else None
    if holder is not None and hooks.trace.active:
        note_of_class(hooks.trace, holder, name)
    if type(attribute) is property and type(attribute.fget) is FunctionType:
        return hooks.call(where, attribute.fget, obj.__self__)
    return getattr(obj, name)


def of_module(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    """The result of a module's own ``__getattr__``."""
    is_missing = type(obj) is ModuleType and name not in vars(obj)
    getter = vars(obj).get("__getattr__") if is_missing else None
    is_users = type(getter) is FunctionType and not stays_plain(getter)
    return hooks.call(where, getter, name) if is_users else UNHANDLED


def namespace(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    hooks.trace.world.containers.uses.note_method(obj, name, where)
    is_namespace = name == "__dict__" and type(obj) is not TracedArray
    return namespace_of(hooks, where, obj, getattr(obj, name)) if is_namespace else UNHANDLED


def of_array(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    """That the real array or number has the attribute: a Python number has no shape, say."""
    if name in _CHANGING:
        check_namespace(hooks, where, obj)
    if isinstance(obj, Variable) and obj.answers(name):
        return getattr(obj, name)
    obj = hooks.traced_if_outside(obj)
    if type(obj) is not TracedArray:
        return UNHANDLED
    check_attribute(obj, name)
    if not hasattr(obj.__class__, name):
        raise hooks.trace.error(AttributeError(
            f"'{obj.kind_name}' object has no attribute {name!r}"))
    # The attribute ``trace`` itself is the trace in progress.
    return obj.diagonal_sum if name == "trace" else Operands((obj, name))


def assigned(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    """The value that the program assigned."""
    place = hooks.places.attribute(obj, name)
    if place is None:
        return UNHANDLED
    result = place.now()
    if result is UNBOUND:
        raise AttributeError(f"{type(obj).__name__!r} object has no attribute {name!r}")
    note_found(hooks, where, result)
    return result


def read(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    """The attribute that Python finds, guarded."""
    try:
        result = getattribute(hooks, where, obj, name)
    except AttributeError:
        note_missing(hooks.trace, obj, name)
        raise
    note_found(hooks, where, result)
    note_bound(hooks.trace, result, obj)
    if name in _SIZES and type(obj) is TracedArray:
        hooks.where = where
        return sizes.numbers(hooks.trace, result)
    if type(obj) is np.ndarray or (
            type(result) is np.ndarray and id(obj) in hooks.trace.local.objects
            and id(result) not in hooks.trace.local.arrays and _is_only_there(result)):
        return hooks.note_local(result)
    return _guarded(hooks, obj, name, result)


def _is_only_there(array: np.ndarray) -> bool:
    """Whether only the object that has the array, and code that reads it, hold it and its
    base."""
    base: Any = array.base
    held = sys.getrefcount(array)
    return held <= _READ and (base is None or (
        type(base) is np.ndarray and base.base is None and sys.getrefcount(base) <= _READ))


def _references_of_read() -> int:
    """Those of an attribute, two variables, and an argument."""
    def read(array: Any) -> int:
        return sys.getrefcount(array)

    def of(obj: Any) -> int:
        result = obj.array
        return read(result)

    return of(SimpleNamespace(array=object()))


_READ = _references_of_read()


def _guarded(hooks: TracingHooks, obj: Any, name: str, result: Any) -> Any:
    """The attribute's value, which a guard on its place binds to the traced one."""
    trace = hooks.trace
    if getter_of(obj, name) is not None:
        note_of_class(trace, type(obj), name)
        return result  # what the property read is guarded
    if type(obj) is not TracedArray and is_computed(obj, name):
        return result
    if type(result) is MethodType and result.__self__ is obj and trace.active:
        note_method(trace, obj, name)
    if type(obj) is ModuleType and not is_guarded(obj):
        note_library(trace, obj, name)
    if trace.active and type(obj) is not TracedArray and is_guarded(obj) and (
            id(obj) not in trace.local.objects):
        result = hooks.attributes.value(obj, name, result, (*hooks.functions, *trace.entry))
    if trace.active and type(result) is not TracedArray and (
            (is_own(result) and not is_object(result)) or is_kept(obj, name, result)):
        note_value(trace, obj, name, result)
    return result


def attribute_or(hooks: TracingHooks, obj: Any, name: str, *default: Any) -> Any:
    """``getattr(obj, name, default)``; that it is missing is checked at each call."""
    if default and type(obj) is TracedArray:
        check_attribute(obj, name, is_asked=True)
    try:
        return hooks.getattr(hooks.where, obj, name)
    except AttributeError:
        if not default:
            raise
        return default[0]


def assign_traced(hooks: TracingHooks, where: Where, value: Any, obj: Any, name: str) -> Any:
    if type(obj) is TracedArray and hooks.trace.active:
        return assign(obj, name, value)
    if type(obj) is Flags or not hooks.trace.active:
        return Hooks.setattr(hooks, where, value, obj, name)
    return UNHANDLED


def assign_own_array(hooks: TracingHooks, where: Where, value: Any, obj: Any, name: str) -> Any:
    """An attribute of an array that plain NumPy made in the trace."""
    if type(obj) is not np.ndarray or id(obj) not in hooks.trace.local.arrays:
        return UNHANDLED
    if holds_traced([value]) or hooks.trace.local.memory.must_trace(obj):
        return assign(as_traced(hooks.trace, obj), name, value)
    hooks.trace.local.changes += 1
    with warnings.catch_warnings():  # of NumPy, about a line that is not ours
        warnings.simplefilter("ignore", DeprecationWarning)
        return Hooks.setattr(hooks, where, value, obj, name)


def store(
    hooks: TracingHooks, where: Where, value: Any, obj: Any, name: str, past_class: bool = False
) -> None:
    """Bind an attribute that the class's own code does not; ``past_class``: whatever it says,
    as ``object.__setattr__`` does."""
    check_write(hooks.trace, obj, f"assigning to the attribute {name!r}")
    _check_kept(hooks, obj, name)
    is_local = id(obj) in hooks.trace.local.objects
    if not is_local or _is_older(hooks, obj, name):
        hooks.attributes.write(obj, name, value)
        return
    hooks.trace.local.changes += 1
    if not past_class and method_of(obj, "__setattr__") is None:
        Hooks.setattr(hooks, where, value, obj, name)
    else:
        object.__setattr__(obj, name, value)


def _is_fusecs(kind: type) -> bool:
    return is_ours(vars(sys.modules[kind.__module__]))


def _check_kept(hooks: TracingHooks, obj: Any, name: str) -> None:
    """Raise for an attribute of one of fusec's own objects that stand for the caller's: what is
    bound here would not be there."""
    kept = vars(type(obj)).get("KEPT_ATTRIBUTES")
    if kept is not None and _is_fusecs(type(obj)) and (
            name not in kept or name in vars(obj)):
        raise unsupported(
            f"assigning to the attribute {name!r} of a sparse array", loc=hooks.loc,
            cure="keep it in a variable, or in an object of your own")


def delete(hooks: TracingHooks, where: Where, obj: Any, name: str) -> None:
    hooks.where = where
    check_write(hooks.trace, obj, f"deleting the attribute {name!r}")
    trace, place = hooks.trace, hooks.places.attribute(obj, name)
    if trace.active and place is not None and hooks.places.initial[place.title] is UNBOUND:
        place.put(UNBOUND)
    elif not trace.active or (id(obj) in trace.local.objects and not trace.in_region):
        Hooks.delattr(hooks, where, obj, name)
    else:
        raise unsupported(f"deleting the attribute {name!r}", loc=hooks.loc,
                          cure="delete it after the call")


def _is_older(hooks: TracingHooks, obj: Any, name: str) -> bool:
    """Whether an object made in the trace outlives the branch or loop that assigns to it."""
    born = hooks.trace.local.births[id(obj)]
    return hooks.places.attribute(obj, name) is not None or hooks.trace.is_older_than_region(born)
