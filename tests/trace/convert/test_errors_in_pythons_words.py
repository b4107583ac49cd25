"""Python's errors for a call or an operand, compiled as without: no name of ours is in it."""
# ruff: noqa: PIE804 (what is joined is the subject)

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.arange(3.0)


def scaled(x: Any, a: Any = 1, b: Any = 2, **more: Any) -> Any:
    return x * a + b + len(more)


class Mapping:
    def __init__(self, held: dict[str, Any]) -> None:
        self.held = held

    def keys(self) -> Any:
        return self.held.keys()

    def __getitem__(self, key: str) -> Any:
        return self.held[key]


JOINED: dict[str, Callable[[Any], Any]] = {
    "two": lambda x: scaled(x, **{"a": 2}, **{"b": 5}),
    "mixed": lambda x: scaled(*[x, 2], b=2, **{"c": 1}, d=4),
    "traced": lambda x: scaled(x, **{"b": x.sum()}),
    "mapping": lambda x: scaled(x, **Mapping({"b": 7})),
    "defaultdict": lambda x: scaled(x, **collections.defaultdict(int, a=3)),
    "NumPy's": lambda x: np.sum(x, **{"axis": 0}),
    "method": lambda x: x.sum(**{"keepdims": True}),
}


@pytest.mark.parametrize("name", JOINED)
def test_keywords_of_mappings(name: str) -> None:
    np.testing.assert_array_equal(fusec.jit(JOINED[name])(X), JOINED[name](X))


def test_keywords_follow_a_mapping_from_outside() -> None:
    given = {"a": 3}
    fast = fusec.jit(lambda x: scaled(x, **given))
    for change in ({}, {"a": 9}, {"more": 1}):
        given |= change
        np.testing.assert_array_equal(fast(X), scaled(X, **given))


REFUSED: dict[str, Callable[[Any], Any]] = {
    "twice": lambda x: scaled(x, a=1, **{"a": 2}),
    "twice in mappings": lambda x: scaled(x, **{"a": 2}, **{"a": 3}),
    "twice by position": lambda x: scaled(x, 1, **{"a": 2}),
    "no mapping": lambda x: scaled(x, **5),  # type: ignore[arg-type]
    "none": lambda x: scaled(x, **None),  # type: ignore[arg-type]
    "an array": lambda x: dict(**x),
    "no text": lambda x: scaled(x, **{1: 2}),  # type: ignore[arg-type]
    "unknown": lambda x: np.sum(x, **{"foo": 0}),
    "ord": lambda x: ord(x),
    "in a text": lambda x: x in "abc",
    "join": lambda x: "".join([x]),
    "super": lambda x: super(x, 1),
    "split": lambda x: "a".split(x),
    "next": lambda x: next(x),
    "attribute": lambda x: x.foo,
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_pythons(name: str) -> None:
    with pytest.raises((TypeError, AttributeError)) as eager:
        REFUSED[name](X)
    with pytest.raises(type(eager.value)) as compiled:
        fusec.jit(REFUSED[name])(X)
    assert str(compiled.value).splitlines()[0] == str(eager.value)
