"""Hooks of attributes, and what tells arrays and objects from outside from those of the trace."""

from __future__ import annotations

import operator
import warnings
from collections import deque
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.graph import Loc, new_id

from ..arrays.array_attributes import Flags, assign
from ..call.foreign_arrays import is_foreign, refusal
from ..convert.properties import class_attribute, getter_of
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import stays_plain
from ..facts.refusals import is_compiled
from ..guards.array_values import guard_content
from ..guards.contents import DICT_VIEWS
from ..guards.guard import is_guarded, is_in_object, is_object, is_own
from ..guards.places import UNBOUND, Place, Places
from ..guards.process_state import note_library
from ..objects.attribute_guards import note_method, note_missing, note_of_class, note_value
from ..objects.user_methods import method_of
from ..objects.watch import Watch
from ..operands import sizes
from ..operands.operands import as_traced, holds_traced
from ..places.attributes import Attributes
from ..places.containers import Containers
from ..places.effects import Effects
from ..places.kept_values import note_bound
from ..places.outer_names import OuterNames
from ..places.outside import Outside
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.trace import Trace
from .special_methods import SpecialMethods

_CHANGING = frozenset({"update", "pop", "popitem", "clear", "setdefault", "__setitem__",
                       "__delitem__"})
_SIZES = frozenset({"shape", "size", "nbytes", "strides"})


class AttributeHooks(SpecialMethods):
    """Attributes are inputs, effects, guards, or Python's own: of objects that the trace made."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        self.functions: dict[FunctionType, None] = {}
        self.effects = Effects(trace)
        self.attributes = Attributes(trace)
        trace.world.outer_names = OuterNames(trace)
        trace.world.containers = Containers(trace)
        trace.world.reachable = Outside(trace)
        trace.hooks = self
        self.watch = trace.world.watch = Watch(self)

    @property
    def places(self) -> Places:
        return self.trace.part(Places)

    def note_made(self, made: Any) -> None:
        self.watch.see(made)
        self.trace.local.objects[id(made)] = made
        self.trace.local.births[id(made)] = new_id()

    def traced_if_outside(self, x: Any) -> Any:
        return as_traced(self.trace, x) if self.is_from_outside(x) else x

    def lifted(self, x: Any) -> Any:
        """An array from outside as a traced value, so that every call reads it anew."""
        if type(x) in (list, tuple):
            return type(x)(map(self.lifted, x))
        if isinstance(x, (list, tuple, deque)) and type(x) is not TracedArray:
            return self._lifted_sequence(x)
        if isinstance(x, dict):
            return {key: self.lifted(value) for key, value in x.items()}
        method = method_of(x, "__array__")
        if method is not None and self.trace.active:
            return self.traced_if_outside(self.call(self.where, MethodType(method, x)))
        if type(x) in DICT_VIEWS and self.trace.active:
            return list(map(self.lifted, x))
        return self.traced_if_outside(x)

    def lifted_items(self, x: Any) -> Any:
        """The same of what is gone over; lists and dicts in it stay the program's own, which it may
        change, as does what holds them: it may be changed while an iterator goes over it."""
        is_view = type(x) in DICT_VIEWS and self.trace.active
        if not is_view and type(x) not in (list, tuple) and not isinstance(x, dict | deque):
            return self.lifted(x)
        old = list(x.values() if isinstance(x, dict) else x)
        items = list(map(self.lifted_item, old))
        if all(a is b for a, b in zip(items, old, strict=True)):
            return x
        if isinstance(x, dict):
            return dict(zip(x, items, strict=True))
        if isinstance(x, deque):
            return deque(items, x.maxlen)
        return tuple(items) if type(x) is tuple else items

    def lifted_item(self, x: Any) -> Any:
        if type(x) is tuple:
            items = tuple(map(self.lifted_item, x))
            return x if all(a is b for a, b in zip(items, x, strict=True)) else items
        return x if isinstance(x, (list, dict, deque)) else self.lifted(x)

    def as_index(self, x: Any) -> Any:
        """An object, or those in a tuple or slice, by the index that it says it is."""
        if type(x) is tuple:
            return tuple(map(self.as_index, x))
        if type(x) is slice:
            return slice(*map(self.as_index, (x.start, x.stop, x.step)))
        method = self.special(x, "__index__")
        if method is None:
            return x
        found = self.call(self.where, method, x)
        return found if type(found) is TracedArray else operator.index(found)

    def _lifted_sequence(self, x: Any) -> Any:
        """The same of a namedtuple, a deque, or a class of lists of the user's."""
        items = list(map(self.lifted, x))
        if all(a is b for a, b in zip(items, x, strict=True)):
            return x
        if isinstance(x, tuple):
            return x._make(items) if hasattr(x, "_make") else tuple(items)
        return deque(items, x.maxlen) if isinstance(x, deque) else items

    def is_from_outside(self, x: Any) -> bool:
        if not issubclass(type(x), np.ndarray) or not self.trace.active:
            return False
        if type(x) not in (np.ndarray, np.memmap) or not is_compiled(x.dtype):
            guard_content(self.trace, x)
            return False
        return id(x) not in self.trace.local.arrays or self.trace.local.memory.is_traced(x)

    def took(self, *values: Any) -> None:
        """Python is about to use the values of arrays among these, or of a slice's bounds."""
        for x in values:
            if type(x) in (tuple, slice):
                self.took(*(x if type(x) is tuple else (x.start, x.stop, x.step)))
            elif issubclass(type(x), np.ndarray):
                guard_content(self.trace, x)

    def test(self, where: Where, value: Any) -> bool:
        self.took(value)
        return super().test(where, value)

    def decide(self, test: Any) -> bool | None:
        self.took(test)
        return super().decide(test)

    def note_local(self, result: Any) -> Any:
        """Remembers an array that plain NumPy made of arrays of the trace: a constant."""
        if issubclass(type(result), np.ndarray):
            self.trace.local.memory.note(result)
            self.trace.local.arrays[id(result)] = result
        elif isinstance(result, (tuple, list)) and type(result) is not TracedArray:
            for item in result:
                self.note_local(item)
        return result

    def _computed(self, result: Any) -> Any:
        """Remembers a new array; a list or tuple holds those that were there: ``L + L``."""
        return self.note_local(result) if issubclass(type(result), np.ndarray) else result

    def check_attribute(self, where: Where, obj: Any, name: str) -> None:
        """That the real array or number has the attribute: a Python number has no shape, say."""
        if name in _CHANGING:
            self.check_namespace(where, obj)
        if type(obj) is TracedArray and not hasattr(obj.__class__, name):
            self.where = where
            raise self.trace.error(AttributeError(
                f"'{obj.kind_name}' object has no attribute {name!r}"))

    def check_namespace(self, where: Where, obj: Any) -> None:
        """Raise where it is ``vars(obj)`` of what outlives the call, and is about to be changed."""
        if type(obj) is MappingProxyType and id(obj) in self.trace.world.reachable.reached:
            raise unsupported("changing vars() of an object that outlives the call",
                              loc=Loc._make(where), cure="use setattr(obj, name, value)")

    def namespace_of(self, where: Where, obj: Any, found: Any) -> Any:
        """``vars(obj)``: its attributes as the program reads them, of an object from outside or one
        whose attributes branches or loops assigned."""
        assigned = [place.name for place in self.places.attributes_of(obj)]
        is_own = id(obj) in self.trace.local.objects and not assigned
        if not self.trace.active or is_own or not is_guarded(obj) or (
                isinstance(obj, (type, ModuleType))):
            return found
        names = dict.fromkeys([*found, *assigned])
        made = MappingProxyType({name: self.getattr(where, obj, name) for name in names})
        self.trace.world.reachable.reach(made)
        return made

    def _of_super(self, where: Where, obj: Any, name: str) -> Any:
        """``super().name``: a user's property is converted like any function."""
        self.where = where
        kinds = obj.__self_class__.__mro__
        kinds = kinds[kinds.index(obj.__thisclass__) + 1:]
        holder = next((k for k in kinds if name in vars(k)), None)
        found = vars(holder)[name] if holder is not None else None
        if holder is not None and self.trace.active:
            self.note_of_class(holder, name)
        if type(found) is property and type(found.fget) is FunctionType:
            return self.call(where, found.fget, obj.__self__)
        return getattr(obj, name)

    def getattr(self, where: Where, obj: Any, name: str) -> Any:
        if type(obj) is super:
            return self._of_super(where, obj, name)
        if type(obj) is ModuleType and name not in vars(obj):
            found = vars(obj).get("__getattr__")
            if isinstance(found, FunctionType) and not stays_plain(found):
                return self.call(where, found, name)
        self.trace.world.containers.uses.note_method(obj, name, where)
        if name == "__dict__" and type(obj) is not TracedArray:
            return self.namespace_of(where, obj, getattr(obj, name))
        if self.is_from_outside(obj):
            self.where = where
            obj = as_traced(self.trace, obj)
        self.check_attribute(where, obj, name)
        if name == "trace" and type(obj) is TracedArray:
            return obj.diagonal_sum  # the attribute itself is the trace in progress
        place = self.places.attribute(obj, name)
        if place is not None:
            self.where = where
            result = _assigned(place, obj)
            self._note_found(where, result)
            return result
        try:
            result = super().getattr(where, obj, name)
        except AttributeError:
            note_missing(self.trace, obj, name)
            raise
        self._note_found(where, result)
        note_bound(self.trace, result, obj)
        if name in _SIZES and type(obj) is TracedArray:
            self.where = where
            return sizes.numbers(self.trace, result)
        if type(obj) is np.ndarray:
            return self.note_local(result)
        return self._guarded(obj, name, result)

    def _guarded(self, obj: Any, name: str, result: Any) -> Any:
        """What the attribute gives, bound to what it gave by a guard on where it lies."""
        if getter_of(obj, name) is not None:
            if self.trace.active:
                self.note_of_class(type(obj), name)
            return result  # what the property read is guarded
        if type(obj) is not TracedArray and self.is_computed(obj, name):
            return result
        if type(result) is MethodType and result.__self__ is obj and self.trace.active:
            note_method(self.trace, obj, name)
        elif type(result) is FunctionType and name not in getattr(obj, "__dict__", ()):
            self.note_of_class(type(obj), name)  # a static method
        if type(obj) is ModuleType and not is_guarded(obj):
            note_library(self.trace, obj, name)
        if self.trace.active and type(obj) is not TracedArray and is_guarded(obj) and (
                id(obj) not in self.trace.local.objects):
            result = self.attributes.value(obj, name, result, (*self.functions, *self.trace.entry))
        if self.trace.active and is_own(result) and type(result) is not TracedArray and (
                not is_object(result) or is_in_object(obj, name)):
            note_value(self.trace, obj, name, result)
        return result

    def _note_found(self, where: Where, value: Any) -> None:
        """A value that was found in an attribute or container."""
        if self.trace.active and is_foreign(value):
            raise refusal(value, "what is read here", Loc._make(where))
        self.watch.see(value)
        self.effects.note_read(value)
        self.trace.world.containers.uses.note_found(value, where)

    def resolve(self, fn: Any) -> Any:
        kind = type(fn)
        if kind.__flags__ & HEAP_TYPE and not isinstance(fn, type) and (
                type(class_attribute(kind, "__call__")) is FunctionType):
            self.note_of_class(kind, "__call__")
        return super().resolve(fn)

    def note_of_class(self, kind: type, name: str) -> None:
        note_of_class(self.trace, kind, name)

    def setattr(self, where: Where, value: Any, obj: Any, name: str) -> None:
        self.where = where
        if type(obj) is Flags:
            setattr(obj, name, value)
            return
        if type(obj) is TracedArray and self.trace.active:
            assign(obj, name, value)
            return
        if not self.trace.active:
            super().setattr(where, value, obj, name)
        elif type(obj) is np.ndarray and id(obj) in self.trace.local.arrays:
            self._set_of_own_array(where, value, obj, name)
        elif not self.stored_by_class(where, obj, name, value):
            self.store_attribute(where, obj, name, value)

    def _set_of_own_array(self, where: Where, value: Any, obj: np.ndarray, name: str) -> None:
        """An attribute of an array that plain NumPy made in the trace."""
        if holds_traced([value]) or self.trace.local.memory.must_trace(obj):
            assign(as_traced(self.trace, obj), name, value)
            return
        self.trace.local.changes += 1
        with warnings.catch_warnings():  # of NumPy, about a line that is not ours
            warnings.simplefilter("ignore", DeprecationWarning)
            super().setattr(where, value, obj, name)

    def store_attribute(
        self, where: Where, obj: Any, name: str, value: Any, past_class: bool = False
    ) -> None:
        """Bind an attribute that the class's own code does not; ``past_class``: whatever it says,
        as ``object.__setattr__`` does."""
        is_local = id(obj) in self.trace.local.objects
        if not is_local or self._is_older(obj, name):
            self.attributes.write(obj, name, value)
            return
        self.trace.local.changes += 1
        if not past_class and method_of(obj, "__setattr__") is None:
            super().setattr(where, value, obj, name)
        else:
            object.__setattr__(obj, name, value)

    def delattr(self, where: Where, obj: Any, name: str) -> None:
        self.where = where
        place = self.places.attribute(obj, name)
        if not self.trace.active:
            super().delattr(where, obj, name)
        elif place is not None and self.places.initial[place.title] is UNBOUND:
            place.put(UNBOUND)
        elif id(obj) in self.trace.local.objects and not self.trace.in_region:
            super().delattr(where, obj, name)
        else:
            raise unsupported(f"deleting the attribute {name!r}", loc=self.loc,
                              cure="delete it after the call")

    def attribute_or(self, where: Where, obj: Any, name: str, *default: Any) -> Any:
        """``getattr(obj, name, default)``; that it is missing is checked at each call."""
        try:
            return self.getattr(where, obj, name)
        except AttributeError:
            if not default:
                raise
            return default[0]

    def _is_older(self, obj: Any, name: str) -> bool:
        """Whether an object made in the trace outlives the branch or loop that assigns to it."""
        born = self.trace.local.births[id(obj)]
        return self.places.attribute(obj, name) is not None or (
            self.trace.is_older_than_region(born))


def _assigned(place: Place, obj: Any) -> Any:
    """What was assigned to the attribute last."""
    value = place.now()
    if value is UNBOUND:
        raise AttributeError(f"{type(obj).__name__!r} object has no attribute {place.name!r}")
    return value
