"""A function's state beside its arguments, put back between the calls of a measurement.

A training step that assigns Variables must meet the same ones each time, or eager and compiled
calls differ because they come one after the other; and who measures a function wants to find its
state as it was.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fusec.ir import Graph
from fusec.ops.calls.host_calls import (
    generator_state,
    host_objects,
    is_generator,
    set_generator_state,
)
from fusec.trace.guards.places import UNBOUND, Attribute, Item, OuterPlace
from fusec.trace.places.container_contents import NewContent, Tail

from .measuring.equality import leaves

PutBack = Callable[[], object]


class BenchState:
    """How to put back, in this order, the state that was found."""

    def __init__(self, puts: Sequence[PutBack] = ()) -> None:
        self._puts = puts

    def put_back(self) -> None:
        for put in self._puts:
            put()

    def before(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """``f``, each call of which finds this state."""
        def called(*args: Any) -> Any:
            self.put_back()
            return f(*args)
        return called

    @contextlib.contextmanager
    def around(self, inner: Callable[[], contextlib.AbstractContextManager[Any]]) -> Iterator[None]:
        """A context that begins with this state."""
        self.put_back()
        with inner():
            yield


def state_of(concretes: Sequence[Any], args: Sequence[Any]) -> BenchState:
    """The state that calls of these traces change, as it is now: Variables, arrays from outside,
    attributes, outer names, items, and generators of random numbers (arguments too)."""
    puts: list[PutBack] = []
    for concrete in concretes:
        puts += [_place(place) for place, _ in concrete.build.traced.assignments]
        puts += [_array(a) for a in concrete.executable.spec.written_outside]
        puts += [_variable(v) for v in concrete.variables]
        puts += [_generator(g) for g in _generators(concrete.graph)]
    puts += [_generator(x) for x in leaves(tuple(args)) if is_generator(x)]
    return BenchState(puts)


def _variable(variable: Any) -> PutBack:
    value = variable.read_value()
    return lambda: variable.assign(value)


def _array(array: np.ndarray) -> PutBack:
    value = array.copy()
    return lambda: np.copyto(array, value)


def _generator(generator: Any) -> PutBack:
    state = generator_state(generator)
    return lambda: set_generator_state(generator, state)


def _generators(graph: Graph) -> list[Any]:
    return [o.held for o in host_objects(graph) or () if is_generator(o.held)]


def _place(place: OuterPlace | NewContent) -> PutBack:
    if isinstance(place, NewContent):
        return _container(place.read())
    if isinstance(place, (Item, Tail)):
        return _container(place.find())
    value = place()
    if value is UNBOUND and isinstance(place, Attribute):
        return lambda: vars(place.scope()).pop(place.name, None)
    return lambda: place.apply(value)


def _container(container: Any) -> PutBack:
    content = copy.copy(container)

    def put() -> None:
        container.clear()
        (container.update if isinstance(container, dict) else container.extend)(content)
    return put
