"""Objects that the program makes and returns."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

X = np.linspace(0.0, 1.0, 5)


@dataclasses.dataclass
class Result:
    a: Any
    n: Any = 3
    tags: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    first: Any
    second: Any


class Plain:
    def __init__(self, x: Any) -> None:
        self.x, self.total = x, x.sum()

    def doubled(self) -> Plain:
        return Plain(self.x * 2)


def test_a_dataclass() -> None:
    def f(x: Any) -> Result:
        made = Result(x * 2)
        made.tags.append(x[1])
        return made

    compiled = fusec.jit(f)
    for _ in range(2):
        got = compiled(X)
        assert type(got) is Result and got.n == 3 and got.tags == [X[1]]
        np.testing.assert_array_equal(got.a, X * 2)
    got.tags.append(1)
    got.n = 4
    again = compiled(X)
    assert again is not got and again.n == 3 and len(again.tags) == 1


def test_nested_and_shared() -> None:
    def f(x: Any) -> Any:
        inner = Result(x + 1, tags=[1])
        return Pair(x, inner), inner, {"p": Plain(x).doubled()}, inner.tags

    compiled = fusec.jit(f)
    pair, inner, made, tags = compiled(X)
    assert pair.second is inner and inner.tags is tags and pair.first is X
    assert type(made["p"]) is Plain and made["p"].total == 2 * X.sum()
    assert compiled(X)[1] is not inner


def test_attributes_that_data_chooses() -> None:
    def f(x: Any) -> Result:
        made = Result(x)
        if x[1] > 0:
            made.n = x[1] * 5
        else:
            made.n = 7.0 * x[0]
        return made

    compiled = fusec.jit(f)
    for x in (X, -X):
        assert compiled(x).n == f(x).n


def test_an_object_that_holds_itself() -> None:
    def f(x: Any) -> Result:
        made = Result(x)
        made.a = made
        return made

    with pytest.raises(UnsupportedError, match="that holds itself"):
        fusec.jit(f)(X)
