"""Special methods of the user's classes, called as Python calls them and converted like any other:
``a + b`` of user objects reads and assigns attributes, and may branch on data.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import functools
import operator
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from fusec.ir import Loc, Value

from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import is_of_stdlib, stays_plain
from ..objects.user_methods import method_of, users_function
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.caught import REFUSALS, Suppressing, catching, classes_of, may_suppress
from .control import ControlHooks

_CALLABLE = (type, type(len))
_REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
# Builtins that ask an object, with the method that answers.
_ASKING: dict[Any, str] = {
    builtins.len: "__len__", builtins.abs: "__abs__", builtins.float: "__float__",
    builtins.int: "__int__", builtins.iter: "__iter__", builtins.complex: "__complex__",
    operator.index: "__index__", builtins.round: "__round__", builtins.bool: "__bool__",
}


class SpecialMethods(ControlHooks):
    """Operators, items and constructors of the user's classes."""

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and type(args[0]) is not TracedArray:
            asked = _ASKING.get(fn) if type(fn) in _CALLABLE else None
            method = None if asked is None else self.special(args[0], asked)
            if method is not None:
                return super().call(where, method, *args)
        return super().call(where, fn, *args, **kwargs)

    def special(self, obj: Any, name: str) -> FunctionType | None:
        """`method_of`; the class must have the same function at each call."""
        found = method_of(obj, name)
        if found is not None:
            self.note_of_class(type(obj), name)
        elif type(obj).__flags__ & HEAP_TYPE and is_of_stdlib(class_attribute(type(obj), name)):
            self.trace.world.watch.note_library_object(obj)
        return found

    def _of_class(self, kind: type, name: str) -> FunctionType | None:
        held = class_attribute(kind, name)
        found = users_function(getattr(held, "__func__", held))
        if found is not None:
            self.note_of_class(kind, name)
        return found

    def note_of_class(self, kind: type, name: str) -> None:
        """A class's attribute decided what is done."""
        raise NotImplementedError

    def constructed(self, where: Where, kind: type, args: Any, kwargs: Any) -> Any:
        """A new object with its ``__init__`` converted; `NotImplemented` where Python makes it."""
        init = self._of_class(kind, "__init__")
        if init is None and dataclasses.is_dataclass(kind):
            return self._dataclass(where, kind, args, kwargs)
        new = self._of_class(kind, "__new__")
        if new is not None and type(kind).__call__ is type.__call__:
            made = self.call(where, new, kind, *args, **kwargs)
            if isinstance(made, kind) and init is not None:
                self.call(where, MethodType(init, made), *args, **kwargs)
            return made
        if init is None or kind.__new__ is not object.__new__ or (
                type(kind).__call__ is not type.__call__):
            return NotImplemented
        made = object.__new__(kind)
        self.note_made(made)
        self.call(where, MethodType(init, made), *args, **kwargs)
        return made

    def _dataclass(self, where: Where, kind: type, args: Any, kwargs: Any) -> Any:
        """The same of a dataclass: its generated ``__init__`` as it is, its ``__post_init__``
        converted."""
        kwargs = self._with_factories(where, kind, args, kwargs)
        post = self._of_class(kind, "__post_init__")
        made: Any = object.__new__(kind) if kind.__new__ is object.__new__ else None
        if post is None or not hasattr(made, "__dict__"):
            made = kind(*args, **kwargs)
            self.note_made(made)
            return made
        given: list[Any] = []
        vars(made)["__post_init__"] = lambda *values: given.extend(values)
        made.__init__(*args, **kwargs)
        del vars(made)["__post_init__"]
        self.note_made(made)
        self.call(where, MethodType(post, made), *given)
        return made

    def _with_factories(self, where: Where, kind: Any, args: Any, kwargs: Any) -> Any:
        """What a dataclass is made of, with what its fields' functions give."""
        fields = [f for f in dataclasses.fields(kind) if f.init]
        if len(fields) < len(dataclasses.fields(kind)):
            self.trace.world.watch.constructing(kind)
        by_position = [f.name for f in fields if not f.kw_only][:len(args)]
        return {**kwargs, **{
            f.name: self.call(where, f.default_factory) for f in fields
            if f.default_factory is not dataclasses.MISSING and f.name not in kwargs
            and f.name not in by_position}}

    def note_made(self, made: Any) -> None:
        """The trace made an object."""
        raise NotImplementedError

    def unop(self, where: Where, op: str, a: Any) -> Any:
        method = self.special(a, f"__{op}__")
        return super().unop(where, op, a) if method is None else self.call(where, method, a)

    def binop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        found = self._binary(where, a, b, f"__{op}__", f"__r{op}__")
        return super().binop(where, op, a, b) if found is NotImplemented else found

    def compare(self, where: Where, op: str, a: Any, b: Any) -> Any:
        if op not in _REFLECTED:
            return super().compare(where, op, a, b)
        found = self._binary(where, a, b, f"__{op}__", f"__{_REFLECTED[op]}__")
        if found is NotImplemented and op == "ne" and not _has_own(a, "__ne__"):
            found = self._binary(where, a, b, "__eq__", "__eq__")
            if found is not NotImplemented:
                return self.not_(where, found)
        return super().compare(where, op, a, b) if found is NotImplemented else found

    def _binary(self, where: Where, a: Any, b: Any, name: str, reflected: str) -> Any:
        """What the user's methods give; `NotImplemented` where there are none."""
        left, right = self.special(a, name), self.special(b, reflected)
        if type(a) is type(b) and reflected.startswith("__r"):
            right = None  # of comparisons alone Python asks the other one of the same class
        if type(a) is TracedArray and hasattr(type(b), "__len__"):
            right = None  # NumPy takes it for a sequence
        tried = [(left, a, b), (right, b, a)]
        if right is not None and type(b) is not type(a) and isinstance(b, type(a)):
            tried.reverse()
        elif left is None and right is not None:
            plain = class_attribute(type(a), name)
            found = NotImplemented if plain is None else plain(a, b)
            if found is not NotImplemented:
                return found
        for method, x, y in tried:
            found = NotImplemented if method is None else self.call(where, method, x, y)
            if found is not NotImplemented:
                return found
        return NotImplemented

    def iop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        method = self.special(a, f"__i{op}__")
        if method is not None:
            found = self.call(where, method, a, b)
            if found is not NotImplemented:
                return found
        if method is not None or self.special(a, f"__{op}__") is not None:
            return self.binop(where, op, a, b)
        return super().iop(where, op, a, b)

    def contains(self, where: Where, item: Any, container: Any) -> Any:
        method = self.special(container, "__contains__")
        if method is None:
            return super().contains(where, item, container)
        # Python makes a bool of what the method gives.
        return self.not_(where, self.not_(where, self.call(where, method, container, item)))

    def getitem(self, where: Where, obj: Any, key: Any) -> Any:
        method = self.special(obj, "__getitem__")
        of_class = class_attribute(obj, "__class_getitem__") if isinstance(obj, type) else None
        if of_class is not None and users_function(getattr(of_class, "__func__", None)) is not None:
            self.note_of_class(obj, "__class_getitem__")
            return self.call(where, MethodType(of_class.__func__, obj), key)
        return super().getitem(where, obj, key) if method is None else (
            self.call(where, method, obj, key))

    def setitem(self, where: Where, value: Any, obj: Any, key: Any) -> None:
        method = self.special(obj, "__setitem__")
        if method is None:
            super().setitem(where, value, obj, key)
        else:
            self.call(where, method, obj, key, value)

    def delitem(self, where: Where, obj: Any, key: Any) -> None:
        method = self.special(obj, "__delitem__")
        if method is None:
            super().delitem(where, obj, key)
        else:
            self.call(where, method, obj, key)

    # -- attributes -------------------------------------------------------------------------------

    def getattr(self, where: Where, obj: Any, name: str) -> Any:
        found = None if type(obj) is TracedArray else class_attribute(type(obj), name)
        method = None if found is None else self.special(found, "__get__")
        if method is not None:
            return self.call(where, method, found, obj, type(obj))
        if isinstance(obj, type) and self.is_computed(obj, name):
            found = class_attribute(obj, name)
            return self.call(where, method_of(found, "__get__"), found, None, obj)
        if type(found) is functools.cached_property and name not in vars(obj) and (
                id(obj) in self.trace.local.objects):
            made = self.call(where, found.func, obj)
            self.setattr(where, made, obj, name)
            return made
        return super().getattr(where, obj, name)

    def is_computed(self, obj: Any, name: str) -> bool:
        """Whether a descriptor of the user's, in the class or its class, gives the attribute."""
        kinds = (obj, type(obj)) if isinstance(obj, type) else (type(obj),)
        return any(method_of(class_attribute(k, name), "__get__") is not None for k in kinds)

    def stored_by_class(self, where: Where, obj: Any, name: str, value: Any) -> bool:
        """Whether the class says how an attribute is bound, and it was: by ``__setattr__``, a
        property or another descriptor."""
        found = class_attribute(type(obj), name)
        method = self.special(obj, "__setattr__")
        if method is not None:
            self.call(where, method, obj, name, value)
        elif type(found) is property and users_function(found.fset) is not None:
            self.call(where, found.fset, obj, value)
        elif found is not None and self.special(found, "__set__") is not None:
            self.call(where, self.special(found, "__set__"), found, obj, value)
        else:
            return False
        return True

    def manager(self, where: Where, found: Any) -> Any:
        """What a ``with`` statement enters instead of ``found``."""
        if type(found) is contextlib.suppress:
            return Suppressing(self.trace.handlers, found, Loc._make(where))
        if type(found) is contextlib._GeneratorContextManager:
            self._convert_generator(where, found)
        methods = [self.special(found, name) for name in ("__enter__", "__exit__")]
        return found if None in methods else _Manager(self, where, found)

    def _convert_generator(self, where: Where, found: Any) -> None:
        """Give a manager that is not entered a converted generator: its own has not begun."""
        function = vars(found).get("func")
        if type(function) is FunctionType and not stays_plain(function):
            found.gen = self.call(where, found.func, *found.args, **found.kwds)

    refusals = REFUSALS

    def trying(self, where: Where, caught: Callable[[], Any] | None) -> Any:
        """Around the body of a ``try`` that catches these exceptions (None: all)."""
        return catching(self.trace.handlers, classes_of(caught), Loc._make(where))

    def asked_truth(self, test: Any) -> Any:
        """What an object says that its truth is, asked once."""
        method = self.special(test, "__bool__")
        if method is not None:
            return self.call(self.where, method, test)
        method = self.special(test, "__len__")
        return test if method is None else self.compare(
            self.where, "ne", self.call(self.where, method, test), 0)

    def truth(self, test: Any) -> Value:
        asked = self.asked_truth(test)
        return super().truth(test) if asked is test else self.truth(asked)

    def decide(self, test: Any) -> bool | None:
        asked = self.asked_truth(test)
        return super().decide(test) if asked is test else self.decide(asked)


class _Manager:
    """A context manager of the user's, its methods converted."""

    def __init__(self, hooks: SpecialMethods, where: Where, found: Any) -> None:
        self.hooks, self.where, self.found = hooks, where, found
        self.handler: Any = None  # where its `__exit__` may keep exceptions to itself

    def __enter__(self) -> Any:
        entered = self.hooks.call(self.where, method_of(self.found, "__enter__"), self.found)
        if may_suppress(method_of(self.found, "__exit__")):
            self.handler = catching(
                self.hooks.trace.handlers, (BaseException,), Loc._make(self.where))
            self.handler.__enter__()
        return entered

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        if self.handler is not None:
            self.handler.__exit__(None, None, None)
        if isinstance(error, REFUSALS):
            return False
        return self.hooks.call(
            self.where, method_of(self.found, "__exit__"), self.found, kind, error, traceback)


def _has_own(a: Any, name: str) -> bool:
    return class_attribute(type(a), name) is not class_attribute(object, name)
