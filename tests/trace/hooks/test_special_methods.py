"""Classes of the program with special methods: converted, and true to attributes' values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from harness import check

import fusec

HALF = 0.5


class Vector:
    def __init__(self, a: Any) -> None:
        self.a = a
        self.size = len(a)
        if a[0] > 0.75:
            self.a = a * 2

    def __add__(self, o: Any) -> Vector:
        return Vector(self.a + (o.a if isinstance(o, Vector) else o))

    __radd__ = __add__

    def __mul__(self, k: Any) -> Vector:
        return NotImplemented if isinstance(k, str) else Vector(self.a * k)

    def __neg__(self) -> Vector:
        return Vector(-self.a)

    def __iadd__(self, o: Any) -> Vector:
        self.a = self.a + o
        return self

    def __getitem__(self, i: Any) -> Any:
        return self.a[i] if self.a[0] > 0 else -self.a[i]

    def __setitem__(self, i: Any, v: Any) -> None:
        self.a[i] = v

    def __len__(self) -> int:
        return len(self.a)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.a)

    def __contains__(self, v: Any) -> bool:
        return (self.a == v).any()

    def __eq__(self, o: Any) -> Any:
        return self.a[0] == o

    def __lt__(self, o: Any) -> Any:
        return self.a[0] < o

    def __bool__(self) -> bool:
        return bool(self.a[0] > 0.5)

    def __abs__(self) -> Any:
        return abs(self.a).max()

    __hash__ = None


def operators(x: np.ndarray) -> Any:
    v = Vector(x)
    w = 1.0 + v * 2 + v
    w[0] = 7.0
    w += 1
    return w.a, w[1], len(w), (-w).a, abs(w)


def in_loops(x: np.ndarray) -> Any:
    v, s = Vector(x.copy()), 0.0
    for i in range(30):
        v += i * 0.25
        v[i % 3] = v[(i + 1) % 3] * 0.5
        s = s * 0.5 + v[0]
    return v.a, s


def attributes_and_items(x: np.ndarray) -> Any:
    v, s = Vector(x), 0.0
    for i in range(30):
        v.a = v.a * 0.5 + i
        s += v[i % 3]
    return s, v[0], v.a


def in_branches(x: np.ndarray) -> Any:
    v = Vector(x)
    if x[1] > 0.5:
        v.a = v.a * 2
        v += 3
    return v[1], v < 3, v < HALF, (v + v).a, v == 2.0, v != 2.0, 0.25 in v


def truth_and_items(x: np.ndarray) -> Any:
    v, s = Vector(x), x[0] * 0
    if v:
        s = s + 1
    for e in v:
        s = s * 0.5 + e
    return s + 2 if v and not -v else s


class Base:
    scale = 2.0

    def __init__(self, x: Any) -> None:
        self.x = x * self.scale

    def __call__(self, y: Any) -> Any:
        return self.x + y

    def __matmul__(self, o: Any) -> Any:
        return (self.x * o.x)[0]


class Derived(Base):
    scale = 3.0

    def __init__(self, x: Any, shift: float) -> None:
        super().__init__(x)
        self.shift = shift if x[0] > 0.5 else -shift

    def __rmatmul__(self, o: Any) -> Any:
        return (self.x + o.x)[1] * self.shift


def inherited(x: np.ndarray) -> Any:
    a, b = Base(x), Derived(x, 1.5)
    return a(1.0), b(2.0), a @ a, a @ b, b @ a, b.shift


@pytest.mark.parametrize("program", [
    operators, in_loops, attributes_and_items, in_branches, truth_and_items, inherited,
])
def test_special_methods(program: Callable[..., Any]) -> None:
    for seed in range(4):
        check(program, np.random.default_rng(seed).random(6), fp="strict")


def test_errors_are_pythons() -> None:
    check(lambda x: Vector(x) * "no", np.ones(3))
    check(lambda x: Vector(x) - 1, np.ones(3))


def membership(x: np.ndarray) -> Any:
    k = (x * 10).astype(int)
    found = 0
    for v in k:
        if v in (1, 3, 5) or v not in {2, 4, 6, 8}:
            found += 1
    return found, 0.5 in x, 3 in k, k[0] in [1, 2], 7 not in k.reshape(2, -1)


def test_membership() -> None:
    for seed in range(4):
        check(membership, np.random.default_rng(seed).random(6))
    check(lambda x: not x[0] > 0.5, np.ones(2))


class Tally:
    """A container with an equality that ``in`` does not ask for."""

    def __init__(self) -> None:
        self.last, self.count = 0.0, 0

    def __eq__(self, other: Any) -> bool:
        return self.count == other

    __hash__ = None

    def __contains__(self, v: Any) -> Any:
        return v == self.count or v == self.last


def test_a_container_is_not_compared() -> None:
    def f(tally: Tally, x: Any) -> Any:
        tally.last = x.sum()
        return x + (2.0 in tally) + (0 in tally)

    compiled = fusec.jit(f)
    for x in (np.ones(2), np.ones(3), np.array([1.5, 0.5])):
        np.testing.assert_array_equal(compiled(Tally(), x), f(Tally(), x))
