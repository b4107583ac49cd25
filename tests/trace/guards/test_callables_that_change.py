"""Functions, classes and partials that an object or its class holds: replaced, they are seen."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec

PAIRS: dict[str, tuple[Any, Any]] = {
    "ufunc": (np.sin, np.cos),
    "function of NumPy": (np.sort, np.cumsum),
    "function": (lambda x: x * 2, lambda x: x * 3),
    "builtin": (max, min),
    "class": (np.float32, np.float64),
    "partial": (functools.partial(np.sum, axis=0), functools.partial(np.max, axis=0)),
    "other kinds": (np.sin, lambda x: x * 7),
}


def held_by_object(first: Any) -> Any:
    return SimpleNamespace(g=first)


def held_by_class(first: Any) -> Any:
    return type("Holder", (), {"g": staticmethod(first)})()


def held_by_base(first: Any) -> Any:
    return type("Holder", (type("Base", (), {"g": staticmethod(first)}),), {})()


def held_by_slot(first: Any) -> Any:
    made: Any = type("Holder", (), {"__slots__": ("g",)})()
    made.g = first
    return made


def held_by_module(first: Any) -> Any:
    made: Any = ModuleType("of_the_user")
    made.g = first
    return made


def found_by_method(first: Any) -> Any:
    class Holder:
        def __init__(self) -> None:
            self.table = {"g": first}

        def __getattr__(self, name: str) -> Any:
            return self.table[name]

    return Holder()


def in_object(holder: Any, other: Any) -> None:
    holder.g = other


def in_class(holder: Any, other: Any) -> None:
    type(holder).g = staticmethod(other)


def in_base(holder: Any, other: Any) -> None:
    type(holder).__mro__[1].g = staticmethod(other)


def in_table(holder: Any, other: Any) -> None:
    holder.table["g"] = other


WAYS: list[tuple[Callable[[Any], Any], Callable[[Any, Any], None]]] = [
    (held_by_object, in_object), (held_by_class, in_object), (held_by_class, in_class),
    (held_by_base, in_object), (held_by_base, in_class), (held_by_base, in_base),
    (held_by_slot, in_object), (held_by_module, in_object), (found_by_method, in_table),
    (found_by_method, in_object),
]


@pytest.mark.parametrize(("make", "change"), WAYS,
                         ids=[f"{make.__name__}-{change.__name__}" for make, change in WAYS])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_the_one_of_the_call_is_used(make: Any, change: Any, pair: Any) -> None:
    holder = make(pair[0])
    jitted = fusec.jit(lambda x: holder.g(x))
    for turn, n in itertools.product(range(2), (4, 7, 11)):
        if turn and n == 4:
            change(holder, pair[1])
        x = np.arange(1.0, n)
        np.testing.assert_allclose(jitted(x), holder.g(x), rtol=1e-12)


def test_one_trace_while_nothing_changes() -> None:
    holder = held_by_base(np.tanh)
    jitted = fusec.jit(lambda x: holder.g(x))
    for _ in range(3):
        jitted(np.ones(3))
    assert jitted.trace_count == 1


def test_a_module_that_an_object_holds() -> None:
    holder = SimpleNamespace(lib=np)
    jitted = fusec.jit(lambda x: holder.lib.sin(x))
    np.testing.assert_allclose(jitted(np.ones(2)), np.sin(np.ones(2)))
    holder.lib = SimpleNamespace(sin=np.cos)
    np.testing.assert_allclose(jitted(np.ones(2)), np.cos(np.ones(2)))
