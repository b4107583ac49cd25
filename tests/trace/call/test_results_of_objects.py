"""Results that are parts of an object argument, or lead to such: each call's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError


class Pair:
    def __init__(self, k: float, items: list[Any]) -> None:
        self.k, self.items = k, items

    def method(self) -> float:
        return self.k


PARTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "list": (lambda p: p.items, lambda r: r),
    "in a dict": (lambda p: {"y": [p.items]}, lambda r: r["y"][0]),
    "method": (lambda p: p.method, lambda r: r.__self__),
    "partial": (lambda p: functools.partial(p.method), lambda r: r()),
    "function": (lambda p: lambda: p.k, lambda r: r()),
    "method of a list": (lambda p: p.items.append, lambda r: r.__self__),
    "key": (lambda p: {p: 1}, lambda r: next(iter(r))),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_those_of_the_call(name: str) -> None:
    program, part = PARTS[name]
    jitted = fusec.jit(program)
    for p in (Pair(1.0, []), Pair(2.0, [])):
        assert part(jitted(p)) is part(program(p)) or part(jitted(p)) == p.k


class Keyed:
    """Equal objects have equal keys, and may be written to."""

    def __init__(self, key: int) -> None:
        self.key, self.total = key, 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keyed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def test_objects_that_are_equal_are_not_each_other() -> None:
    @fusec.jit
    def add(p: Any, x: float) -> Any:
        p.total += x
        return p

    a, b = Keyed(1), Keyed(1)
    assert add(a, 1.0) is a and add(b, 1.0) is b
    assert (a.total, b.total) == (1.0, 1.0)


@dataclass(frozen=True)
class Named:
    number: int
    weight: float = field(compare=False, default=1.0)


def test_keys_of_dicts_are_compared_at_each_call() -> None:
    @fusec.jit
    def count(a: Any, b: Any) -> int:
        weights = {a: 1.0}
        weights[b] = 2.0
        return len(weights)

    assert [count(Named(1), Named(2)), count(Named(1), Named(1))] == [2, 1]


def test_values_of_variables_that_python_used() -> None:
    def sort(variables: Any) -> None:
        for k, v in enumerate(sorted(variables, key=lambda v: -v[0])):
            v.assign(v + k)

    states = []
    for function in (sort, fusec.jit(sort)):
        given = [fusec.Variable(np.array([1.0, 4.0])), fusec.Variable(np.array([3.0, 2.0]))]
        for _ in range(3):
            function(given)
            given[1].assign(given[1] * 0.5)
        states.append([v.numpy().tolist() for v in given])
    assert states[0] == states[1]


@pytest.mark.parametrize("program", [
    lambda x: iter([x, 2.0]), lambda x: (v for v in [1, 2]), lambda x: map(abs, [x]),
])
def test_iterators_are_no_results(program: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match="an iterator as a result"):
        fusec.jit(program)(1.0)


def test_a_function_that_keeps_a_list_of_the_call_is_no_result() -> None:
    def made(x: Any) -> Any:
        items: list[Any] = []

        def add(v: Any) -> Any:
            items.append(v)
            return items

        return add

    with pytest.raises(UnsupportedError, match="keeps a list of the call"):
        fusec.jit(made)(1.0)
