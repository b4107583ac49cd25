"""Dataclasses made in the program, and methods that return their object."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fusec


@dataclasses.dataclass
class Sample:
    x: Any
    scale: float = 2.0
    offset: dataclasses.InitVar[float] = 0.5
    total: Any = dataclasses.field(init=False, default=0.0)

    def __post_init__(self, offset: float) -> None:
        self.x = np.asarray(self.x, float)
        if self.x[0] > 1:
            self.total = self.x.sum() + offset
        else:
            self.total = self.x.max()


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", np.asarray(self.x, float) * 2)


def of_data(x: Any) -> Any:
    s = Sample(x, offset=1.5)
    return s.x * s.scale, s.total


@pytest.mark.parametrize("first", [0, 5])
def test_what_is_done_after_init(first: int) -> None:
    x = np.array([first, 2, 3])
    compiled = fusec.jit(of_data)
    for _ in range(2):
        for got, want in zip(compiled(x), of_data(x), strict=True):
            np.testing.assert_array_equal(got, want)


def test_frozen_ones() -> None:
    x = np.arange(3)
    np.testing.assert_array_equal(fusec.jit(lambda x: Frozen(x).x + 1)(x), x * 2.0 + 1)


class Chained:
    def __init__(self) -> None:
        self.n, self.a = 0, np.zeros(2)

    @fusec.jit
    def step(self, x: Any) -> Any:
        self.n += 1
        self.a = self.a + x
        return self


def test_methods_that_return_their_object() -> None:
    mine, other = Chained(), Chained()
    for i in range(3):
        assert mine.step(np.ones(2) * i) is mine
    assert mine.n == 3 and mine.a.tolist() == [3.0, 3.0]
    assert mine.step(1.0).step(2.0) is mine and mine.a.tolist() == [6.0, 6.0]
    assert other.step(np.ones(2)) is other and other.n == 1 and mine.n == 5


def test_replaced_ones() -> None:
    @dataclasses.dataclass
    class Counted:
        a: float
        n: int = dataclasses.field(default=0, init=False)

        def __post_init__(self) -> None:
            self.n = 3

    def program(a: Any, k: Any) -> Any:
        made = dataclasses.replace(Counted(a), a=k * 2)
        return made.a, made.n

    compiled = fusec.jit(program)
    for k in (1.5, 2.5):
        assert compiled(1.0, k) == program(1.0, k)


@dataclasses.dataclass
class Plain:
    a: Any
    b: float = 1.0


@dataclasses.dataclass
class OfOwnNew:
    a: Any
    b: float = 1.0

    def __new__(cls, *_: Any, **__: Any) -> Any:
        return object.__new__(cls)


class Calling(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


@dataclasses.dataclass
class OfOwnMeta(metaclass=Calling):
    a: Any
    b: float = 1.0


@pytest.mark.parametrize("kind", [Plain, OfOwnNew, OfOwnMeta])
def test_made_anew_in_a_loop(kind: Any) -> None:
    def program(x: Any) -> Any:
        p = kind(x, 0.0)
        for i in range(3):
            p = kind(p.a * 0.5 + x[i], p.b + 1)
        return p.a, p.b

    x = np.arange(3.0)
    compiled = fusec.jit(program)
    for _ in range(2):
        for got, want in zip(compiled(x), program(x), strict=True):
            np.testing.assert_array_equal(got, want)
    assert compiled.trace_count == 1  # no guard is about an object that the trace made
