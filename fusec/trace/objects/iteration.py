"""Iterables of Python: objects of the user's classes give their items through their own methods,
called as the program's code is, and items of iterators from outside are read at each call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from types import FunctionType, GeneratorType, MethodType
from typing import Any

from ..control.sequences import PythonIterator
from ..convert.generators import Generators
from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import stays_plain
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from .attribute_guards import note_of_class
from .tracing_hooks import TracingHooks

_ITERATORS = (GeneratorType, *(f for f in vars(itertools).values() if isinstance(f, type)), map,
              filter, zip, enumerate, reversed)
_WITH_FUNCTION = (map, filter)
_PULLING = (any, all)  # handlers of which take one item after the other
_TAKING_ALL = (list, tuple, sum, min, max, sorted)
_COMPARING = (min, max)  # of several arguments they go over none


def items_of(hooks: TracingHooks, where: Where, x: Any) -> Any:
    """``x``, or the items that an object of the user's gives."""
    kind = type(x)
    if kind is TracedArray or not kind.__flags__ & HEAP_TYPE or not hooks.trace.active:
        return x
    method = _users(kind, "__iter__")
    if method is not None:
        note_of_class(hooks.trace, kind, "__iter__")
        return _items(hooks, where, hooks.call(where, MethodType(method, x)))
    if _users(kind, "__next__") is not None:
        return _items(hooks, where, x)
    getter = _users(kind, "__getitem__")
    if getter is None or class_attribute(kind, "__iter__") not in (None, Sequence.__iter__):
        return x
    return _numbered(hooks, where, MethodType(getter, x))


def _users(kind: type, name: str) -> FunctionType | None:
    method = class_attribute(kind, name)
    return method if type(method) is FunctionType and not stays_plain(method) else None


def _items(hooks: TracingHooks, where: Where, iterator: Any) -> Any:
    """The items of the iterator that ``__iter__`` returned."""
    following = _users(type(iterator), "__next__")
    return iterator if following is None else _followed(hooks, where, iterator, following)


def _followed(
    hooks: TracingHooks, where: Where, iterator: Any, following: FunctionType
) -> Iterator[Any]:
    while True:
        try:
            item = hooks.call(where, MethodType(following, iterator))
        except StopIteration:
            return
        yield item


def _numbered(hooks: TracingHooks, where: Where, getter: MethodType) -> Iterator[Any]:
    for position in itertools.count():
        try:
            item = hooks.call(where, getter, position)
        except IndexError:
            return
        yield item


def gone_over(hooks: TracingHooks, where: Where, fn: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a function that `goes_over` the items of some of them."""
    if (fn in _COMPARING and len(args) > 1) or fn is iter:
        return args
    first = 1 if fn in _WITH_FUNCTION else 0
    items = [items_of(hooks, where, x) for x in args[first:]]
    if fn in _TAKING_ALL:
        items = [_listed(hooks, where, x) for x in items]
    if fn not in _PULLING:
        items = [_read_anew(hooks, x) for x in items]
    return (*args[:first], *items)


def _listed(hooks: TracingHooks, where: Where, x: Any) -> Any:
    """All that a generator of the program's gives, as a list that loops of the graph may make."""
    items = hooks.trace.part(Generators).listed(x) if type(x) is GeneratorType else None
    hooks.where = where
    return x if items is None else items


def _read_anew(hooks: TracingHooks, x: Any) -> Any:
    """Arrays from outside among an iterator's items are read at each call."""
    if isinstance(x, PythonIterator) or type(x) not in _ITERATORS:
        return x
    return map(hooks.lifted_item, x)
